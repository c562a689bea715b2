"""What every attack of the table promises. A new attack adds one row to ``ROWS``.

An attack is perfect where the exchange (or the attacker's own columns) gives the labels away, near
chance where it does not, and never reads a label outside the known rows.
"""

import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from vfljax import attacks, testing
from vfljax.testing import of_attacks
from vfljax.types import KINDS, MALICIOUS, NO_SPLIT, SPLIT, Scores

pytestmark = pytest.mark.usefixtures("real_learners")

ROWS_OF_A_RUN, KNOWN = 200, 40
QUICK = {"steps": 200, "batch_size": 8}
FAST = (
    ("learning_rate", 0.05),
    ("ema", 0.95),
    ("lambda_u", 5.0),
)  # published ones need 25,600 steps


class Row(NamedTuple):
    classes: tuple[int, ...]
    leak: str  # what gives the labels away: a name in ``cases.LEAKS``
    bad: tuple  # static options refused, with the message's start
    options: tuple = ({},)
    knobs: tuple = ()  # (name, value) pairs
    deterministic: bool = False  # rows permuted together permute the scores
    tolerance: float = 1e-5  # of that: sums over rows in another order are rounded anew
    rare: bool = False  # one row in five is positive: the attacker knows which class is rarer
    turned: tuple = ()  # options with which it reads gradients of the other sign
    perfect: float = 0.99  # ranks keep the order of a column, and not the gap between two classes


