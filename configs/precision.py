"""What bfloat16 changes: digits or reduced CIFAR-10 with a few defenses, in either precision, and a control.

    python -m launch.sweep --config=configs/precision.py:bfloat16 --workdir=runs/precision/bfloat16
    python -m analysis.precision --workdir=runs/precision --out=analysis/results/benchmark/precision
    python -m analysis.precision --images=DIR --workdir=runs/precision_images \
        --out=analysis/results/benchmark/precision/images

The variant is `config.training.precision`: float32 (the default) or bfloat16. "control" is float32 with a
learning rate that is larger by a millionth: what differs there, rounding of any size may change.
"images-float32", "images-bfloat16" and "images-control" are those of CIFAR-10, which DIR holds
(`config.data.dir`). The other commands run all three and put their accuracies and leaks side by side
(`analysis/results/benchmark/precision/README.md`).

Digits are read by MLPs. Seven points of five defenses and none, 5 seeds, with and without model splitting:
label smoothing by a teacher (KDk), a penalty with products of its own (dCor), and gradients that are noised,
cut down and rounded again. Federation and rates are configs/quickstart.py's; attacks are those that read
embeddings, gradients and models.

CIFAR-10 is read by ResNets: 2,048 images, width 8 and three blocks in place of 49,000 images, width 64 and
eight; three points with model splitting, 5 seeds.
"""

from vfljax.config import ordered

IMAGES = {
    "data": {
        "name": "cifar10",
        "dir": "",
        "train": 2048,  # 32 batches of 64
        "validation": 256,
        "test": 1000,
        "scaling": "range",
    },
    "model": {
        "bottom": "resnet18",
        "options": {"width": 8, "blocks": (1, 1, 1), "stem": "imagenet"},
        "cut": 10,
        "top": "head",
        "top_hidden": (20,),
        "aggregation": "concatenate",
    },
    "training": {"epochs": 8, "batch_size": 64, "learning_rate": 0.1, "milestones": (4, 7)},
    "grid": {
        "undefended": {},
        "noise": {"noise": {"scale": 1e-3}},
        "compression": {"compression": {"keep_rate": 0.5}},
    },
    "federations": ("split",),
    "attacks": {
        "passive": {"known": 40, "steps": 200, "ema": 0.99},
        "probe": {"known": 40},
        "similarity": {"known": 40},
        "spreading": {"known": 40},
    },
    "teacher": {},
    "notes": (
        "8 epochs on 2,048 images, width 8; published 100 epochs on 49,000, width 64.",
        "The rate .1 is published.",
        "200 steps of model completion with EMA .99; published 25,600 with .999.",
    ),
}


MILLIONTH = 1e-6


def get_config(variant="float32"):
    form = variant.removeprefix("images-")
    values = _digits("float32" if form == "control" else form)
    if variant != form:
        training = {**values["training"], **IMAGES["training"]}
        values = {**values, **IMAGES, "training": training}
    if form == "control":
        values["training"]["learning_rate"] *= 1 + MILLIONTH
    return ordered({**values, "name": f"networks in {form}"})


def _digits(precision):
    return {
        "notes": (
            "30 epochs of training, fewer than published (100 on CIFAR-10 in Fu et al.); the rate .01 "
            "is theirs for MLPs on tables.",
            "Model completion averages weights with EMA .99, published .999 (for 50 times the steps).",
        ),
        "seeds": 5,
        "data": {
            "name": "digits",
            "dir": "",
            "train": 1088,  # 34 batches of 32
            "validation": 349,
            "test": 360,
            "scaling": "range",  # pixels to [0, 1]
        },
        "parties": {"passive": 1, "label_features": True},
        "model": {
            "bottom": "mlp",
            "hidden": (64,),
            "cut": 10,
            "top": "head",
            "top_hidden": (20,),
            "aggregation": "concatenate",
        },
        "training": {
            "epochs": 30,
            "batch_size": 32,
            "optimizer": "sgd",
            "learning_rate": 0.01,
            "momentum": 0.9,
            "weight_decay": 5e-4,
            "milestones": (15, 25),  # 50 % and 85 % of the epochs, as published
            "decay": 0.1,
            "drop_last": False,
            "scope": "all",
            "precision": precision,
        },
        "teacher": {
            "hidden": (64,),
            "epochs": 20,
            "batch_size": 32,
            "learning_rate": 1e-3,
            "temperature": 1.0,
        },
        "grid": {
            "undefended": {},
            "kdk": {"kdk": {"epsilon": (0.3, 0.6), "k": 3}},
            "dcor": {"dcor": {"alpha": 0.1}},
            "noise": {"noise": {"scale": (1e-2, 3e-2)}},
            "compression": {"compression": {"keep_rate": 0.1}},
            "discrete_sgd": {"discrete_sgd": {"intervals": 12}},
        },
        "federations": ("split", "no_split"),
        "skip_settled": False,  # attacks are compared one by one
        "attacks": {
            "passive": {"known": 40, "steps": 500, "ema": 0.99},
            "direct": {"rule": ("first_negative", "most_negative", "least_negative")},
            "probe": {"known": 40},
            "similarity": {"known": 40},
            "spreading": {"known": 40},
        },
        "execution": {"width": 0, "shard_seconds": 20.0},
    }
