"""Small tables of a user's own, in every format."""

import numpy as np
import pandas as pd

from tests.datasets import refusals
from vfljax.datasets.table import from_frame

FRAME = pd.DataFrame(
    {
        "age": [31.5, np.nan, 44.0, 29.25] * 3,
        "visits": [3, 10, 2, 70] * 3,
        "member": [True, False, True, True] * 3,
        "city": ["Graz", None, "Aix", "Ulm, old"] * 3,
        "kind": [2, 10, 1, 2] * 3,
        "sick": ["no", "yes", "no", "yes"] * 3,
    }
)


def made(**columns):
    """A frame of a label of two classes and the columns."""
    rows = len(next(iter(columns.values())))
    return pd.DataFrame({"y": [k % 2 for k in range(rows)], **columns})


def summary(data):
    """The source columns and classes in a line: numbers as they are, of categories their values."""
    out = {}
    for j, column in enumerate(data.columns):
        if column.kind == "code":
            out[column.name] = f"code {column.vocabulary}"
        elif column.kind == "number":
            out[column.name] = " ".join(f"{x:.6g}" for x in data.features[:, j])
        else:
            out.setdefault(column.name, []).append(column.value)
    text = [f"{k}={v}" if isinstance(v, str) else f"{k}={{{'|'.join(v)}}}" for k, v in out.items()]
    return "; ".join([*text, f"classes {' '.join(data.classes)}"])


def refused(message, *args, **options):
    return refusals.refused(from_frame, *args, match=message, **{"label": "y", **options})


def write(folder, frame, suffix):
    path = folder / f"own{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif suffix == ".npz":
        texts = frame.select_dtypes(["object", "string"]).columns
        np.savez(
            path,
            **{c: frame[c].fillna("").to_numpy(str) if c in texts else frame[c] for c in frame},
        )
    else:
        separator = {".tsv": "\t", ".txt": ";"}.get(suffix, ",")
        frame.to_csv(path, index=False, sep=separator)
    return str(path)
