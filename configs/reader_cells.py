"""The cells in which readers are tried against the attacks of an audit: a small sweep for each data set.

    python -m launch.sweep --config=configs/reader_cells.py --workdir=runs/cells/digits
    python -m analysis.readers --readers=analysis/readers/graphs.py --workdir=runs/cells/digits --every

The variants `quickstart`, `breast_cancer`, `spambase` and `default_credit` follow a colon:
`configs/reader_cells.py:spambase`. The last two need `--config.data.dir`, the folder of UCI's spambase.data or
the file UCI_Credit_Card.csv. An attacker knows 40 labels, and all attacks of an audit that apply are run.

`digits` and `quickstart` are the federation of configs/quickstart.py, whose networks, rates and epochs they
have; `quickstart` is attacked as that is, on six seeds. `class_splitting` is PSLF. The others have the networks
and the training of an audit. On Spambase the passive party owns the first 29 columns, of breast cancer the
first 27, and of default_credit ``PAY_*`` and ``BILL_*``.
"""

from configs import quickstart
from vfljax import suite
from vfljax.config import ordered

KNOWN = 40
FEDERATIONS = ("split", "malicious")
KDK = {"kdk": {"epsilon": 0.15, "k": (2, 5)}}
NOISE = {"noise": {"scale": 0.01}}
TEN_CLASSES = {
    "undefended": {},
    "kdk": KDK,
    "noise": NOISE,
    "kdk+noise": {"kdk": {"epsilon": 0.15, "k": 2}, **NOISE},
    "class_splitting": {"class_splitting": {"epsilon": 4.0}},
}
TWO_CLASSES = {
    "undefended": {},
    "kdk": {"kdk": {"epsilon": 0.15, "k": 2}},
    "noise": NOISE,
    "label_dp": {"label_dp": {"epsilon": (0.5, 2.0)}},
    "label_dp+noise": {"label_dp": {"epsilon": 2.0}, **NOISE},
    "marvell": {"marvell": {"power": 4.0}},
}
TABLES = {
    "breast_cancer": {
        "data": {"name": "breast_cancer"},
        "parties": {"passive": 1, "label_features": True, "shares": (0.9, 0.1)},
        "training": {"epochs": 30, "batch_size": 16},
    },
    "spambase": {
        "data": {"name": "spambase", "dir": ""},
        "parties": {"passive": 1, "label_features": True},
        "training": {"epochs": 19, "batch_size": 64, "record_rows": 2000},
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
        "parties": {
            "passive": 1,
            "label_features": True,
            "columns": (("PAY_*", "BILL_*"), "*"),
            "names": ("telco", "bank"),
        },
        "training": {"epochs": 11, "batch_size": 256, "record_rows": 2000},
    },
}


def of_digits(variant):
    """The quickstart's federation, under its own attacks or those of an audit."""
    config = {**quickstart.get_config().to_dict(), "decide": False}
    if variant == "quickstart":
        return {**config, "seeds": 6, "grid": {"undefended": {}, "kdk": KDK}}
    return {
        **config,
        "seeds": 3,
        "training": {**config["training"], "record": (0, 1, -1)},
        "federations": FEDERATIONS,
        "grid": TEN_CLASSES,
        "attacks": suite.suited(suite.ATTACKS, FEDERATIONS, KNOWN, 10),
    }


def of_table(variant):
    """A table of two classes, trained and attacked as in an audit."""
    table = TABLES[variant]
    return {
        "seeds": 3,
        "known_draws": suite.DRAWS,
        **suite.trained(2, table["data"], table["parties"], table["training"]),
        "malicious": {"parties": ((0,),), "gamma": 1.0},
        "teacher": {
            "hidden": (20,),
            "epochs": 10,
            "batch_size": table["training"]["batch_size"],
            "learning_rate": 1e-3,
        },
        "federations": FEDERATIONS,
        "grid": TWO_CLASSES,
        "attacks": suite.suited(suite.ATTACKS, FEDERATIONS, KNOWN, 2),
    }


def get_config(variant="digits"):
    digits = variant in ("digits", "quickstart")
    fields = of_digits(variant) if digits else of_table(variant)
    return ordered({**fields, "name": f"cells_{variant}", "notes": ()})
