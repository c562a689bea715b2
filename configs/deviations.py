"""What a passive party reads that deviates in what it sends, and what that does to the federation.

    for data in digits spambase default_credit; do for upload in scale constant repeat swap; do
        python -m launch.sweep --config=configs/deviations.py:$data-$upload \
            --workdir=runs/deviations/$data-$upload --config.data.dir=DIR; done; done
    python -m analysis.deviations --out=analysis/results/knowers/deviations runs/deviations/*

DIR is the folder of UCI's spambase.data, the file UCI_Credit_Card.csv.gz of default_credit, and for digits
left out. Each sweep has two strengths of an upload (``vfljax.federation.uploads``) and three seeds, undefended
and under three defenses. The optimizer of the deviating party is honest (gamma = 0). Networks, shares and
epochs are those of an audit, and an attacker knows 40 labels.
"""

from vfljax import suite
from vfljax.config import ordered

TABLES = {
    "spambase": {
        "data": {"name": "spambase", "dir": ""},
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
        "columns": (("PAY_*", "BILL_*"), "*"),
        "training": {"epochs": 11, "batch_size": 256},
    },
    "digits": {
        "data": {"name": "digits", "scaling": "range"},
        "training": {"epochs": 24, "batch_size": 32},
    },
}
TWO_CLASSES = {
    "posterior": {
        "signal": "direction",
        "columns": "ranks",
        "epsilon": (1.0, 4.0),
        "epoch": ("mean", 0),
    }
}
SWAPPING = {  # VILLAIN's own reading, beside known labels and almost alone
    "swapping": {
        "known": 40,
        "signal": ("direction", "norm"),
        "epoch": (-1, 1),
        "mu": (1.0, 100.0),
        "weight": (0.3, 30.0),
    }
}
STRENGTHS = {"scale": (1.0, 9.0), "constant": (0.5, 1.0), "repeat": (0.1, 0.5), "swap": (0.1, 0.5)}


def get_config(variant="digits-swap"):
    name, upload = variant.split("-")
    table = TABLES[name]
    return ordered(
        {
            "name": f"deviations_{name}_{upload}",
            "seeds": 3,
            **suite.trained(
                10 if name == "digits" else 2,
                data=table["data"],
                parties={"passive": 1, "label_features": True, "columns": table.get("columns", ())},
                training={**table["training"], "record_rows": 0 if name == "digits" else 2000},
            ),
            "malicious": {"gamma": 0.0, "upload": upload, "strength": STRENGTHS[upload]},
            "federations": ("split", "malicious"),
            "grid": {
                "undefended": {},
                "label_dp": {"label_dp": {"epsilon": 1.0}},
                "noise": {"noise": {"scale": 0.03}},
                "grad_perturb": {"grad_perturb": {"epsilon": 1.0}},
            },
            "skip_settled": False,  # attacks are tabulated one by one
            "attacks": {
                "norm": {"epoch": (-1, "mean")},
                "spectral": {"signal": ("embeddings", "gradients")},
                "probe": {"known": 40, "inputs": ("both", "gradients"), "epoch": (-1, "mean")},
                "similarity": {"known": 40, "epoch": (-1, 0)},
                "joint": {"known": 40, "blocks": ("all", "best")},
                "ranks": {"known": 40, "learner": ("kernel", "lda")},
                "spreading": {"known": 40, "blocks": ("all", "ranks")},
                "reader": {"known": 40, "learner": ("extra trees", "self-trained")},
                **({} if name == "digits" else TWO_CLASSES),
                **(SWAPPING if upload == "swap" else {}),
            },
        }
    )
