"""The data sets of LeakBench: parties, networks, training and attacks, frozen with AutoLeak's version.

    python -m launch.leakbench --data=digits --entry=flips.json --plugin=flips.py --workdir=runs/flips_digits
    python -m launch.sweep --config=configs/leakbench.py:digits --workdir=runs/undefended

The variant is a data set's name, `configs/leakbench.py:spambase`. Networks, shares, batches and epochs are
those that an audit takes for a table of that size. Five seeds; each seed has its own split, the same for every
entry. The grid holds the undefended federation alone, to which an entry adds its method. The config needs a
checkout, because the boards are in ``analysis.leakbench``.

`--data_dir`, in a sweep `--config.data.dir`, is the folder of UCI's spambase.data, and of the tables the file:
Kaggle's UCI_Credit_Card.csv for default_credit, UCI's bank-full.csv for bank_marketing, compressed or not.
"""

from analysis.leakbench import boards
from analysis.leakbench.autoleak import autoleak
from vfljax import suite
from vfljax.config import ordered

MLP = {"bottom": "mlp", "hidden": (32,), "activation": "leaky_relu"}
TWO_CLASSES = {**MLP, "cut": 4, "top": "generator", "aggregation": "mean"}
TEN_CLASSES = {"cut": 10, "top": "head", "aggregation": "concatenate"}
TABLES = {
    "digits": {
        "data": {"name": "digits", "scaling": "range"},
        "model": {**MLP, **TEN_CLASSES},
        "training": {"epochs": 24, "batch_size": 32},
    },
    "breast_cancer": {
        "data": {"name": "breast_cancer"},
        "shares": (0.9, 0.1),  # in halves the federation gains nothing
        "model": TWO_CLASSES,
        "training": {"epochs": 30, "batch_size": 16},
    },
    "spambase": {
        "data": {"name": "spambase", "dir": ""},
        "model": TWO_CLASSES,
        "training": {"epochs": 19, "batch_size": 64},
    },
    "default_credit": {
        "data": {
            "name": "table",
            "dir": "",
            "options": {
                "label": "default.payment.next.month",
                "drop": ("ID",),
                "categorical": ("SEX", "EDUCATION", "MARRIAGE"),
            },
        },
        "columns": (("PAY_[0-9]",), "*"),
        "model": TWO_CLASSES,
        "training": {"epochs": 11, "batch_size": 256, "record_rows": 2000},
    },
    # "duration" is known after the call alone, and tells its outcome
    "bank_marketing": {
        "data": {
            "name": "table",
            "dir": "",
            "options": {"label": "y", "drop": ("duration",), "options": {"sep": ";"}},
        },
        "columns": (("contact", "day", "month", "campaign", "pdays", "previous", "poutcome"), "*"),
        "model": TWO_CLASSES,
        "training": {"epochs": 8, "batch_size": 256, "record_rows": 2000},
    },
    "cifar10": {
        "data": {"name": "cifar10", "dir": "", "train": 4000, "validation": 1000, "test": 1000},
        "model": {**TEN_CLASSES, "bottom": "resnet20"},
        "training": {"epochs": 13, "batch_size": 64, "record_rows": 2000},
    },
}


FEDERATIONS = ("split", "malicious", "no_split")


def get_config(variant="digits"):
    table = TABLES[variant]
    classes = 2 if table["model"]["top"] == "generator" else 10
    return ordered(
        {
            "name": f"leakbench_{variant}",
            "seeds": 5,
            **suite.trained(
                classes,
                data=table["data"],
                parties={
                    "passive": 1,
                    "label_features": True,
                    "columns": table.get("columns", ()),
                    "shares": table.get("shares", ()),
                },
                training=table["training"],
            ),
            "model": {"top_hidden": (16,), **table["model"]},
            "known_draws": 5,
            "malicious": {"parties": ((0,),), "gamma": 1.0},
            "teacher": {
                "hidden": (20,),
                "epochs": 10,
                "batch_size": table["training"]["batch_size"],
                "learning_rate": 1e-3,
            },
            "federations": FEDERATIONS,
            "grid": {boards.UNDEFENDED: {}},
            "skip_settled": False,  # entries are compared attack by attack
            "attacks": suite.suited(autoleak().attacks, FEDERATIONS, boards.KNOWN, classes),
        }
    )
