r"""A user's own CSV: default of credit card clients (UCI), a bank and its partner.

    python -m launch.sweep --config=configs/datasets/default_credit.py \
        --workdir=runs/default_credit --config.data.dir=FILE.csv

FILE.csv (or .csv.gz) is Kaggle's UCI_Credit_Card.csv: 30,000 clients, 22 % default. The passive party
owns the payment history, the label party (the bank) who the clients are, their limit and the label.
Copy this file for a table of your own: name the label, the columns to drop, those whose numbers are
codes, and who owns what. Eight settings: undefended, noise and compression, two seeds. The variant
`:smoke` is smaller (the tests run it).
"""

from vfljax.config import ordered

SMOKE = {
    "data": {"train": 40, "validation": 8, "test": 8},
    "training": {"epochs": 1, "batch_size": 20},
    "attacks": {"passive": {"known": 8, "steps": 4}, "norm": {}, "mean": {"known": 8}},
}
LABEL = "default.payment.next.month"


def get_config(variant=""):
    values = {
        "name": "default_credit",
        "notes": ("500 completion steps with EMA .99.",),
        "seeds": 2,
        "data": {
            "name": "table",
            "dir": "",
            "options": {
                "label": LABEL,
                "drop": ("ID",),
                "categorical": ("SEX", "EDUCATION", "MARRIAGE"),
            },
            "train": 0.6,
            "validation": 0.2,
            "test": 0.2,
            "scaling": "standard",
        },
        "parties": {"passive": 1, "label_features": True, "columns": (("PAY_*", "BILL_*"), "*")},
        "model": {
            "bottom": "mlp",
            "hidden": (32,),
            "cut": 8,
            "top": "head",
            "top_hidden": (8,),
            "aggregation": "concatenate",
        },
        "training": {
            "epochs": 10,
            "batch_size": 256,
            "optimizer": "sgd",
            "learning_rate": 0.05,
            "momentum": 0.9,
            "weight_decay": 5e-4,
        },
        "grid": {
            "undefended": {},
            "noise": {"noise": {"scale": (1e-4, 1e-3)}},
            "compression": {"compression": {"keep_rate": 0.25}},
        },
        "attacks": {
            "passive": {
                "known": 40,
                "steps": 500,
                "ema": 0.99,
                "lambda_u": (50, 1),  # 50 as published can call all rows one of two classes
            },
            "norm": {},
            "mean": {"known": 40},
        },
    }
    if variant == "smoke":
        for group, changes in SMOKE.items():
            values[group] = {**values[group], **changes}
    return ordered(values)
