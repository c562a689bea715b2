r"""GAFM's Table 2, Spambase: vanilla, MaxNorm, Marvell and GAFM, 10 seeds, from a folder you give.

    python -m launch.sweep --config=configs/papers/gafm_table2_spambase.py --workdir=runs/table2 \
        --config.data.dir=DIR

DIR holds UCI's spambase.data.
"""

from vfljax.config import ordered


def get_config():
    return ordered(
        {
            "name": "gafm_table2_spambase",
            "seeds": 10,
            "data": {
                "name": "spambase",
                "dir": "",
                "train": 0.7,
                "validation": 0.1,
                "test": 0.2,
                "scaling": "standard",
                "scaling_rows": "all",
            },
            "parties": {"passive": 1, "label_features": False},
            "model": {
                "bottom": "mlp",
                "hidden": (16,),
                "activation": "leaky_relu",
                "output": "sigmoid",
                "cut": 1,
                "top": "probability",
                "top_hidden": (),
                "aggregation": "mean",
                "weights": "torch",
            },
            "training": {
                "epochs": 300,
                "batch_size": 1028,
                "optimizer": "adam",
                "learning_rate": 1e-4,
                "momentum": 0.0,  # not read by Adam
                "weight_decay": 0.0,
                "milestones": (),
                "decay": 1.0,
                "drop_last": False,
                "scope": "all",
                "record": (-1,),
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
            "attacks": {
                "norm": {},
                "mean": {"oracle": True},
                "median": {"oracle": True},
            },
            "execution": {"width": 0, "shard_seconds": 60.0},
        }
    )
