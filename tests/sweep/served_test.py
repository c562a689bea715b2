"""Attacks that a new sweep could never serve are refused before it is trained; a stored one skips them."""

import pytest

from tests.refusals import line_of
from tests.sweeps import TINY, plan_of, silent, tiny
from vfljax.launching import work
from vfljax.sweep import plan, train
from vfljax.sweep.grid import parse

SMALL = {"grid": {"undefended": {}}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"attacks": {"direct": {}}, "federations": ("split",)},
            ("config.federations=['split']", "'no_split'", "leave 'direct' out of config.attacks"),
        ),
        (
            {"attacks": {"mean": {"known": (40, 9)}}},
            ("config.attacks.mean", "known=9", "10 classes", "one a class or more"),
        ),
    ],
)
def test_what_no_setting_could_serve_is_one_line_before_anything_is_written(
    changes, words, tmp_path
):
    experiment = parse(tiny(**SMALL, **changes))
    line = line_of(lambda: work.begin(experiment, tmp_path / "new", "test", silent))
    assert [word for word in words if word not in line] == []
    assert not (tmp_path / "new").exists()


def test_what_can_be_served_or_is_for_two_classes_passes():
    """The norm attack, which is for two classes, is skipped and not refused."""
    attacks = {"norm": {}, "mean": {"known": 10}, "probe": {}}
    plan.check_attacks(plan_of(tiny(**SMALL, attacks=attacks, federations=("split",))))


def test_a_stored_sweep_is_never_asked(tiny_sweep, monkeypatch):
    def refuse(plan):
        raise AssertionError

    monkeypatch.setattr(train, "check_attacks", refuse)
    train.planned(parse(TINY), tiny_sweep)
