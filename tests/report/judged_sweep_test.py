"""A judged sweep beside another one of some of the same configurations."""

from tests.report.made import BARE, NAN, PROTECTS, made
from vfljax.report.judged_sweep import of_same_points
from vfljax.report.points import same_points


def test_other_seeds_are_matched_by_defenses_and_knobs_whatever_the_method_is_called():
    first = made(BARE, {"probe/mean": 0.9}, PROTECTS, knobs={"noise.scale": [NAN, 0.1, 1.0]})
    other = made(BARE, PROTECTS, knobs={"noise.scale": [NAN, 1.0]})
    renamed = other.trials["method"].replace("noise", "noise scale=1")
    other = other._replace(trials=other.trials.assign(method=renamed))
    assert same_points(first.trials, other.trials) == {0: 0, 1: 2}
    found = of_same_points(first, other).set_index("configuration")
    assert [*found.index] == [0, 2]
    assert found.loc[2, "label"] == "noise scale=1"


def test_a_point_with_an_option_that_the_first_sweep_has_nowhere_is_none_of_its_points():
    first = made(BARE, PROTECTS, knobs={"noise.scale": [NAN, 1.0]})
    knobs = {"noise.scale": [NAN, 1.0, 1.0], "noise.law": [NAN, "gaussian", NAN]}
    other = made(BARE, PROTECTS, PROTECTS, knobs=knobs)
    assert same_points(first.trials, other.trials) == {0: 0, 2: 1}
