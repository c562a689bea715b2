r"""IMDB reviews as the 500 most frequent words, 0 or 1: GAFM's network, GAFM and Marvell.

    python -m launch.sweep --config=configs/datasets/imdb.py --workdir=runs/imdb --config.data.dir=DIR

DIR holds the reviews in any layout `python -m launch.data` names. One passive party owns the words,
the label party the label (GAFM 2023, section 4 and appendix E): 500 -> 256 -> 128 -> 1, dropout .5,
sigmoid, batch 1,028, Adam at 1e-4. Eight settings: undefended, MaxNorm, Marvell and GAFM, two seeds.
60 epochs in place of 300. The variant `:smoke` is smaller (the tests run it).
"""

from vfljax.config import ordered

SMOKE = {
    "data": {"train": 40, "validation": 8, "test": 20, "options": {"form": "words", "words": 8}},
    "training": {"epochs": 1, "batch_size": 20},
    "attacks": {"norm": {}, "global_median": {}},
}


def get_config(variant=""):
    values = {
        "name": "imdb",
        "notes": ("60 epochs; GAFM trains 300.",),
        "seeds": 2,
        "data": {
            "name": "imdb",
            "dir": "",
            "options": {"form": "words", "words": 500},
            "train": 0.9,  # of the published 25,000 training reviews
            "validation": 0.1,
            "test": 1.0,
            "scaling": "none",
        },
        "parties": {"passive": 1, "label_features": False},
        "model": {
            "bottom": "mlp",
            "hidden": (256, 128),
            "activation": "relu",
            "options": {"dropout": 0.5},
            "output": "sigmoid",
            "cut": 1,
            "top": "probability",
            "top_hidden": (),
            "aggregation": "mean",
            "weights": "torch",
        },
        "training": {
            "epochs": 60,
            "batch_size": 1028,
            "optimizer": "adam",
            "learning_rate": 1e-4,
            "momentum": 0.0,
            "weight_decay": 0.0,
        },
        "grid": {
            "undefended": {},
            "max_norm": {"max_norm": {}},
            "marvell": {"marvell": {"power": 1.0, "dimension": "batch"}},
            "gafm": {
                "model": {"top": "generator", "top_hidden": (16,)},
                "gafm": {"delta": 0.05, "gamma": 1.0, "sigma": 0.01, "clip": 0.1},
            },
        },
        "attacks": {"norm": {}, "mean": {"known": 20}, "global_median": {}, "spectral": {}},
    }
    if variant == "smoke":
        for group, changes in SMOKE.items():
            values[group] = {**values[group], **changes}
    return ordered(values)
