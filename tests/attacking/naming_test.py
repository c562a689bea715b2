"""Names of classes: from the attack, else from known rows, else from the half that is not scored."""

import numpy as np
import pyarrow as pa
import pytest

from tests import harness
from tests.attacking.scoring_test import BATCH, KNOWN, ROWS, jitted, labels_of, numbers, output_of
from tests.reference import naming as reference
from vfljax import metrics, store
from vfljax.report import stored_rows
from vfljax.report.assessment import assess
from vfljax.report.stored_rows import read
from vfljax.types import AttackIdentity

names_of = harness.quick_jit(metrics.names)
leak_named = harness.quick_jit(metrics.leak_named)


def noisy(labels, classes, signal, seed=0):
    rng = np.random.default_rng(seed)
    return np.float32(rng.normal(size=(len(labels), classes)) + signal * np.eye(classes)[labels])


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("signal", [0.0, 1.0, -1.0])
def test_names_are_the_best_of_all_namings(classes, signal):
    labels = np.int32(np.random.default_rng(1).integers(0, classes, 60))
    scores = noisy(labels, classes, signal)
    scores[7] = np.nan
    weights = np.float32(np.arange(60) % 3 > 0)
    kept = weights > 0
    named_best = names_of(scores, labels, weights)
    expected = reference.best(scores[kept], labels[kept])
    assert reference.leak(scores[kept], list(named_best), labels[kept]) == pytest.approx(
        reference.leak(scores[kept], expected, labels[kept])
    )
    assert sorted(named_best.tolist()) == list(range(classes))
    value = leak_named(scores, named_best, labels, weights)
    assert float(value) == pytest.approx(
        reference.leak(scores[kept], list(named_best), labels[kept])
    )
    # every other naming too
    turned = np.roll(np.arange(classes), 1).astype(np.int32)
    value = leak_named(scores, turned, labels, weights)
    assert float(value) == pytest.approx(reference.leak(scores[kept], turned, labels[kept]))


def test_names_are_the_attack_s_own_where_no_row_says_otherwise():
    labels = np.int32(np.arange(30) % 3)
    scores = np.float32(np.eye(3)[labels])
    nothing = np.zeros(30, np.float32)
    np.testing.assert_array_equal(names_of(scores, labels, nothing), [0, 1, 2])
    # classes 1 and 2 are called by nobody: either naming of theirs is as good
    called = np.float32(np.eye(3)[np.zeros(30, int)])
    np.testing.assert_array_equal(names_of(called, labels, np.ones(30, np.float32)), [0, 1, 2])


def figures_of(train, classes, known=0, by=None):
    return numbers(jitted(output_of(train, known, 1, by), labels_of(classes), BATCH))


@pytest.mark.parametrize("classes", [2, 5])
def test_a_renaming_of_classes_protects_nobody_who_knows_labels(classes):
    labels = labels_of(classes).labels[1]
    train = noisy(labels, classes, 2.0)
    plain = figures_of(train, classes, by=KNOWN)
    renamed = np.roll(train, 1, axis=1)  # what is read of class c says class c + 1
    exchanged = figures_of(renamed, classes, by=KNOWN)
    for name in ("leak_named", "named_select", "named_report", "leak_matched"):
        assert exchanged[name] == pytest.approx(plain[name], abs=1e-6)
        assert exchanged[name] > 0.7
    assert (plain["renamed"], exchanged["renamed"]) == (0, 1)
    assert plain["success"] > 0.7
    assert exchanged["success"] < 0.2
    if classes > 2:
        assert exchanged["leak_report"] < 0.2
        # of those rows of which it is most certain too
        assert plain["precision[24]"] == pytest.approx(plain["success_unlabeled"], abs=1e-6)
        for figures, leak in ((plain, "leak_crossed"), (exchanged, "leak_named")):
            recalls = [figures[f"recall[{c}]"] for c in range(classes)]
            assert np.mean(recalls) == pytest.approx(figures[leak], abs=1e-6)


@pytest.mark.parametrize("classes", [2, 5])
def test_names_come_from_known_rows_alone_and_are_scored_on_others(classes):
    true = labels_of(classes)
    labels, known = true.labels[1], true.known_order[1][:KNOWN]
    train = noisy(labels, classes, 2.0)
    lying = train.copy()
    lying[known] = np.roll(train[known], 1, axis=1)
    plain, misled = (figures_of(scores, classes, by=KNOWN) for scores in (train, lying))
    assert misled["named_report"] < 0.3 < 0.7 < plain["named_report"]
    # the oracle is not misled
    assert misled["leak_matched"] > 0.6
    # an attacker who knows labels himself names by them
    by_own = figures_of(lying, classes, known=KNOWN)
    assert by_own["named_report"] == pytest.approx(misled["named_report"])
    rows = np.isin(np.arange(ROWS), known)
    names = reference.best(train[rows], labels[rows])
    for name, half in (("named_select", true.selects[1]), ("named_report", ~true.selects[1])):
        scored = ~rows & half
        expected = reference.leak(train[scored], names, labels[scored])
        assert plain[name] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("classes", [2, 5])
