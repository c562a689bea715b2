r"""CIFAR-10 with ResNet-18 bottoms of reduced width: left half of each image against right half.

    python -m launch.sweep --config=configs/datasets/cifar10.py --workdir=runs/cifar10 \
        --config.data.dir=DIR

DIR holds CIFAR-10 in any layout `python -m launch.data` names. Eight settings: undefended and KDk at
three epsilon, two seeds; model completion with 40 labels. Width 8 and 4 epochs instead of the
published 64 and 100 (Fu et al. 2022; KDk 2024): a check that everything runs, not a result. Of the
full set, take part of it: --config.data.train=8000 --config.data.validation=1000.
The variant `:smoke` is smaller still (the tests run it).
"""

from vfljax.config import ordered

SMOKE = {
    "data": {"train": 64, "validation": 20, "test": 20},
    "model": {"options": {"width": 2, "blocks": (1, 1)}},
    "training": {"epochs": 1, "batch_size": 32},
    "teacher": {"epochs": 1, "options": {"width": 2, "blocks": (1, 1)}},
    "attacks": {"passive": {"known": 20, "steps": 4}},
}


def get_config(variant=""):
    values = {
        "name": "cifar10",
        "notes": ("Width 8, 4 epochs; published 64 and 100. 500 completion steps, EMA .99.",),
        "seeds": 2,
        "data": {
            "name": "cifar10",
            "dir": "",
            "train": 0.9,  # of the published training part
            "validation": 0.1,
            "test": 1.0,  # of the published test part
            "scaling": "range",
        },
        "parties": {"passive": 1, "label_features": True},
        "model": {
            "bottom": "resnet18",
            "options": {"width": 8},
            "cut": 10,
            "top": "head",
            "top_hidden": (20, 10, 10),
            "aggregation": "concatenate",
        },
        "training": {
            "epochs": 4,
            "batch_size": 64,
            "optimizer": "sgd",
            "learning_rate": 0.1,
            "momentum": 0.9,
            "weight_decay": 5e-4,
            "milestones": (2, 3),
            "decay": 0.1,
        },
        "teacher": {
            "network": "resnet18",
            "options": {"width": 8},
            "epochs": 4,
            "batch_size": 64,
            "learning_rate": 1e-3,
            "temperature": 1.0,
        },
        "grid": {"undefended": {}, "kdk": {"kdk": {"epsilon": (0.15, 0.45, 0.6), "k": 3}}},
        "attacks": {"passive": {"known": 40, "steps": 500, "ema": 0.99}},
    }
    if variant == "smoke":
        for group, changes in SMOKE.items():
            values[group] = {**values[group], **changes}
    return ordered(values)
