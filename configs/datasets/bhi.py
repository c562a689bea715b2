r"""Breast histopathology, one patch a party: two patches of one patient, ResNet-20 bottoms.

    python -m launch.sweep --config=configs/datasets/bhi.py --workdir=runs/bhi --config.data.dir=DIR

DIR holds Kaggle's patch folders or an npz file (`python -m launch.data`). Eight settings: undefended
and three scales of Laplace noise, two seeds; model completion with 70 labels, norm and mean. Rates,
batch, epochs, loss weights and top model are Fu et al.'s; width 8 instead of 16. Patients stay in
one part. The variant `:smoke` is smaller (the tests run it).
"""

from vfljax.config import ordered

SMOKE = {
    "data": {"train": 30, "validation": 16, "test": 16},
    "model": {"options": {"width": 2, "blocks": (1,)}},
    "training": {"epochs": 1, "batch_size": 15},
    "attacks": {"passive": {"known": 8, "steps": 4}, "norm": {}, "mean": {"known": 8}},
}


def get_config(variant=""):
    values = {
        "name": "bhi",
        "notes": (
            "Width 8; published 16. 150 completion steps with EMA .99; published 10 x 1,024.",
        ),
        "seeds": 2,
        "data": {
            "name": "bhi",
            "dir": "",
            "options": {"patches": 2},
            "train": 0.6,
            "validation": 0.15,
            "test": 0.2,  # what groups leave over is not used
            "scaling": "range",
        },
        "parties": {"passive": 1, "label_features": True},
        "model": {
            "bottom": "resnet20",
            "options": {"width": 8},
            "cut": 5,
            "top": "head",
            "top_hidden": (10, 10, 10),
            "aggregation": "concatenate",
        },
        "training": {
            "epochs": 5,
            "batch_size": 64,
            "optimizer": "sgd",
            "learning_rate": 0.05,
            "momentum": 0.9,
            "weight_decay": 5e-4,
            "milestones": (4,),
            "decay": 0.1,
            "class_weights": (0.3, 1.0),
        },
        "grid": {"undefended": {}, "noise": {"noise": {"scale": (1e-4, 1e-3, 1e-2)}}},
        "attacks": {
            "passive": {"known": 70, "steps": 150, "ema": 0.99, "batch_size": 32},
            "norm": {},
            "mean": {"known": 70},
        },
    }
    if variant == "smoke":
        for group, changes in SMOKE.items():
            values[group] = {**values[group], **changes}
    return ordered(values)