ROWS = {
    "passive": Row((2, 5), "features", (("layers", 9), ("steps", 0)), (QUICK,), FAST),
    "active": Row((5,), "features", (("head_init", "x"), ("batch_size", 0)), (QUICK,), FAST),
    "direct": Row(
        (2, 5),
        "signs",
        (("rule", "x"), ("epoch", -7)),
        (
            *({"rule": "first_negative"}, {"rule": "most_negative"}, {"rule": "least_negative"}),
            *({"rule": "most_positive"}, {"epoch": -1}, {"epoch": "mean"}, {"epoch": "votes"}),
        ),
        deterministic=True,
        turned=({"rule": "most_positive"},),
    ),
    "norm": Row(
        (2,),
        "lengths",
        (("epoch", -7), ("epoch", "x")),
        ({}, {"epoch": 0}, {"epoch": "mean"}),
        deterministic=True,
    ),
    "mean": Row(
        (2, 5),
        "centers",
        (("scores", "x"), ("epoch", 0.5)),
        ({}, {"scores": "distance"}, {"epoch": "mean"}, {"oracle": True}),
        deterministic=True,
    ),
    "median": Row(
        (2, 5),
        "centers",
        (("scores", "x"), ("epoch", -7)),
        ({}, {"scores": "distance"}, {"epoch": "votes"}),
        deterministic=True,
    ),
    "global_median": Row((2,), "drops", (("epoch", "mean"), ("epoch", -7)), deterministic=True),
    "cosine": Row(
        (2, 5),
        "centers",
        (("epoch", -7),),
        ({}, {"epoch": "mean"}, {"oracle": True}),
        deterministic=True,
    ),
    "inner": Row((2, 5), "centers", (("epoch", -7),), ({},), deterministic=True),
    "hint": Row(
        (2, 5),
        "centers",
        (("count", 0), ("epoch", -7)),
        ({}, {"count": 3}, {"count": 3, "oracle": True}, {"epoch": 0}),
        deterministic=True,
    ),
    "two_stage": Row((2, 5), "signs_and_features", (("rule", "x"), ("layers", 9)), (QUICK,), FAST),
    "spectral": Row(
        (2,),
        "clusters",
        (("signal", "x"), ("scores", "x"), ("heuristic", "x"), ("epoch", "mean")),
        (
            *({}, {"whole": True}, {"scores": "absolute"}, {"signal": cases.LAYER}),
            {"scores": "absolute", "heuristic": "larger"},
        ),
        deterministic=True,
        rare=True,
    ),
    "correlation": Row(
        (4,), "correlations", (("rounds", 0), ("starts", 0)), deterministic=True, tolerance=1e-3
    ),
    "charge": Row(
        (2,), "charges", (("rounds", 0), ("names", "x")), deterministic=True, tolerance=1e-3
    ),
    "residual": Row((2,), "pulls", (("neighbors", 0), ("epoch", "mean")), deterministic=True),
    "probe": Row(
        (2, 5),
        "clusters",
        (("inputs", "x"), ("hidden", -1), ("steps", 0)),
        ({}, {"inputs": "embeddings"}, {"inputs": "gradients", "hidden": 16}),
    ),
    "fusion": Row(
        (2, 5),
        "logits_and_signs",
        (("sign", "x"),),
        ({}, {"sign": "add"}),
        deterministic=True,
        turned=({"sign": "add"},),
    ),
    "similarity": Row(
        (2, 5),
        "clusters",
        (("signal", "x"), ("rule", "x"), ("epoch", -7)),
        ({}, {"signal": "embeddings", "rule": "clusters"}),
        deterministic=True,
    ),
    "joint": Row(
        (5,),
        "clusters",
        (("blocks", "x"), ("scale", "x"), ("hidden", -1), ("rounds", 5), ("steps", 0)),
        ({"steps": 20}, {"steps": 20, "blocks": "best"}),
        deterministic=True,
        tolerance=1e-3,
    ),
    "ranks": Row(
        (2, 5),
        "clusters",
        (("learner", "x"), ("blocks", "x"), ("most", 1)),
        ({}, {"learner": "ridge"}, {"learner": "lda"}, {"learner": "both"}),
        deterministic=True,
        tolerance=1e-3,
        perfect=0.85,
    ),
    "reader": Row(
        (2, 5),
        "clusters",
        (("learner", "x"), ("blocks", "x")),
        ({}, {"learner": "logistic"}, {"blocks": "exchange"}),
        deterministic=True,
        perfect=0.9,
    ),
    "surrogate": Row(
        (2, 5),
        "tops",
        (("names", "x"), ("hidden", -1), ("epoch", "mean"), ("steps", 0)),
        ({"steps": 150},),
        (("learning_rate", 0.1), ("anchor", 1.0)),
    ),
    "enumeration": Row((2, 5), "tops", (("names", "x"), ("steps", 0), ("draws", 0)), perfect=0.9),
    "clusters": Row(
        (2, 5), "tops_and_features", (("names", "x"), ("count", 13)), knobs=(("gradient", 0.5),)
    ),
    "swapping": Row(
        *((2,), "swaps", (("signal", "x"), ("epoch", "mean")), ({"signal": "norm"},)),
        knobs=(("weight", 10.0),),
        deterministic=True,
        tolerance=1e-3,
    ),
    "batch_inversion": Row(
        (2, 5),
        "sums",
        (("rule", "x"), ("epoch", "mean")),
        ({}, {"rule": "most_positive", "epoch": -1}),
        deterministic=True,
        tolerance=1e-3,  # which its eliminations multiply
        turned=({"rule": "most_positive", "epoch": -1},),
    ),
    "posterior": Row(
        (2, 5),
        "signs_and_features",
        (("steps", 0), ("signal", "x"), ("columns", "x")),
        ({"steps": 50}, {"steps": 50, "columns": "ranks"}),
        deterministic=True,
        tolerance=1e-3,  # which its optimizer's steps multiply
    ),
}
FORMS = [
    pytest.param(name, options, classes, id=f"{name}-{options}-{classes}")
    for name, row in ROWS.items()
    for options in row.options
    for classes in row.classes
]
every_form = pytest.mark.parametrize(("name", "options", "classes"), FORMS)
# the first federation of every attack: papers attack it, and it is trained for the attack's sake
FIRST = {
    "active": MALICIOUS,
    "swapping": MALICIOUS,
    "direct": NO_SPLIT,
    "two_stage": NO_SPLIT,
    "fusion": NO_SPLIT,
    "posterior": NO_SPLIT,
    "batch_inversion": NO_SPLIT,
}  # of the others: SPLIT


def labels_of(name, rows, classes):
    return np.int64(rows % 5 == 0) if ROWS[name].rare else rows % classes


def case_of(name, classes, leaky, options=None):
    """A run whose exchange gives the labels away, or those of an unrelated draw of labels."""
    return _case_of(name, classes, leaky, options in ROWS[name].turned)


