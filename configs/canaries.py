"""Label canaries under every defense with a claimed epsilon of 1, and under noise that is drawn at every step.

    python -m launch.sweep --config=configs/canaries.py --workdir=runs/canaries
    python -m analysis.canaries runs/canaries

Synthetic rows of two classes, of which the passive party owns one column of 32. Half of the 2,000 training rows
are canaries: utility does not matter here, and more canaries give a higher lower bound. Twenty seeds, twenty
epochs. ``*_each_step`` draw noise of epsilon = 1 in every step, and spend it twenty times:
analysis/results/canaries/README.md says what the canaries show of it.
"""

from vfljax import defenses, suite
from vfljax.config import ordered

EPSILON = 1.0
EACH_STEP = ("grad_perturb", "alibi")  # their option draw="step" has no guarantee
CLAIMING = {
    name: row
    for name, row in defenses.TABLE.items()
    if row.remarks({**row.example, "epsilon": EPSILON}, {}).epsilon is not None
}


def get_config():
    knobs = {
        name: {**{knob: row.example[knob] for knob in row.required}, "epsilon": EPSILON}
        for name, row in CLAIMING.items()
    }
    posterior = {**suite.ATTACKS["posterior"], "epsilon": EPSILON}
    return ordered(
        {
            "name": "canaries",
            "seeds": 20,
            "canaries": 1000,
            **suite.trained(
                2,
                data={"name": "synthetic", "train": 2000, "validation": 200, "test": 200},
                parties={"passive": 1, "label_features": True, "shares": (1, 31)},
                training={"epochs": 20, "batch_size": 50},
            ),
            "grid": {
                **{name: {name: values} for name, values in knobs.items()},
                **{
                    f"{name}_each_step": {name: {**knobs[name], "draw": "step"}}
                    for name in EACH_STEP
                    if name in CLAIMING
                },
            },
            "federations": ("split", "no_split"),
            "skip_settled": False,  # each attack guesses canaries of every run
            "attacks": {
                "direct": {
                    "rule": ("first_negative", "most_negative"),
                    "epoch": (0, "mean", "votes"),
                },
                "mean": {"epoch": ("mean", 0), "scores": "distance", "known": 40},
                "probe": {"inputs": ("gradients", "both"), "epoch": "mean", "known": 40},
                "spectral": {"signal": "gradients", "whole": (False, True)},
                "joint": {"blocks": "best", "known": 40},
                "posterior": posterior,
            },
        }
    )