def test_without_known_labels_names_come_from_the_half_that_is_not_scored(classes):
    true = labels_of(classes)
    labels, half = true.labels[1], true.selects[1]
    train = noisy(labels, classes, 2.0)
    train[half] = np.roll(train[half], 1, axis=1)
    figures = figures_of(train, classes, by=0)
    assert figures["named_select"] > 0.7
    assert figures["named_report"] < 0.3
    if classes == 2:
        assert figures["named_report"] == pytest.approx(figures["leak_report"], abs=1e-6)
    assert figures["leak_named"] == pytest.approx(figures["leak_matched"])


def test_labels_drawn_beside_the_scores_do_not_make_renaming_tell_more():
    """Names from few known rows are no free lunch: of scores without information they stay at chance."""
    values = [
        figures_of(noisy(labels_of(5).labels[1], 5, 0.0, seed), 5, by=KNOWN)["named_report"]
        for seed in range(20)
    ]
    assert abs(np.mean(values) - 0.2) < 0.03


def test_who_names_by_all_labels_leaves_no_row_to_score():
    train = noisy(labels_of(5).labels[1], 5, 1.0)
    figures = figures_of(train, 5, by=ROWS)
    assert np.isnan(figures["named_report"])
    assert not np.isnan(figures["leak_report"])


def test_labels_say_that_classes_were_named_and_by_whom():
    attack = AttackIdentity("fusion", attackers=(1,), named=True)
    assert attack.label == "fusion/named/parties=1"
    assert attack._replace(named=False, attackers=(0, 1)).label == "fusion/parties=0+1"
    assert attack._replace(rule=2, outdated=True).label == "fusion/rule=2/named/parties=1"


DIRECT = "direct/most_negative"


def exchanged(sweep):
    """The sweep as if a defense had exchanged the classes on whose gradients ``direct`` reads."""
    rows = sweep.attacks.to_pylist()
    for row in rows:
        row |= {"renamed": 0.0, "leak_select": 0.1, "leak_crossed": 0.1, "leak": 0.1}
        if row["label"] == DIRECT:
            row["renamed"] = 1.0
            row |= {"leak_named": 0.99, "named_select": 0.99, "named_report": 0.98}
    return sweep._replace(attacks=pa.Table.from_pylist(rows, sweep.attacks.schema))


def test_where_known_labels_name_better_the_renamed_attack_is_a_candidate(tiny_sweep):
    sweep = store.load(tiny_sweep)
    stored = {row["label"]: row["naming"] for row in sweep.attacks.to_pylist()}
    assert stored == {"passive": 20, "direct/first_negative": 20, DIRECT: 20}
    shown = read(exchanged(sweep))
    named = [row for row in shown.attacks if row.identity.named]
    assert len(named) == 12
    assert {row.identity.label for row in named} == {f"{DIRECT}/named"}
    assert {(row.identity.known, row.figures.get("success")) for row in named} == {(20, None)}
    assert all(row.adaptive for row in named)  # as the attack is
    for one in assess(shown).assessments:
        if one.federation == "no_split":
            assert (one.strongest.name, one.leak.mean) == (f"{DIRECT}/named", 0.99)
    (note,) = [line for line in stored_rows.notes(shown) if line.startswith(f"{DIRECT}/named")]
    assert "named by 20 known labels" in note
    # the attack keeps its rows under its own names
    assert len(shown.attacks) == sweep.attacks.num_rows + 12


def test_where_names_are_right_nothing_is_added(tiny_sweep):
    sweep = store.load(tiny_sweep)
    rows = sweep.attacks.to_pylist()
    for row in rows:
        row["renamed"] = 0.0
    same = sweep._replace(attacks=pa.Table.from_pylist(rows, sweep.attacks.schema))
    assert not any(row.identity.named for row in read(same).attacks)
    # nor in sweeps that were attacked before names were looked at
    older = [name for name in sweep.attacks.column_names if name not in ("naming", "renamed")]
    sweep = sweep._replace(attacks=sweep.attacks.select(older))
    assert not any(row.identity.named for row in read(sweep).attacks)