@functools.cache
def _case_of(name, classes, leaky, turned):
    rng = np.random.default_rng(7)
    labels = labels_of(name, np.arange(ROWS_OF_A_RUN), classes)
    leaked = labels if leaky else rng.permutation(labels)
    arrays = cases.LEAKS[ROWS[name].leak](rng, leaked, classes)
    # the shapes of the contract's own runs, so that its programs and these are the same
    arrays.setdefault("gradients", np.zeros((2, ROWS_OF_A_RUN, classes)))
    arrays.setdefault("inputs", rng.normal(size=(2, ROWS_OF_A_RUN, cases.BATCH + 10)))
    if turned:
        arrays["gradients"] = -np.asarray(arrays["gradients"])
    cut = np.shape(arrays["gradients"])[-1]
    return labels, cases.make_case(labels, classes, known=KNOWN, cut=cut, **arrays)


def make(name, options, classes):
    return of_attacks.built(name, tuple(options.items()), classes, cut=classes)


def scores_of(name, options, classes, case) -> Scores:
    return cases.attack(make(name, options, classes), case, **dict(ROWS[name].knobs))


def unknown_rows(case):
    _, known = cases.seen_of(case)
    return np.asarray(known.rows)[int(known.count) :]


def test_the_rows_tested_are_those_of_the_table():
    assert set(ROWS) == set(attacks.TABLE)


every_row = pytest.mark.parametrize("name", attacks.TABLE)


@every_row
def test_the_row_lists_the_static_options_and_their_defaults(name):
    row, classes = attacks.TABLE[name], ROWS[name].classes[0]
    named = {option for option, _ in ROWS[name].bad}.union(*ROWS[name].options)
    assert named <= set(row.options)
    plain, explicit = row(cases.BOTTOMS, classes), row(cases.BOTTOMS, classes, **row.options)
    assert plain._replace(run=None) == explicit._replace(run=None)
    assert plain._replace(run=None) == row.factory(cases.BOTTOMS, classes)._replace(run=None)


@every_row
def test_the_row_says_of_published_steps_and_baselines_what_the_attack_does(name):
    row = attacks.TABLE[name]
    attack = row(cases.BOTTOMS, ROWS[name].classes[0])
    if attack.adaptive:  # ours by default: nothing was published
        assert not row.published_steps
    else:
        assert row.published_steps == attack.steps
    if name in ("passive", "active"):
        assert {"untrained", "logistic"} <= set(attack.baselines)


@every_form
def test_declares_what_it_reads_and_nothing_else(name, options, classes):
    tested = of_attacks.TestedAttack(name, options, classes)
    attack = tested.attack()
    assert of_attacks.fields_read(tested) == {*attack.reads, attack.diagnostic} - {""}


@every_row
def test_keeps_every_rule_of_the_contract(name):
    row = ROWS[name]
    testing.check(name, options=row.options[0], classes=row.classes[-1:], knobs=dict(row.knobs))


@every_row
def test_the_row_names_the_federations_it_is_defined_on_the_published_one_first(name):
    for options in ROWS[name].options:
        attack = make(name, options, ROWS[name].classes[0])
        assert len(set(attack.federations)) == len(attack.federations)
        assert attack.federations[0] == FIRST.get(name, SPLIT)


def test_what_one_attack_reads_everywhere_it_runs_on_everywhere():
    everywhere = {n for n in ROWS if set(make(n, {}, ROWS[n].classes[0]).federations) == set(KINDS)}
    others = {"passive", "active", "global_median", "surrogate", "charge", "correlation", *FIRST}
    others |= {"enumeration", "clusters"}
    assert everywhere == set(ROWS) - others
    layer = make("spectral", {"signal": cases.LAYER}, 2)
    assert layer.federations == (SPLIT,)


@pytest.mark.parametrize("name", [name for name in ROWS if name not in ("passive", "active")])
def test_a_view_of_another_rank_is_refused(name):
    """Those two read no exchange."""
    _, case = case_of(name, ROWS[name].classes[0], leaky=True)
    view, known = cases.seen_of(case)
    attack = make(name, ROWS[name].options[0], ROWS[name].classes[0])
    knobs = {knob: np.float32(value) for knob, value in attack.knobs.items()}
    flat = view._replace(gradients=view.gradients[..., 0], sent=view.sent[..., None])
    with pytest.raises(AssertionError):
        jax.eval_shape(attack.run, jax.random.key(0), flat, known, knobs)


def assert_perfect(labels, scores, classes, least=0.99):
    assert harness.leak(scores.train, jnp.asarray(labels)) > least
    assert harness.accuracy(scores.train, jnp.asarray(labels)) > least
    if scores.test is not None:
        assert harness.accuracy(scores.test, jnp.arange(10) % classes) == 1


