"""An audit's federation and attacks under a plan that does not depend on time: what two versions are timed on.

    python -m launch.sweep --config=analysis/benchmark/audit_plan.py --workdir=runs/plan \
        --config.data.dir=UCI_Credit_Card.csv.gz

UCI's default of credit card clients (30,000 rows; 18,000 train, of which 2,000 are attacked), undefended and
under ``DEFENSES`` at the middle strength of their rows, one seed, with a top model, under all attacks of an
audit: 44 trials. The attacker owns ``PAY_*`` and ``BILL_*``. Any commit from 79547bf8 on reads this file, and
networks, options of defenses and attacks are those of the commit; ``DEFENSES`` are what 79547bf8 has.
"""

from typing import Any

from vfljax.auditing import suite
from vfljax.config import ordered

DEFENSES = (
    "label_dp",
    "grad_perturb",
    "class_splitting",
    "alibi",
    "vlp",
    "kdk",
    "cae",
    "dcor",
    "gafm",
    "noise",
    "compression",
    "ppdl",
    "discrete_sgd",
    "max_norm",
    "marvell",
    "proj_pert",
    "pe_loss",
    "mid",
    "fedpass",
    "p3eft",
    "adversary",
)
KINDS = suite.FEDERATIONS["split"]


def get_config() -> Any:
    points = {name: suite.method(name, suite.middle(name)) for name in DEFENSES}
    return ordered(
        {
            "name": "audit of default_credit, fixed plan",
            "seeds": 1,
            "known_draws": suite.DRAWS,
            "data": {
                "name": "table",
                "dir": "",
                "options": {
                    "label": "default.payment.next.month",
                    "drop": ("ID",),
                    "categorical": ("SEX", "EDUCATION", "MARRIAGE"),
                },
                **dict(zip(("train", "validation", "test"), suite.SHARES, strict=True)),
                "scaling": "standard",
            },
            "parties": {
                "passive": 1,
                "label_features": True,
                "columns": (("PAY_*", "BILL_*"), "*"),
                "names": ("telco", "bank"),
            },
            "model": suite.model(2),
            "training": {
                "epochs": 11,
                "batch_size": 256,
                "optimizer": "adam",
                "learning_rate": 1e-3,
                "momentum": 0.0,  # not read by Adam
                "weight_decay": 0.0,
                "record": (0, 1, -1),
                "record_rows": suite.RECORDED,
            },
            "malicious": {"parties": ((0,),), "gamma": 1.0},
            "teacher": {"hidden": (20,), "epochs": 10, "batch_size": 256, "learning_rate": 1e-3},
            "grid": {suite.UNDEFENDED: {}, **points},
            "attackers": ((0,),),
            "federations": KINDS,
            "attacks": suite.suited(suite.ATTACKS, KINDS, suite.KNOWN, 2),
        }
    )
