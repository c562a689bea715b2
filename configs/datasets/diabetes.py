"""Labels that are numbers: scikit-learn's diabetes, with and without a top model.

    python -m launch.sweep --config=configs/datasets/diabetes.py --workdir=runs/diabetes

442 patients, and the progression of their disease after a year, from 25 to 346. The passive party has the first
five columns (age, sex, body mass index, blood pressure, total cholesterol), the label party the other five. The
loss is the squared error of standardized labels. Not a published set-up.
"""

from vfljax.config import ordered


def get_config():
    return ordered(
        {
            "name": "diabetes",
            "notes": ("500 completion steps with EMA .99; published 25 x 1,024 with .999.",),
            "seeds": 3,
            "known_draws": 2,
            "data": {
                "name": "diabetes",
                "dir": "",
                "train": 256,  # 16 batches of 16
                "validation": 93,
                "test": 93,
                "scaling": "standard",
            },
            "parties": {"passive": 1, "label_features": True},
            "model": {
                "task": "regression",
                "bottom": "mlp",
                "hidden": (16,),
                "cut": 4,
                "top": "head_plain",
                "top_hidden": (8,),
                "aggregation": "concatenate",
            },
            "training": {
                "epochs": 30,
                "batch_size": 16,
                "optimizer": "adam",
                "learning_rate": 2e-3,
                "momentum": 0.0,
                "weight_decay": 0.0,
                "huber": 0.0,  # the squared error
            },
            "malicious": {"parties": ((0,),), "gamma": 1.0},
            "grid": {
                "undefended": {},
                "noise": {"noise": {"scale": (1e-2, 1e-1)}},
                "dcor": {"dcor": {"alpha": (0.1, 1.0)}},
            },
            "federations": ("split", "malicious", "no_split"),
            "attacks": {
                "passive": {"known": 40, "steps": 500, "ema": 0.99},
                "active": {"known": 40, "steps": 500, "ema": 0.99},
                "direct": {"epoch": (0, -1), "own": (False, True)},
                "norm": {},
                "cosine": {"known": 40},
                "spectral": {"signal": ("embeddings", "gradients")},
                "probe": {"known": 40, "epoch": (-1, "mean")},
                "ranks": {"known": 40},
                "joint": {"known": 40},
                "reader": {"known": 40},
            },
            "execution": {"width": 0, "shard_seconds": 20.0},
        }
    )
