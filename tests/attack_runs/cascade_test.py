"""Which attacks are settled by cheaper ones."""

import numpy as np
import pytest

from tests.reference import cascade as twin
from vfljax import attacks
from vfljax.attack_runs import cascade
from vfljax.attacks import core
from vfljax.models import MLP


def drawn(rng, count):
    """Records of a few runs, so that many of them meet."""
    choices = {
        "configuration": ("undefended", "noise"),
        "federation": ("split", "no_split", "malicious-0"),
        "seed": (0, 1),
        "attackers": ((0,), (0, 1)),
        "known": (0, 10, 40),
        "cost": range(5),
        "what": ("attack", "attack", "all_labels", "untrained"),
        "role": ("attack", "attack", "oracle", "diagnostic", "learner"),
        "label": ("mean", "probe", "ranks/lda", "norm"),
        "leak": (0.5, np.nan, np.float32(0.995), 0.9949, 1.0),
    }
    return [
        {name: values[rng.integers(len(values))] for name, values in choices.items()}
        for _ in range(count)
    ]


@pytest.mark.parametrize("count", [0, 40, 400])
def test_settled_jobs_are_those_of_plain_loops(count):
    some = set()
    for seed in range(10):
        rng = np.random.default_rng([seed, count])
        rows, jobs = drawn(rng, count), drawn(rng, 60)
        settled = cascade.settled_by(rows, jobs)
        assert settled == twin.settled_by(rows, jobs)
        some |= {*settled}
    assert (len(some) > 1) == (count >= 40)


def test_attacks_that_are_given_what_no_attacker_has_take_no_part():
    made = [
        attacks.TABLE[name]((MLP((), 4),), 2, **options)
        for name, options in (
            ("mean", {}),
            ("mean", {"oracle": True}),
            ("spectral", {"signal": "party0.cut"}),
        )
    ]
    assert [cascade.role_of(attack) for attack in made] == ["attack", "oracle", "diagnostic"]
    assert cascade.role_of(made[0]._replace(diagnostic=core.CLEAN)) == "diagnostic"
