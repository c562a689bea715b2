"""What readers of the wire find where earlier attacks found less: Spambase and default of credit card clients.

    python -m launch.sweep --config=configs/readers.py --workdir=runs/readers --config.data.dir=DIR
    python -m launch.sweep --config=configs/readers.py:default_credit --workdir=runs/readers_credit \
        --config.data.dir=UCI_Credit_Card.csv.gz

DIR holds UCI's spambase.data. The networks, shares and epochs are those of an audit (``vfljax audit``), and
an attacker knows 40 labels. On Spambase the passive party owns the first 29 columns; of default_credit it
owns ``PAY_*`` and ``BILL_*``.
"""

from vfljax import suite
from vfljax.config import ordered

SPAMBASE = {
    "data": {"name": "spambase", "dir": ""},
    "parties": {"passive": 1, "label_features": True},
    "training": {"epochs": 19, "batch_size": 64},
}
DEFAULT_CREDIT = {
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
    "training": {"epochs": 11, "batch_size": 256},
}
GRID = {
    "undefended": {},
    "dcor": {"dcor": {"alpha": 0.1}},
    "label_dp": {"label_dp": {"epsilon": (0.5, 2.0)}},
    "grad_perturb": {"grad_perturb": {"epsilon": (0.5, 1.0)}},
    "marvell": {"marvell": {"power": 4.0}},
    "pe_loss": {"pe_loss": {"alpha": (0.1, 0.5)}},
}
LEARNERS = ("ridge", "kernel", "lda", "both")
ATTACKS = {
    "residual": {},
    "probe": {"known": 40, "inputs": ("both", "gradients"), "epoch": (-1, "mean")},
    "similarity": {"known": 40},
    "joint": {"known": 40},
    "posterior": {
        "signal": ("entries", "direction"),
        "columns": ("values", "ranks"),
        "epsilon": (0.5, 1.0, 2.0, 4.0),
        "epoch": ("mean", 0),
    },
    "ranks": {"known": 40, "learner": LEARNERS, "blocks": ("all", "exchange")},
    "spreading": {"known": 40, "blocks": ("all", "ranks")},
    "charge": {"known": 40},  # under PELoss
    "correlation": {"known": 40},  # under dCor
    "reader": {
        "known": 40,
        "learner": ("extra trees", "self-trained", "naive Bayes on ranks", "logistic C=.1"),
    },
}


def get_config(variant=""):
    table = {"": SPAMBASE, "default_credit": DEFAULT_CREDIT}[variant]
    return ordered(
        {
            "name": f"readers_{variant}".rstrip("_"),
            "seeds": 3,
            **suite.trained(
                2, table["data"], table["parties"], {**table["training"], "record_rows": 2000}
            ),
            "grid": GRID,
            "attacks": ATTACKS,
        }
    )
