"""Attacks are begun until the time is up, and what has begun is finished."""

import math

import pytest

from tests.store.header_test import SMALL
from vfljax import store
from vfljax.auditing import deadline

NAMES = ("norm", "mean", "residual", "median", "fusion", *deadline.ALWAYS)


@pytest.fixture
def begun_in(tmp_path):
    """``begun_in(may)``: the attacks that may be made, of a sweep that has rows of median and fusion."""
    entries = {name: {"attack": name} for name in NAMES}
    store.write(tmp_path, {**SMALL, "attacks": entries})
    (tmp_path / "attacks" / "median").mkdir(parents=True)
    (tmp_path / "partial" / "attacks" / "fusion").mkdir(parents=True)
    units = [store.Unit(f"attacks/{name}/000", "attacks", name, name) for name in NAMES]

    def begun(end, left_out):
        may = deadline.until(end, tmp_path, left_out)
        assert may(store.Unit("shards/0", "shards", "0", ""))
        return {unit.of for unit in units if may(unit)}

    return begun


def test_before_the_time_is_up_all_are_run_but_those_left_out_earlier(begun_in):
    left_out = {"residual"}
    assert begun_in(math.inf, left_out) == {*NAMES} - {"residual"}
    assert left_out == {"residual"}


def test_afterwards_only_what_has_begun_and_what_reads_the_most(begun_in):
    left_out = {"residual"}
    assert begun_in(0.0, left_out) == {"median", "fusion", *deadline.ALWAYS}
    assert left_out == {"residual", "norm", "mean"}
