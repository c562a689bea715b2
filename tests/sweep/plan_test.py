"""An experiment made concrete: what data and experiment cannot be together is refused, in one line."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from tests.refusals import refused
from tests.sweeps import plan_of, tiny
from vfljax import store
from vfljax.datasets.core import Dataset
from vfljax.sweep import batch_layout, plan
from vfljax.sweep.canaries import NO_CANDIDATES
from vfljax.sweep.plan import Plan
from vfljax.sweep.programs import Effort

CANCER = {"data.name": "breast_cancer", "data.train": 300, "data.validation": 100, "data.test": 100}
GAFM, KDK = {"gafm": {"delta": 0.1}}, {"kdk": {"epsilon": 0.5, "k": 2}}
PROBABILITY = CANCER | {"model.top": "probability", "model.aggregation": "mean"}


def chain(defenses, **fields):
    """Changes to a grid of one method with these defenses."""
    return {"grid": {"x": defenses}, **fields}


# what only the data's classes, rows and columns, or the defenses themselves, can refuse
BAD = [
    (chain({"kdk": {"epsilon": 0.5, "k": 11}}), "k=11", "10 classes"),
    (chain({"kdk": {"epsilon": 0.5, "k": 2, "anchor": "b"}}), "anchor='b'", "teacher"),
    (chain(GAFM, **CANCER), "aggregation='concatenate'", "'mean'"),
    (chain(KDK | {"label_dp": {"epsilon": 1}}), "label_dp replaces", "list label_dp before kdk"),
    (chain(KDK, **{"parties.label_features": False}), "needs a teacher", "label_features=True"),
    (
        chain({"marvell": {"power": 0, "budget": "dynamic"}}, **CANCER),
        *("power=0", "grows by factors"),
    ),
    (chain({"noise": {"scale": 1, "law": np.array(["laplace", "x"])}}), "'x'", "laplace"),
    ({"model.top": "generator"}, "2 classes", "'head'"),
    (PROBABILITY, "(it is 4)", "config.model.cut=1"),
    (
        PROBABILITY | {"model.output": "sigmoid", "model.cut": 1, "model.top_hidden": (3,)},
        *("top_hidden=[3]", "must be ()"),
    ),
    ({"model.hidden": (0,)}, "config.model.hidden=(0,)", "from 1 to"),
    ({"teacher.options": {"dropout": -1.0}}, "config.teacher.options.dropout=-1.0", "[0, 1)"),
    ({"model.output": "sigmoidd"}, "sigmoidd", "did you mean 'sigmoid'"),
    (
        {"training.optimizer": "malicious_sgd", "attacks.active": {}},
        *("malicious_sgd", "no malicious"),
    ),
    (
        {"training.optimizer": "adam", "malicious.rule": "released", "attacks.active": {}},
        *("rule='released'", "choose 'intended', or the optimizer 'sgd'"),
    ),
    ({"training.evaluation": "released"}, "data has 10", "'final'"),
    ({"data.train": 5}, "[5, 160, 160]", "one row a class"),
    ({"training.class_weights": (0.3, 1.0)}, "[0.3, 1.0]", "one a class"),
    ({"training.batch_size": 319}, "batch of 1 row", "drop_last=True"),
    ({"training.batch_size": 321}, "batch_size=321", "at most 320"),
]


@pytest.mark.parametrize(("changes", "value", "remedy"), BAD)
def test_bad_input_is_one_line_with_the_value_and_the_remedy(changes, value, remedy):
    with refused(value, remedy):
        plan_of(tiny(**changes))


def test_attacks_know_the_recorded_rows_and_as_many_test_rows():
    changes = {"attacks": {}, "training.record_rows": 100}
    whole = plan_of(tiny(**changes))
    part = plan.recorded(whole)
    for before, after in zip(whole.splits, part.splits, strict=True):
        np.testing.assert_array_equal(after.train, before.train[:100])
        np.testing.assert_array_equal(after.test, before.test[:100])
    np.testing.assert_array_equal(part.table.train, whole.table.train[:, :100])
    np.testing.assert_array_equal(part.table.test, whole.table.test[:, :100])


def test_widths_are_those_of_the_machine_that_planned_a_sweep():
    planned = plan_of(tiny(attacks={}))
    header = {"backend": jax.default_backend(), "devices": 8, "effort": planned.effort._asdict()}
    assert plan.divided_as(planned, {**header, "shards": []}).devices == 8
    elsewhere = {**header, "backend": "gpu", "shards": []}
    assert plan.divided_as(planned, elsewhere).devices == jax.device_count()
    here, there = batch_layout.layout(24, 6), batch_layout.layout(24, 6, devices=8)
    assert (here.capacity, here.width) == (24, 6)
    assert (there.capacity, there.width) == (24, 3)  # 3 members a device there, in more calls here


def test_a_stored_choice_stays_whatever_is_planned_now(tiny_sweep):
    planned, stored = plan_of(tiny()), store.load(tiny_sweep).header
    assert planned.effort._asdict() == stored["effort"]
    changed = {**stored, "effort": Effort(None, 1, 1, 0)._asdict()}
    assert plan.divided_as(planned, changed).effort == Effort(None, 1, 1, 0)
    newer = {**stored, "shards": [{**shard, "new": 1} for shard in stored["shards"]]}
    assert plan.divided_as(planned, newer).shards == plan.divided_as(planned, stored).shards


@pytest.mark.parametrize(
    ("labels", "options", "positive"),
    [([0, 0, 1], {}, 1), ([0, 1, 1], {}, 0), ([0, 1], {}, 1), ([0, 1, 1], {"positive": "b"}, 1)],
)
def test_the_rarer_class_is_positive_or_the_second(labels, options, positive):
    fields = {name: None for name in Plan._fields if name not in Plan._field_defaults}
    plan = Plan(**fields)._replace(
        dataset=Dataset("own", None, np.array(labels), 2),
        candidates=NO_CANDIDATES,
        experiment=SimpleNamespace(data=SimpleNamespace(options=options)),
    )
    assert plan.positive == positive
