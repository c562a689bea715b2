"""Which strengths an audit tries, and what it leaves out when time is short."""

import functools
import math

import pytest

from vfljax import defenses
from vfljax.auditing.planning import (
    FEWEST,
    LATER,
    MOST,
    QUICK_MARGIN,
    Cost,
    Times,
    affordable_seeds,
    between,
    candidates,
    choose,
    pilot_defenses,
    seconds,
    values_of,
    without_pilot,
)

QUICK = Times(train=8.0, attack=60.0, attack_compiling=40.0, programs=1, trials=6, running=2.0)
PILOT = QUICK._replace(train=40.0, attack=0.0, programs=12, trials=60, running=10.0)
TIMES = {"undefended": QUICK, "pilot": PILOT}


def tried(name, losses):
    row = defenses.TABLE[name].strengths
    values = row.values if row else (math.nan,)
    return [Cost(value, loss) for value, loss in zip(values, losses, strict=True)]


def test_the_strongest_that_kept_the_accuracy_and_then_finer():
    costs = tried("noise", (0.0, 0.001, 0.01, 0.05, 0.2, 0.3))
    order = candidates("noise", costs, 0.02)
    assert order == [3e-3, between(3e-3, 1e-2, False), 1e-2, 1e-3, between(1e-3, 3e-3, False), 1e-4]


def test_where_all_keep_it_the_strongest_ones_and_where_none_does_the_weakest():
    assert candidates("noise", tried("noise", (0.0,) * 6), 0.02)[:2] == [0.1, 0.03]
    assert candidates("noise", tried("noise", (0.5,) * 6), 0.02)[:2] == [1e-4, 1e-3]
    lost = tried("noise", (math.inf,) * 6)
    assert candidates("noise", lost, 0.02)[0] == 1e-4


def test_strengths_that_count_are_whole():
    order = candidates("discrete_sgd", tried("discrete_sgd", (0.0, 0.0, 0.1, 0.1, 0.2)), 0.02)
    assert order[:3] == [12.0, 8.0, 6.0]


def test_a_defense_without_strengths_has_none():
    assert candidates("max_norm", tried("max_norm", (0.0,)), 0.02) == []


@pytest.mark.parametrize("name", defenses.TABLE)
def test_strengths_of_every_defense_are_tried_once_each(name):
    row = defenses.TABLE[name].strengths
    if row is None:
        return
    for kept in range(len(row.values) + 1):
        losses = [0.0] * kept + [0.5] * (len(row.values) - kept)
        order = candidates(name, tried(name, losses), 0.02)
        assert len(set(order)) == len(order) >= FEWEST
        assert min(row.values) <= min(order)
        assert max(order) <= max(row.values)


def test_more_time_tries_more_and_less_leaves_defenses_out():
    pilot = {
        "noise": tried("noise", (0.0, 0.0, 0.0, 0.1, 0.1, 0.1)),
        "dcor": tried("dcor", (0.3,) * 6),
        "max_norm": tried("max_norm", (0.0,)),
    }
    many = choose(pilot, 0.02, 1e9, TIMES, 3)
    assert {len(values) for name, values in many.items() if values} == {MOST}
    fewest = seconds({"noise": 2, "dcor": 2, "max_norm": 0}, TIMES, 3)
    few = choose(pilot, 0.02, fewest, TIMES, 3)
    assert {name: len(values) for name, values in few.items()} == {
        "noise": 2,
        "dcor": 2,
        "max_norm": 0,
    }
    fewer = choose(pilot, 0.02, fewest - 1, TIMES, 3)
    assert list(fewer) == ["noise", "max_norm"]  # dcor kept no accuracy
    least = seconds({"noise": 2}, TIMES, 3)
    assert list(choose(pilot, 0.02, least, TIMES, 3)) == ["noise"]
    assert choose(pilot, 0.02, 1.0, TIMES, 3) == {}


def test_strengths_go_from_weak_to_strong():
    pilot = {
        "noise": tried("noise", (0.0, 0.0, 0.0, 0.1, 0.1, 0.1)),
        "compression": tried("compression", (0.0, 0.0, 0.0, 0.1, 0.1)),
    }
    chosen = choose(pilot, 0.02, 1e9, TIMES, 3)
    assert chosen["noise"] == sorted(chosen["noise"])
    assert chosen["compression"] == sorted(chosen["compression"], reverse=True)


def test_a_pilot_tries_as_many_as_there_is_time_for():
    good = list(defenses.TABLE)
    assert pilot_defenses(good, 1e9, QUICK, 3) == good
    assert pilot_defenses(good, 0.0, QUICK, 3) == []
    counts = [len(pilot_defenses(good, left, QUICK, 3)) for left in range(0, 2000, 50)]
    assert counts == sorted(counts)
    assert 0 < counts[6] < len(good)


def test_without_a_pilot_the_first_defenses_have_two_operating_points_between_weak_and_strong():
    every = ["noise", "max_norm", "compression"]
    chosen = without_pilot(every, 1e9, QUICK, 3)
    assert list(chosen) == every
    for name, values in chosen.items():
        among = values_of(name)
        assert len(values) == min(FEWEST, len(among))
        assert not {*values} & {*among[:1], *among[-1:]}
    times = {"undefended": QUICK, "pilot": QUICK._replace(train=2.0 + LATER * 6.0)}
    two = seconds({"noise": 2, "max_norm": 0}, times, 3, QUICK_MARGIN)
    found = [[*without_pilot(every, left, QUICK, 3)] for left in (two, two - 0.01, 1.0)]
    assert found == [every[:2], every[:1], []]


def test_fewer_seeds_do_where_they_leave_time_for_more_defenses():
    every = ["noise", "label_dp", "dcor", "marvell"]
    slow = QUICK._replace(attack=200.0, attack_compiling=10.0)  # so that calls of attacks count
    found = {
        left: functools.partial(pilot_defenses, every, left, slow) for left in range(0, 6000, 100)
    }
    seeds = {left: affordable_seeds(on, 20, 3) for left, on in found.items()}
    assert seeds == {left: 3 if len(on(3)) > len(on(20)) else 20 for left, on in found.items()}
    assert {*seeds.values()} == {3, 20}
    assert {affordable_seeds(on, 20, 20) for on in found.values()} == {20}
    assert (seeds[0], found[0](20)) == (20, [])
    assert (seeds[5900], found[5900](20)) == (20, every)


def test_more_settings_take_longer():
    one = seconds({"noise": 2}, TIMES, 3)
    assert one < seconds({"noise": 5}, TIMES, 3) < seconds({"noise": 5, "dcor": 5}, TIMES, 3)
