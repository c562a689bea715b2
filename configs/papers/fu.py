"""What Fu et al.'s attacks share: their data sets and networks.

Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX Security 2022. Rates, batches,
epochs, the cut, the known labels and the steps of model completion are those of their released code. KDk builds
on it, so that ``configs.papers.kdk`` holds the sets both have; here the bottoms of images are the
released ResNet-20, and BHI is added.
"""

from __future__ import annotations

from typing import Any

from configs.papers import kdk

BHI: dict[str, Any] = {
    "spelled": "BHI",
    "data": {
        "name": "bhi",
        "dir": "",
        "options": {"patches": 2, "rows": 86_477},
        "train": 0.78,
        "validation": 0.02,
        "test": 0.19,  # patients stay in one part; what that leaves over is not used
        "scaling": "range",
    },
    "model": {
        "bottom": "resnet20",
        "options": {},
        "cut": 5,
        "top": "head",
        "top_hidden": (10, 10, 10),
    },
    "training": {
        "epochs": 5,
        "batch_size": 64,
        "learning_rate": 0.05,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "milestones": (4,),
        "class_weights": (0.3, 1.0),
    },
    "completion": {"known": 70, "steps": 10 * kdk.EPOCH, "batch_size": 32},
    "sample": {  # some rows of two patches, of few patients, who stay in one part
        "data": {"options": {"patches": 2, "rows": 0}, "train": 0.7},
        "model": {"options": {"width": 8}},
        "training": {"epochs": 10, "batch_size": 32, "milestones": (8,)},
        "completion": {"ema": 0.99, "steps": 300},
    },
}


def _of(name: str) -> dict[str, Any]:
    values = {group: fields for group, fields in kdk.DATASETS[name].items() if group != "teacher"}
    if name in kdk.IMAGES:
        values["model"] = {**values["model"], "bottom": "resnet20"}
    return values


DATASETS = {**{name: _of(name) for name in kdk.DATASETS}, "bhi": BHI}
CLASSES = {"cifar10": 10, "cifar100": 100, "cinic10": 10, "yahoo": 10, "criteo": 2, "bhi": 2}
