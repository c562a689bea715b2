r"""A tiny BERT on IMDB's text: each party reads half of every review.

    python -m launch.sweep --config=configs/datasets/imdb_bert.py --workdir=runs/imdb_bert \
        --config.data.dir=DIR

DIR holds the reviews in any layout `python -m launch.data` names; needs `pip install '.[text]'`.
Two parties, 2 layers of width 128, WordPiece learned from the training reviews. Eight settings:
undefended and KDk at three epsilon, two seeds; model completion with 40 labels. 4,000 reviews and 64
tokens a party: a check that everything runs, not a result. To start from released weights, add
--config.model.pretrained=model.safetensors and their vocabulary, --config.data.options.vocabulary=vocab.txt.
The variant `:smoke` is smaller (the tests run it).
"""

from vfljax.config import ordered

SMOKE = {
    "data": {
        "train": 24,
        "validation": 8,
        "test": 8,
        "options": {"form": "wordpiece", "length": 8, "vocabulary_size": 120, "vocabulary": ""},
    },
    "model": {"options": {"hidden": 8, "layers": 1, "intermediate": 8}},
    "training": {"epochs": 1, "batch_size": 12},
    "teacher": {"epochs": 1, "options": {"hidden": 8, "layers": 1, "intermediate": 8}},
    "attacks": {"passive": {"known": 8, "steps": 4}},
}


def get_config(variant=""):
    values = {
        "name": "imdb_bert",
        "notes": ("4,000 reviews, 64 tokens a party. 200 completion steps, EMA .99.",),
        "seeds": 2,
        "data": {
            "name": "imdb",
            "dir": "",
            "options": {
                "form": "wordpiece",
                "length": 64,
                "vocabulary": "",
                "vocabulary_size": 8192,
                "rows": 5000,
            },
            "train": 4000,
            "validation": 1000,
            "test": 2000,
            "scaling": "none",
        },
        "parties": {"passive": 1, "label_features": True},
        "model": {
            "bottom": "bert_tiny",
            "cut": 10,
            "top": "head",
            "top_hidden": (10,),
            "aggregation": "concatenate",
        },
        "training": {
            "epochs": 3,
            "batch_size": 32,
            "optimizer": "adam",
            "learning_rate": 5e-4,
            "momentum": 0.0,
            "weight_decay": 0.0,
        },
        "teacher": {
            "network": "bert_tiny",
            "epochs": 3,
            "batch_size": 32,
            "learning_rate": 5e-4,
            "temperature": 1.0,
        },
        "grid": {"undefended": {}, "kdk": {"kdk": {"epsilon": (0.15, 0.3, 0.45), "k": 2}}},
        "attacks": {"passive": {"known": 40, "steps": 200, "ema": 0.99}},
    }
    if variant == "smoke":
        for group, changes in SMOKE.items():
            values[group] = {**values[group], **changes}
    return ordered(values)
