r"""HAM10000 skin lesions, melanoma or not (8 %): GAFM's convolutional bottom, gradient attacks.

    python -m launch.sweep --config=configs/datasets/ham10000.py --workdir=runs/ham10000 \
        --config.data.dir=DIR

DIR holds the images and their CSV, or an npz file (`python -m launch.data`); the same config reads
SIIM-ISIC 2020, the papers' set, with --config.data.name=isic. One passive party owns the image, the
label party the label alone (Li et al. 2022; GAFM 2023). Eight settings: undefended, MaxNorm and
Marvell at two powers, two seeds. Batch 256 as published; 20 epochs at rate 1e-3 in place of 250 at
1e-6, 32 x 32 in color in place of 64 x 64 in gray, a cut of 16 in place of 40 units.
The variant `:smoke` is smaller (the tests run it).
"""

from vfljax.config import ordered

SMOKE = {
    "data": {"train": 60, "validation": 30, "test": 30},
    "training": {"epochs": 1, "batch_size": 20},
    "attacks": {"norm": {}, "spectral": {}},
}


def get_config(variant=""):
    values = {
        "name": "ham10000",
        "notes": ("20 epochs at rate 1e-3; GAFM trains 250 at 1e-6.",),
        "seeds": 2,
        "data": {
            "name": "ham10000",
            "dir": "",
            "options": {"size": 32},
            "train": 0.7,
            "validation": 0.1,
            "test": 0.2,
            "scaling": "range",
        },
        "parties": {"passive": 1, "label_features": False},
        "model": {
            "bottom": "cnn_gafm",
            "cut": 16,
            "top": "mlp",
            "top_hidden": (16,),
            "aggregation": "concatenate",
        },
        "training": {
            "epochs": 20,
            "batch_size": 256,
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "momentum": 0.0,
            "weight_decay": 0.0,
        },
        "grid": {
            "undefended": {},
            "max_norm": {"max_norm": {}},
            "marvell": {"marvell": {"power": (1.0, 4.0)}},
        },
        "attacks": {"norm": {}, "mean": {"known": 20}, "spectral": {}, "probe": {"known": 40}},
    }
    if variant == "smoke":
        for group, changes in SMOKE.items():
            values[group] = {**values[group], **changes}
    return ordered(values)
