"""What the configs of GAFM's tables share: its four data sets, networks, arms, knobs and attacks.

Han, Guan. "GAN-based Vertical Federated Learning for Label Protection in Binary Classification", 2023:
sections 3.1 and 4.1, Table D.1, appendices C.2 and E. One passive party owns all columns, or three share
them; the label party owns the label alone, and averages what it gets.

    spambase  57 -> 16 -> 1, LeakyReLU, sigmoid; columns to mean 0 and variance 1 over all rows
    imdb      500 -> 256 -> 128 -> 1, ReLU, dropout .5, sigmoid; the 500 most frequent words, 0 or 1
    criteo    wide & deep, embedding 16, MLP 16-16 with batch norm and dropout .2, f one logit
    isic      three convolutions and 120-84-40, f 40 numbers; 64x64 gray images

Where the bottom ends in a sigmoid, the undefended f is the prediction itself. Elsewhere the label party
reads it by a logit function h, one linear unit (section 3.1). With GAFM the generator, 1 -> 16 -> 1 or
40 -> 16 -> 1, stands in their place.

Published splits leave no validation rows. Here strengths are chosen on some, which are taken from the
published test share: 10 % of Spambase, 5 % of the others.

``DATASET-reduced`` stands for a data set that is not at hand whole: "criteo-reduced" takes any file of
Criteo's rows, "isic-reduced" HAM10000 at 32x32, both for fewer epochs at a higher rate. They can show
whether methods come in the published order, and no more.
"""

from vfljax.config import ordered
from vfljax.errors import unknown

GENERATOR = {"top": "generator", "top_hidden": (16,)}
LOGIT = {"top": "generator", "top_hidden": ()}  # h: one linear unit, and no hidden one
PROBABILITY = {"top": "probability", "top_hidden": ()}

# Table D.1; c and the rates of appendix E.3; the discriminator's widths are the released code's
KNOBS = {
    "spambase": {"delta": 0.05, "gamma": 1.0, "sigma": 0.01, "clip": 0.1, "learning_rate": 1e-4},
    "imdb": {"delta": 0.1, "gamma": 1.0, "sigma": 0.01, "clip": 0.1, "learning_rate": 1e-4},
    "criteo": {
        "delta": 0.5,
        "gamma": 1.0,
        "sigma": 0.01,
        "clip": 0.1,
        "learning_rate": 1e-4,
        "discriminator": "10",
    },
    "isic": {
        "delta": 0.05,
        "gamma": 20.0,
        "sigma": 0.01,
        "clip": 0.1,
        "learning_rate": 1e-6,
        "discriminator": "10",
    },
}

# 70/30, 50/50, 80/20 and 80/20 in the paper; validation rows are taken from its test rows
DATA = {
    "spambase": {
        "train": 0.7,
        "validation": 0.1,
        "test": 0.2,
        "scaling": "standard",
        "scaling_rows": "all",  # as released
    },
    "imdb": {
        "options": {"form": "words", "words": 500, "split": "redrawn"},
        "train": 0.5,
        "validation": 0.05,
        "test": 0.45,
        "scaling": "none",
    },
    "criteo": {
        "options": {"form": "frequent", "file": "", "rows": 0},
        "train": 0.8,
        "validation": 0.05,
        "test": 0.15,
        "scaling": "none",
    },
    "isic": {
        "options": {"size": 64, "gray": True, "groups": False},
        "train": 0.8,
        "validation": 0.05,
        "test": 0.15,
        "scaling": "none",
    },
}

COMMON = {"cut": 1, "aggregation": "mean", "weights": "torch"}
MODEL = {
    "spambase": {
        "bottom": "mlp",
        "hidden": (16,),
        "activation": "leaky_relu",
        "output": "sigmoid",
        **PROBABILITY,
        **COMMON,
    },
    "imdb": {
        "bottom": "mlp",
        "hidden": (256, 128),
        "activation": "relu",
        "options": {"dropout": 0.5},
        "output": "sigmoid",
        **PROBABILITY,
        **COMMON,
    },
    "criteo": {
        "bottom": "wide_deep",
        "options": {"embedding": 16, "batch_norm": True, "dropout": 0.2},
        "hidden": (16, 16),
        "output": "identity",
        **LOGIT,
        **COMMON,
    },
    "isic": {
        "bottom": "cnn_gafm",
        "output": "identity",
        **LOGIT,
        **COMMON,
        "cut": 40,
    },
}

