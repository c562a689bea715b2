"""CINIC-10 (Darlow et al. 2018): CIFAR-10 and downsampled ImageNet, 3 x 90,000 images of 32x32.

What enters: a folder that holds ``train/<class>/*.png``, ``valid/`` and ``test/``, or CINIC-10.tar.gz.
What leaves: features [R, 32, 32, 3] uint8, training rows first, the published test part in
``Dataset.test``, the classes in CIFAR-10's order. Rows go round the classes; folder and archive give
one order, and so one ``core.checksum``.

180,000 rows (train and valid, as Fu et al. 2022) and 90,000 test rows. Get it from
github.com/BayesWatch/cinic-10.
"""

from __future__ import annotations

import numpy as np

from vfljax.datasets import class_folders
from vfljax.datasets.cifar import NAMES10
from vfljax.datasets.core import Dataset
from vfljax.datasets.given import choice, count, fault, folder_of
from vfljax.datasets.image_files import ignored, listing
from vfljax.datasets.images import pixels

SPLITS = {"train": "train", "valid": "valid", "test": "test"}
LAYOUTS = "train/<class>/*.png, valid/ and test/ of CINIC-10, or its archive CINIC-10.tar.gz"


def cinic10(folder: str, *, rows: int = 0, validation: str = "train") -> Dataset:
    """CINIC-10; ``validation`` says where the published validation part goes.

    "train" (default) or "test": it joins that part, after its own rows. Fu et al. (2022; their table
    of the attacks' results) train on the 180,000 images of both and test on 90,000. "drop": nowhere.
    vfljax draws its own validation rows from the training part in any case. ``rows=n`` keeps the
    first n training and n // 5 test rows, of all classes in turn.
    """
    rows = count("rows", rows)
    choice("validation", validation, ("drop", "train", "test"))
    root = folder_of(folder, LAYOUTS)
    found, others = listing(root)
    folders = class_folders.splits(found, SPLITS)
    if not folders:
        said = "".join(f" ({note})" for note in ignored(root, found))
        raise fault(
            f"{root} holds nothing of CINIC-10: give the folder that holds {LAYOUTS}{said}."
        )
    parts = []
    for part, wanted in zip(("train", "test"), class_folders.part_rows(rows), strict=True):
        images, labels = [], []
        for split in (part, "valid") if validation == part else (part,):
            if split not in folders:
                raise fault(f"{root} has no image in {split}/<class>/: put the {split} part there.")
            own, y = class_folders.labeled(root, split, folders[split], NAMES10)
            images += own
            labels += y.tolist()
        images, labels = images[: wanted or None], labels[: wanted or None]
        parts.append((pixels(images, shape=(32, 32)), np.array(labels)))
    note = f"read image folders in {root}; published validation part: {validation}"
    more = (*class_folders.left_out(found, others, SPLITS), *ignored(root, found))
    return class_folders.joined("cinic10", parts[0], parts[1], NAMES10, 10, (note, *more), rows)
