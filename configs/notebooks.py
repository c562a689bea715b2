"""The small sweep that the notebooks of ``analysis/`` train, and read again from disk.

    python -m launch.sweep --config=configs/notebooks.py --workdir=runs/notebooks

Scikit-learn's digits, two parties: the passive one (the attacker) owns the left half of each image, the
label party the right half and the labels. Three defenses at a few strengths, 5 seeds each, with and without
model splitting. About a minute on 2 cores.

It is there to be read, not to be quoted: 15 epochs, and 300 steps of model completion (published: 100
epochs on CIFAR-10, and 25,600 steps). ``configs/quickstart.py`` trains twice as long.
"""

from vfljax.config import ordered


def get_config():
    return ordered(
        {
            "name": "notebooks",
            "notes": ("15 epochs and 300 completion steps, far fewer than published: an example.",),
            "seeds": 5,
            "data": {
                "name": "digits",
                "train": 960,  # 30 batches of 32: one batch shape
                "validation": 400,
                "test": 400,
                "scaling": "range",  # pixels to [0, 1]
            },
            "parties": {"passive": 1, "label_features": True},
            "model": {
                "bottom": "mlp",
                "hidden": (32,),
                "cut": 10,
                "top": "head",  # BN -> ReLU -> Linear, as Fu et al.
                "top_hidden": (20,),
                "aggregation": "concatenate",
            },
            "training": {
                "epochs": 15,
                "batch_size": 32,
                "learning_rate": 0.02,
                "milestones": (10,),
            },
            "teacher": {"hidden": (32,), "epochs": 20, "batch_size": 32, "learning_rate": 1e-3},
            "federations": ("split", "no_split"),
            "grid": {
                "undefended": {},
                "kdk": {"kdk": {"epsilon": (0.3, 0.6), "k": 3}},
                "noise": {"noise": {"scale": (1e-3, 3e-3, 1e-2, 3e-2)}},
                "compression": {"compression": {"keep_rate": (0.5, 0.25, 0.1)}},
            },
            "skip_settled": False,  # the notebooks compare attacks one by one
            "attacks": {
                "passive": {"known": 40, "steps": 300, "ema": 0.99},
                "direct": {"rule": ("first_negative", "most_negative"), "epoch": (0, "mean")},
                "mean": {"known": 40},
            },
        }
    )
