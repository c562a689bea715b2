"""Which teachers the trials of a sweep read, and which cannot be made."""

import functools

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from tests.sweeps import plan_of, tiny
from vfljax import defenses, keys, store
from vfljax.errors import UserError
from vfljax.models import MLP
from vfljax.models.making import make_network
from vfljax.sweep import teachers, train
from vfljax.sweep.grid import knobs_of, parse, trial_rows
from vfljax.types import Input

CHAINS = {
    "undefended": {},
    "kdk": {"kdk": {"epsilon": (0.1, 0.4), "k": 2}},
    "both": {"label_dp": {"epsilon": (1.0, 4.0)}, "kdk": {"epsilon": (0.1, 0.4), "k": 2}},
    "noise": {"noise": {"scale": 0.01}},
    "prior": {"label_dp": {"epsilon": 1.0, "mechanism": "rr_with_prior"}},
}


@functools.cache
def planned():
    return plan_of(tiny(grid=CHAINS, attacks={}))


def lessons_of(*methods):
    """The plan of methods of ``CHAINS`` on the rows of ``planned``, its lessons, and whose they are."""
    plan = planned()
    groups = []
    for group in plan.groups:  # trials of KDk and of noise share one
        of = group.trials[group.trials["method"].isin(methods)]
        groups += [group._replace(trials=of)] if len(of) else []
    plan = plan._replace(groups=groups)
    return plan, *teachers.lessons(plan.groups, plan.table)


def test_settings_share_a_teacher_exactly_when_seed_and_the_labels_it_may_see_agree():
    plan, taught, teacher_of = lessons_of(*CHAINS)
    every = pd.concat(group.trials for group in plan.groups).set_index("trial")
    trials = every.loc[[*teacher_of]].assign(teacher=pd.Series(teacher_of))
    assert {*trials["method"]} >= {"kdk", "both", "prior"}
    by_labels = [trials["seed"], trials["label_dp.epsilon"].fillna(0), trials["method"] == "prior"]
    assert (trials.groupby(by_labels)["teacher"].nunique() == 1).all()
    assert trials["teacher"].nunique() == trials.groupby(by_labels).ngroups
    assert (taught.seed[trials["teacher"]] == trials["seed"]).all()


def test_under_label_dp_the_teacher_sees_the_labels_training_sees_and_no_others():
    """KDk after label DP: the lesson is, row by row, what the targets slot shows later slots."""
    plan, taught, teacher_of = lessons_of("both")
    trial = trial_rows(plan.groups[0].trials)[0]
    raw = plan.table.labels[plan.table.train[trial["seed"]]]
    chain = defenses.build(plan.groups[0].spec.defenses, knobs_of(trial))
    key = keys.fold(keys.run_key(trial["seed"]), "defense")
    uniform = jnp.full((len(raw), 10), 0.1)
    state = chain.init(key, defenses.TrainingData(raw, uniform, 10))
    lesson = taught.labels[teacher_of[trial["trial"]]]
    np.testing.assert_array_equal(lesson, state["label_dp"])
    assert 0.05 < np.mean(lesson == np.asarray(raw)) < 0.5  # e / (e + 9) = .23
    assert np.all(taught.weights[teacher_of[trial["trial"]]] == 1)


def test_a_two_stage_teacher_sees_randomized_labels_of_one_half_only():
    assert lessons_of("noise")[1:] == (None, {})
    _, taught, _ = lessons_of("prior")
    assert np.all((taught.weights == 0) | (taught.weights == 1))
    np.testing.assert_allclose(taught.weights.mean(1), 0.5, atol=0.01)
    assert np.all(taught.labels[taught.weights == 0] == 0)  # their labels have not been touched


def test_the_config_s_teacher_is_its_network_for_the_label_party_s_columns():
    teacher = parse(tiny(**{"teacher.hidden": (8, 4)})).teacher
    network = make_network(teacher, 10, "identity", Input("image", (8, 4)))
    assert network == MLP(hidden=(8, 4), out=10)


def test_a_teacher_that_cannot_read_the_columns_is_refused_if_a_defense_asks_it():
    # a network for images of 22 pixels and more
    small = tiny(**{"teacher.network": "cnn_gafm", "teacher.hidden": (64,)})
    with pytest.raises(UserError, match=r"^config\.teacher: "):
        plan_of(small)
    plan_of({**small, "grid": {"undefended": {}}})


def test_a_teacher_with_batch_norm_is_refused_batches_of_one_row():
    small = {"teacher.options": {"batch_norm": True}, "attacks": {}, "training.batch_size": 20}
    plan_of(tiny(**small, **{"teacher.batch_size": 11}))  # 320 = 29 * 11 + 1: the rest is no batch
    with pytest.raises(UserError, match=r"^config\.teacher\.batch_size=1: .* no batch statistics"):
        plan_of(tiny(**small, **{"teacher.batch_size": 1}))


def test_a_teacher_is_found_by_what_it_depends_on_and_only_missing_ones_are_trained(
    tmp_path, monkeypatch
):
    trained = []

    def train_teachers(teacher, taught, table, *rest):
        """Scores of each teacher, by its seed and the labels that it has seen."""
        trained.append(len(taught.seed))
        marks = taught.seed + taught.labels.sum(1) / 1000 + taught.weights.sum(1)
        return np.tile(marks[:, None, None], (1, *taught.labels.shape[1:], 10)).astype("f")

    monkeypatch.setattr(teachers, "train_teachers", train_teachers)
    few, _, _ = lessons_of("kdk")
    more, taught, teacher_of = lessons_of("kdk", "both")
    store.begin(tmp_path, train.header(planned(), "test"))
    train.shared(few, tmp_path)
    before = store.read_keyed(tmp_path, train.TEACHERS)
    train.shared(more, tmp_path)
    train.shared(more, tmp_path)
    assert trained == [2, len(taught.seed) - 2]
    after = store.read_keyed(tmp_path, train.TEACHERS)
    assert sorted(after) == sorted(teachers.identities(taught))
    for name, scores in before.items():
        np.testing.assert_array_equal(after[name], scores)
    ready = train.ready(more, tmp_path)
    assert ready.teachers == teacher_of
    for number, name in enumerate(teachers.identities(taught)):
        np.testing.assert_array_equal(ready.table.scores[number], after[name])