ADAM = {"optimizer": "adam", "momentum": 0.0, "weight_decay": 0.0, "record": (-1,)}
TRAINING = {  # appendix E.3
    "spambase": {"epochs": 300, "batch_size": 1028, "learning_rate": 1e-4, **ADAM},
    "imdb": {"epochs": 300, "batch_size": 1028, "learning_rate": 1e-4, **ADAM},
    "criteo": {"epochs": 100, "batch_size": 256, "learning_rate": 1e-4, **ADAM},
    "isic": {"epochs": 250, "batch_size": 256, "learning_rate": 1e-6, **ADAM},
}

ATTACKS = {
    "norm": {},
    "mean": {"oracle": True},
    "median": {"oracle": True},  # eq. 9
    "global_median": {},  # what the released code runs as the median attack
}

NOTES = {
    "spambase": "The published 30 % of test rows are 20 % here; on the other 10 % strengths would be "
    "chosen.",
    "imdb": "The published 50 % of test rows are 45 % here, drawn anew for each seed; on the other 5 % "
    "strengths would be chosen.",
    "criteo": "The published 20 % of test rows are 15 % here; on the other 5 % strengths would be "
    "chosen.",
    "isic": "The published 20 % of test rows are 15 % here; on the other 5 % strengths would be chosen.",
}
CENTERS = (
    "Utilities are those of the final model in evaluation mode on all test rows. Norms, means and "
    "medians are of the last epoch, its batches pooled. The mean and median attacks know the true "
    "centers, as published."
)
SHARES = {"spambase": (), "imdb": (2, 2, 1), "criteo": ()}  # of columns, appendix C.2; () equal

# what runs on a laptop and on a part of the rows: for claims, not for numbers
REDUCED = {
    "criteo": {
        "training": {"epochs": 20, "learning_rate": 1e-3},
        "note": "Reduced: the rows at hand, 20 epochs at 1e-3; published 100 at 1e-4 on all rows.",
    },
    "isic": {
        "data": {"options": {"size": 32, "gray": True, "groups": False}},
        "training": {"epochs": 50, "learning_rate": 1e-4},
        "note": "Reduced: the images at hand at 32x32, 50 epochs at 1e-4; published 64x64, 250 at 1e-6.",
    },
}


def named(variant, datasets, others=()):
    """(data set, rule) of a config's ``variant``, the rule "" or "reduced" or its own; "" is the first
    of ``datasets``, and ``others`` are a config's own named rules, such as "spambase-rules"."""
    every = [*datasets, *(f"{name}-reduced" for name in datasets if name in REDUCED), *others]
    variant = variant or datasets[0]
    if variant not in every:
        raise unknown("variant of this config", variant, every)
    dataset, _, rule = variant.partition("-")
    return dataset, rule


def gafm(dataset, **changes):
    """The arm of GAFM with Table D.1's knobs, but for ``changes`` of knobs and options."""
    return {"model": GENERATOR, "gafm": {**KNOBS[dataset], **changes}}


def baselines():
    """The arms GAFM is compared with: none, MaxNorm, and Marvell as the released comparison ran it."""
    return {
        "undefended": {},
        "max_norm": {"max_norm": {}},
        "marvell": {"marvell": {"power": 1.0, "dimension": "batch"}},
    }


def config(
    table, dataset, grid, rule="", *, parties=1, notes=(), seeds=10, data=None, training=None
):
    """The config of one table on one data set: published but for the ``grid``, the number of passive
    ``parties``, and fields of ``data`` and ``training``; ``rule`` "reduced" is a data set's own."""
    reduced = REDUCED[dataset] if rule == "reduced" else {}
    shares = {"shares": SHARES[dataset]} if parties > 1 else {}
    own = (NOTES[dataset], CENTERS, *((reduced["note"],) if reduced else ()))
    return ordered(
        {
            "name": f"gafm_{table}_{dataset}{'_' if rule else ''}{rule}",
            "notes": (*own, *notes),
            "seeds": seeds,
            "data": {
                "name": dataset,
                "dir": "",
                **DATA[dataset],
                **reduced.get("data", {}),
                **(data or {}),
            },
            "parties": {"passive": parties, "label_features": False, **shares},
            "model": MODEL[dataset],
            "training": {**TRAINING[dataset], **reduced.get("training", {}), **(training or {})},
            "grid": grid,
            "attacks": ATTACKS,
            "execution": {"width": 0, "shard_seconds": 60.0},
        }
    )
