"""Avazu click-through (Kaggle 2014): 40.4 million rows, 22 categories, 1 = click.

It is read from ``train.csv`` with the header ``id,click,hour,C1,banner_pos,...,C21``, plain or gzip. There is
no published test part (Kaggle's has no labels). Every field is a category, as in Sun et al. 2022 (their
Appendix), who give all columns to one party; ``id`` is not read. The forms:

    codes   [R, 22] int32: hashed codes, 0..buckets - 1 in each column; 0 is the empty value
    unique  a code for each distinct value of the rows read, in sorted order; the empty value has one too

Get it from Kaggle (avazu-ctr-prediction).
"""

from __future__ import annotations

import numpy as np

from vfljax.datasets.converters import clicks
from vfljax.datasets.core import Conversion
from vfljax.datasets.options import limited

FIELDS = (
    *("hour", "C1", "banner_pos", "site_id", "site_domain", "site_category"),
    *("app_id", "app_domain", "app_category", "device_id", "device_ip", "device_model"),
    *("device_type", "device_conn_type", "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21"),
)
SOURCE = "the folder or file of Avazu's train.csv (Kaggle 2014)"


@limited(form=("codes", "unique"), buckets=(2, clicks.MAX_BUCKETS))
def avazu(folder: str, *, form: str = "codes", buckets: int = 10_000, rows: int = 0) -> Conversion:
    """Reads Avazu.

    Args:
      folder: the file, or the folder that holds it.
      form: "codes" or "unique", as described above.
      buckets: number of codes of a column, of form "codes".
      rows: the first rows are read; 0 reads all.
    """
    source = clicks.ClickFile(clicks.path_of(folder, SOURCE), "click", FIELDS, rows)
    if form == "codes":
        encoders = clicks.hashed_codes(FIELDS, buckets)
    else:
        encoders = clicks.sorted_codes(source, dict.fromkeys(FIELDS, str))
    about = {"columns": tuple(encoders), "classes": clicks.CLASSES}
    return Conversion("avazu", 2, clicks.blocks(source, encoders, np.int32), about)
