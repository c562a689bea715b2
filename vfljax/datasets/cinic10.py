"""CINIC-10 (Darlow et al. 2018): CIFAR-10 and downsampled ImageNet, 3 x 90,000 images of 32x32.

What enters: a folder that holds ``train/<class>/*.png``, ``valid/`` and ``test/``, or CINIC-10.tar.gz.
What leaves: features [R, 32, 32, 3] uint8, training rows first, the published test part in
``Dataset.test``, the classes in CIFAR-10's order. Rows go round the classes; folder and archive give
one order, and so one ``core.checksum``.

180,000 rows (train and valid, as Fu et al. 2022) and 90,000 test rows. Get it from
github.com/BayesWatch/cinic-10.
"""

from __future__ import annotations

from vfljax.datasets import class_folders
from vfljax.datasets.cifar import NAMES10
from vfljax.datasets.core import Dataset
from vfljax.datasets.files import folder_of, without
from vfljax.datasets.images import find
from vfljax.datasets.options import limited

SPLITS = ("train", "valid", "test")
LAYOUTS = "train/<class>/*.png, valid/ and test/ of CINIC-10, or its archive CINIC-10.tar.gz"


@limited(validation=("drop", "train", "test"))
def cinic10(folder: str, *, rows: int = 0, validation: str = "train") -> Dataset:
    """CINIC-10; ``validation`` says where the published validation part goes.

    "train" (default) or "test": it joins that part, after its own rows. Fu et al. (2022; their table
    of the attacks' results) train on the 180,000 images of both and test on 90,000. "drop": nowhere.
    vfljax draws its own validation rows from the training part in any case. ``rows=n`` keeps the
    first n training and n // 5 test rows, of all classes in turn.
    """
    root = folder_of(folder, LAYOUTS)
    present = find(root)
    if not class_folders.of_splits(present, SPLITS):
        raise without(root, LAYOUTS, present.notes)
    splits = [(part, "valid") if validation == part else (part,) for part in ("train", "test")]
    parts = class_folders.parts(root, present, splits, NAMES10, rows)
    note = f"read image folders in {root}; published validation part: {validation}"
    notes = (note, *class_folders.notes(present, SPLITS))
    return class_folders.joined("cinic10", parts, NAMES10, 10, notes, rows)
