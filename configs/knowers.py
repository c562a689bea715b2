"""What attacks that know a defense read of planted labels, at every strength where an audit begins to search.

    python -m launch.sweep --config=configs/knowers.py --workdir=runs/knowers

Synthetic rows of two classes, of which the passive party owns one column of 32, AUC .58: what it reads beyond
that, it reads off the wire. Undefended, every label is read. One seed and twenty epochs, some ten minutes on 2
cores. analysis/knowers.py tabulates the strongest of the attacks that ``DefenseRow.known_by`` names, point by
point.
"""

from vfljax import defenses, suite
from vfljax.config import ordered

LEFT_OUT = ("active", "passive", "two_stage")  # which read columns, and no more than direct does
KNOWERS = {
    knower.attack
    for row in defenses.TABLE.values()
    for knowers in row.known_by.values()
    for knower in knowers
}


def get_config():
    return ordered(
        {
            "name": "knowers",
            "seeds": 1,
            **suite.trained(
                2,
                data={"name": "synthetic", "train": 960, "validation": 1000, "test": 1000},
                parties={"passive": 1, "label_features": True, "shares": (1, 31)},
                training={"epochs": 20, "batch_size": 32},
            ),
            "grid": {
                "undefended": {},
                **{
                    name: suite.method(name, row.strengths.values if row.strengths else ())
                    for name, row in defenses.TABLE.items()
                },
            },
            "skip_settled": False,  # attacks are tabulated one by one
            "attacks": {
                **{
                    name: options
                    for name, options in suite.ATTACKS.items()
                    if name in KNOWERS and name not in LEFT_OUT
                },
                "direct": {
                    "rule": ("first_negative", "most_negative", "most_positive"),
                    "epoch": (0, 1, "mean", "votes"),
                },
            },
        }
    )
