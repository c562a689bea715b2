"""What bfloat16 products change: the quickstart's digits with a few defenses, in either precision.

    python -m launch.sweep --config=configs/precision.py:bfloat16 --workdir=runs/precision/bfloat16
    python -m analysis.precision --workdir=runs/precision --out=analysis/results/benchmark/precision

The variant is `config.training.precision`: float32 (the default) or bfloat16. The second command runs both
and puts their accuracies and worst cases side by side, in a few minutes on 2 cores
(`analysis/results/benchmark/precision/README.md`). Seven points of five defenses and none, 5 seeds, with and
without model splitting: label smoothing by a teacher (KDk), a penalty with products of its own (dCor), and
gradients that are noised, cut down and rounded again. Federation and rates are configs/quickstart.py's;
attacks are those that read embeddings, gradients and models.
"""

from vfljax.config import ordered


def get_config(variant="float32"):
    return ordered(
        {
            "name": f"products in {variant}",
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
                "precision": variant,
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
            },
            "execution": {"width": 0, "shard_seconds": 20.0},
        }
    )
