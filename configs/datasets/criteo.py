r"""Criteo display advertising: wide & deep bottoms, distance correlation and label DP.

    python -m launch.sweep --config=configs/datasets/criteo.py --workdir=runs/criteo \
        --config.data.dir=DIR

DIR holds Kaggle's train.txt (or train.csv), plain or .gz (`python -m launch.data`); of several
files name one: --config.data.options.file=NAME. 13 numbers and 26 fields hashed into 10,000 codes
each. One passive party owns the columns, the label party the label (Sun et al. 2022): embedding 4,
five ReLU layers of 128, cut 128, three layers on top. Eight settings: undefended, dCor at two weights
and label DP, two seeds; spectral, norm and probe attacks. Batch 1,024 and 10 epochs at rate 1e-3 for
a sample of 10,000 rows; published 8,192, 3 and 1e-4 for all. The variant `:smoke` is smaller (the
tests run it).
"""

from vfljax.config import ordered

SMOKE = {
    "data": {"train": 40, "validation": 8, "test": 8, "options": {"form": "codes", "buckets": 50}},
    "model": {"hidden": (8,), "cut": 4, "top_hidden": (4,)},
    "training": {"epochs": 1, "batch_size": 20},
    "attacks": {"norm": {}, "spectral": {}},
}


def get_config(variant=""):
    values = {
        "name": "criteo",
        "notes": (
            "Batch 1,024, 10 epochs at 1e-3; Sun et al.: 8,192, 3 and 1e-4 on all rows.",
            "The deep part alone: a linear table as wide as the cut would be most of the weights.",
        ),
        "seeds": 2,
        "data": {
            "name": "criteo",
            "dir": "",
            "options": {"form": "codes", "buckets": 10_000, "file": "", "rows": 0},
            "train": 0.8,
            "validation": 0.1,
            "test": 0.1,
            "scaling": "minmax",
        },
        "parties": {"passive": 1, "label_features": False},
        "model": {
            "bottom": "wide_deep",
            "options": {"embedding": 4, "wide": False},
            "hidden": (128, 128, 128, 128, 128),
            "cut": 128,
            "top": "mlp",
            "top_hidden": (128, 128),
            "aggregation": "concatenate",
        },
        "training": {
            "epochs": 10,
            "batch_size": 1024,
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "momentum": 0.0,
            "weight_decay": 0.0,
        },
        "grid": {
            "undefended": {},
            "dcor": {"dcor": {"alpha": (0.003, 0.03)}},
            "label_dp": {"label_dp": {"epsilon": 1.0}},
        },
        "attacks": {"norm": {}, "spectral": {}, "probe": {"known": 40}},
    }
    if variant == "smoke":
        for group, changes in SMOKE.items():
            values[group] = {**values[group], **changes}
    return ordered(values)
