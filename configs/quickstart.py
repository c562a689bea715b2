"""The main job on scikit-learn's digits: a grid of KDk (epsilon, k) and noise scales, attacked.

    python -m launch.sweep --config=configs/quickstart.py --workdir=runs/quickstart

Two parties: the passive one (the attacker) owns the left half of each image, the label party the
right half and the labels. KDk at 5 epsilon x 3 k, noisy gradients at 5 scales and no defense, 3
seeds each, in three federations: honest with model splitting, with a malicious passive party, and
without model splitting: 189 trials. KDk at epsilon = 0 or k = 1 is no defense, and is left out.

Shorter than published, and the report says so: 30 epochs (Fu et al.: 100 on CIFAR-10) and 500
completion steps (25 x 1,024). The shape of the problem is theirs: 10 classes, cut of 10, SGD with
momentum .9 and weight decay 5e-4, batch 32, 40 known labels. Two numbers differ on purpose:
- rate .01, which Fu et al. use for their MLPs on tables (BCW), not the .1 of their ResNets;
- the completion's EMA is .99: .999 averages over 1,000 steps, twice what there are here.
"""

from vfljax.config import ordered


def get_config():
    return ordered(
        {
            "name": "quickstart",
            "notes": (
                "30 epochs of training, fewer than published (100 on CIFAR-10 in Fu et al.); the rate .01 "
                "is theirs for MLPs on tables.",
                "Model completion averages weights with EMA .99, published .999 (for 51 times the steps).",
            ),
            "seeds": 3,
            "known_draws": 5,
            "data": {
                "name": "digits",
                "dir": "",
                "train": 1088,  # 34 batches of 32: one batch shape, half the compile time
                "validation": 349,
                "test": 360,
                "scaling": "range",  # pixels to [0, 1]
            },
            "parties": {"passive": 1, "label_features": True},
            "model": {
                "bottom": "mlp",
                "hidden": (64,),
                "cut": 10,
                "top": "head",  # BN -> ReLU -> Linear, as Fu et al.: 20 -> 20 -> 10
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
                "milestones": (15, 25),  # 50 % and 83 % of the epochs (published: 50 % and 85 %)
                "decay": 0.1,
                "drop_last": False,
                "scope": "all",
            },
            "malicious": {"parties": ((0,),), "gamma": 1.0},
            "teacher": {
                "hidden": (64,),
                "epochs": 20,
                "batch_size": 32,
                "learning_rate": 1e-3,
                "temperature": 1.0,
            },
            "grid": {
                "undefended": {},
                "kdk": {"kdk": {"epsilon": (0.15, 0.3, 0.45, 0.6, 0.75), "k": (2, 3, 5)}},
                "noise": {"noise": {"scale": (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)}},
            },
            "attacks": {
                "passive": {"known": 40, "steps": 500, "ema": 0.99},
                "active": {"known": 40, "steps": 500, "ema": 0.99},
                "direct": {"rule": ("first_negative", "most_negative", "least_negative")},
                # the mean over epochs knows noise; spreading knows KDk with model splitting
                "probe": {"known": 40, "epoch": (-1, "mean")},
                "spreading": {"known": 40},
            },
            "decide": True,
            "execution": {"width": 0, "shard_seconds": 20.0},
        }
    )