@every_form
def test_is_perfect_where_the_labels_are_given_away(name, options, classes):
    labels, case = case_of(name, classes, leaky=True, options=options)
    scores = scores_of(name, options, classes, case)
    assert_perfect(labels, scores, classes, ROWS[name].perfect)


@every_form
def test_is_near_chance_where_nothing_tells_of_the_labels(name, options, classes):
    labels, case = case_of(name, classes, leaky=False, options=options)
    assert_near_chance(labels, scores_of(name, options, classes, case), case, classes)


def assert_near_chance(labels, scores, case, classes):
    rows = unknown_rows(case)
    train = np.asarray(scores.train)[rows]
    accuracy = harness.accuracy(jnp.asarray(train), jnp.asarray(labels[rows]))
    guesses = np.mean(np.argmax(train, axis=1)[:, None] == np.arange(classes), axis=0)
    # guesses that know nothing of the labels agree by chance alone
    chance = np.sum(guesses * np.bincount(labels[rows], minlength=classes) / len(rows))
    assert abs(accuracy - chance) < 4 * np.sqrt(chance * (1 - chance) / len(rows))


def with_other_labels(labels, case):
    """The same run with the labels of all unknown rows permuted."""
    rows, permuted = unknown_rows(case), labels.copy()
    permuted[rows] = np.random.default_rng(0).permutation(labels[rows])
    assert np.mean(permuted != labels) > 0.1
    truth = np.concatenate([np.int32(permuted), case.common.labels[ROWS_OF_A_RUN:]])
    return case._replace(common=case.common._replace(labels=truth))


def test_labels_outside_the_known_rows_enter_neither_view_nor_known():
    labels, case = case_of("direct", 5, leaky=True)
    chex.assert_trees_all_equal(cases.seen_of(case), cases.seen_of(with_other_labels(labels, case)))


@every_form
def test_labels_outside_the_known_rows_change_no_score(name, options, classes):
    labels, case = case_of(name, classes, leaky=True, options=options)
    one = scores_of(name, options, classes, case)
    other = scores_of(name, options, classes, with_other_labels(labels, case))
    chex.assert_trees_all_equal(one, other)


@pytest.mark.parametrize(
    ("name", "options", "classes"), [form for form in FORMS if ROWS[form.values[0]].deterministic]
)
def test_rows_permuted_together_permute_the_scores(name, options, classes):
    _, case = case_of(name, classes, leaky=True, options=options)
    order = np.random.default_rng(1).permutation(ROWS_OF_A_RUN)
    place = np.argsort(order)
    view, known = cases.seen_of(case)
    view = jax.device_get(view)
    moved = view._replace(
        embeddings=view.embeddings[:, order],
        gradients=view.gradients[:, order],
        order=view.order[:, order],
        sent=view.sent[:, order],
        sums=jax.tree.map(lambda a: a[order], view.sums),
        features=tuple(x[order] for x in view.features),
        diagnostics=jax.tree.map(lambda a: a[order], view.diagnostics),
        inputs=None if view.inputs is None else view.inputs[:, order],
    )
    attack = make(name, options, classes)
    run, key = cases.jitted(attack.run), jax.random.key(0)
    knobs = {name: np.float32(value) for name, value in attack.knobs.items()}
    plain = run(key, view, known, knobs).train
    permuted = run(key, moved, known._replace(rows=place[known.rows].astype(np.int32)), knobs).train
    tolerance = ROWS[name].tolerance
    np.testing.assert_allclose(permuted, np.asarray(plain)[order], tolerance, tolerance)


@every_form
def test_another_key_changes_the_scores_of_random_attacks_only(name, options, classes):
    _, case = case_of(name, classes, leaky=True, options=options)
    one = make(name, options, classes)
    first, other = (
        np.asarray(cases.attack(one, case, jax.random.key(seed), **dict(ROWS[name].knobs)).train)
        for seed in (0, 1)
    )
    assert np.array_equal(first, other) == ROWS[name].deterministic


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [(name, option, value) for name, row in ROWS.items() for option, value in row.bad],
)
def test_bad_static_options_are_refused_in_one_line_with_the_value(name, option, value):
    with pytest.raises(ValueError, match=f"{option}={value!r}") as error:
        attacks.TABLE[name](cases.BOTTOMS, 2, **{option: value})
    assert "\n" not in str(error.value)
