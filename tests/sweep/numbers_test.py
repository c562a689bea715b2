"""A sweep of labels that are numbers: what is refused before it, and what its report says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.sweeps import report_of, train
from vfljax.errors import UserError
from vfljax.federation import training
from vfljax.report.frames import read_frames
from vfljax.sweep import specs
from vfljax.sweep.grid import parse
from vfljax.sweep.initial import initial_weights
from vfljax.sweep.plan import make_plan

TINY = {
    "name": "numbers",
    "seeds": 3,
    "data": {"name": "diabetes", "train": 256, "validation": 93, "test": 93},
    "model": {"task": "regression", "hidden": (8,)},
    "training": {"epochs": 3, "batch_size": 64, "optimizer": "adam", "learning_rate": 1e-2},
    "federations": ("no_split",),
    "attacks": {"direct": {"own": (False, True)}, "cosine": {"known": 20}},
}


RANGE = {"data": {"label_range": (30.0, 300.0)}}


def changed(**groups):
    return {**TINY, **{name: {**TINY.get(name, {}), **of} for name, of in groups.items()}}


def test_labels_are_standardized_by_the_training_rows_of_each_seed():
    plan = make_plan(parse(TINY))
    labels, table = plan.dataset.labels, plan.table
    for seed, split in enumerate(plan.splits):
        np.testing.assert_allclose(table.label_mean[seed], labels[split.train].mean(), rtol=1e-6)
        np.testing.assert_allclose(table.label_scale[seed], labels[split.train].std(), rtol=1e-6)
    assert (plan.balance, plan.shape.num_classes) == ([442], 1)
    assert plan.groups[0].spec.bottoms[0].out == 1


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"model": {"task": "classification"}}, "config.model.task='classification' is not the"),
        ({"grid": {"kdk": {"kdk": {"epsilon": 0.3, "k": 2}}}}, "kdk='kdk' is not for labels"),
        ({"grid": {"marvell": {"marvell": {"power": 1.0}}}}, "marvell='marvell' is not for labels"),
        ({"attacks": {"hint": {}}}, "config.attacks.hint: not for labels"),
        ({"grid": {"dp": {"label_dp": {"epsilon": 1.0, "mechanism": "laplace"}}}}, "label_range"),
        ({"grid": {"dp": {"label_dp": {"epsilon": 1.0}}}, **RANGE}, "is for classes"),
        ({"data": {"label_range": (5.0, 1.0)}}, "config.data.label_range=(5.0, 1.0) is no range"),
        ({"data": {"label_range": (500.0, 600.0)}}, "makes all labels equal: give bounds"),
        ({"attacks": {"cosine": {"known": 1}}}, "labels are fewer than 2"),
        (
            {"training": {"class_weights": (1.0, 2.0)}},
            "is of classes, and these labels are numbers",
        ),
    ],
)
def test_what_needs_classes_is_refused_in_one_line(groups, message):
    from vfljax.sweep.known import check_known_labels

    with pytest.raises(UserError) as error:
        check_known_labels(make_plan(parse(changed(**groups))))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_hubers_loss_is_of_numbers():
    config = {"data": {"name": "digits"}, "training": {"huber": 1.0}, "attacks": {"norm": {}}}
    with pytest.raises(UserError, match="is a loss of numbers, and these labels are classes"):
        make_plan(parse(config))


def test_labels_are_clipped_before_they_are_standardized():
    plan = make_plan(parse(changed(**RANGE)))
    labels = plan.dataset.labels
    assert (labels.min(), labels.max()) == RANGE["data"]["label_range"]
    low, high = RANGE["data"]["label_range"]
    message = f"Labels are clipped to {low:g} to {high:g}, also those of validation and test rows."
    assert plan.dataset.notes[-1] == message  # no count or number of the labels themselves
    wide = make_plan(parse(changed(data={"label_range": (low - 1e4, high + 1e4)})))
    assert "are clipped" in wide.dataset.notes[-1]  # also where none is, which would say so
    np.testing.assert_allclose(
        plan.table.label_mean[0], labels[plan.splits[0].train].mean(), rtol=1e-6
    )
    np.testing.assert_array_equal(plan.table.label_range, RANGE["data"]["label_range"])


def test_label_dp_reads_labels_in_their_own_unit():
    """Moments of the true labels, which a single label changes, take no part in what is drawn, not even in its
    last bits: whole numbers lie on edges of cells."""
    grid = {"dp": {"label_dp": {"epsilon": 2.0, "mechanism": "rr_on_bins"}}}
    plan = make_plan(
        parse(changed(data={"label_range": (0.0, 320.0)}) | {"seeds": 1, "grid": grid})
    )
    (group,) = plan.groups
    members = specs.member_of_trials(group.spec, group.trials, [])
    member = jax.tree.map(lambda a: jnp.asarray(a)[0], members)
    weights = initial_weights(group.spec, plan.experiment, plan.seeds, plan.table)
    start = training.make_start(group.spec)

    @harness.quick_jit
    def randomized(table):
        return start(member, table, weights).state.defense["label_dp"]["labels"]

    mean, scale = plan.table.label_mean, plan.table.label_scale
    moved = plan.table._replace(label_mean=mean + 0.7, label_scale=scale * 1.01)
    np.testing.assert_array_equal(randomized(plan.table), randomized(moved))


def test_label_dp_of_numbers_is_one_program_whose_epsilon_the_report_has(tmp_path):
    """Undefended is a point of the same program, at an infinite epsilon."""
    points = {"epsilon": (0.1, 8.0, np.inf), "mechanism": "laplace"}
    config = changed(**RANGE) | {"seeds": 1, "grid": {"dp": {"label_dp": points}, "undefended": {}}}
    config |= {"attacks": {"direct": {"own": True}}}
    stored = train(tmp_path, config)
    trials = stored.results.to_pandas().set_index("label_dp.epsilon")
    assert trials.loc[0.1, "test_r2"] < trials.loc[8.0, "test_r2"] < trials.loc[np.inf, "test_r2"]
    bare = trials[trials["method"] == "undefended"].iloc[0]
    assert trials.loc[np.inf, "test_r2"] == pytest.approx(bare["test_r2"], abs=1e-5)
    assert len(bare["train_r2"]) == 3
    attacks = stored.attacks.to_pandas()
    leaks = attacks.set_index("trial")["leak"][trials["trial"]].set_axis(trials.index)
    assert leaks[0.1] < 0.6 < leaks[np.inf]
    page = report_of(tmp_path)
    assert "posterior odds at most" in page
    assert "accuracy at most" not in page
    assert "no canaries and no best guess" in page
    assert "from canaries" not in page
    assert "best guess from the noisy label alone" not in page


def test_a_report_of_numbers_has_concordances_and_r2(tmp_path):
    stored = train(tmp_path, TINY)
    frames = read_frames(stored)
    facts = frames.facts
    assert (facts.scale, facts.chance, facts.utility, facts.guess) == (
        "concordance",
        0.5,
        "R²",
        0.0,
    )
    trials = stored.results.to_pandas()
    assert (trials["test_rmse"] > trials["test_mae"]).all()
    assert (
        trials["test_mae"] > 10
    ).all()  # in units of the label, of which a standard deviation is 77
    np.testing.assert_allclose(
        frames.trials["test_utility"], np.maximum(trials["test_r2"], 0), rtol=1e-6
    )
    attacks = stored.attacks.to_pandas()
    assert attacks["leak"].between(0, 1).all()
    assert (attacks["within_tenth"] > 0.02).all()
    assert attacks["right"].str.contains("1").all()
    page = report_of(tmp_path)
    assert "A leak is a concordance" in page
    assert "labels are numbers" in page
