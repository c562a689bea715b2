"""What every attack of the table promises. A new attack adds one row to ``ROWS``.

An attack is perfect where the exchange (or the attacker's own columns) gives the labels away, near
chance where it does not, and never reads a label outside the known rows.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from vfljax import attacks
from vfljax.types import Scores

ROWS_OF_A_RUN, KNOWN = 200, 40
QUICK = {"steps": 200, "batch_size": 8}
FAST = (
    ("learning_rate", 0.05),
    ("ema", 0.95),
    ("lambda_u", 5.0),
)  # published ones need 25,600 steps


class Row(NamedTuple):
    classes: tuple[int, ...]
    leak: str  # what gives the labels away: a name in LEAKS
    bad: tuple  # static options refused, with the message's start
    options: tuple = ({},)
    knobs: tuple = ()  # (name, value) pairs
    deterministic: bool = False  # rows permuted together permute the scores
    rare: bool = False  # one row in five is positive: the attacker knows which class is rarer


ROWS = {
    "passive": Row((2, 5), "features", (("layers", 9), ("steps", 0)), (QUICK,), FAST),
    "active": Row((5,), "features", (("head_init", "x"), ("batch_size", 0)), (QUICK,), FAST),
    "direct": Row(
        (2, 5),
        "signs",
        (("rule", "x"), ("epoch", -7)),
        (
            *({"rule": "first_negative"}, {"rule": "most_negative"}, {"rule": "least_negative"}),
            *({"epoch": -1}, {"epoch": "mean"}, {"epoch": "votes"}),
        ),
        deterministic=True,
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
        (2,),
        "centers",
        (("epoch", -7),),
        ({}, {"epoch": "mean"}, {"oracle": True}),
        deterministic=True,
    ),
    "inner": Row((2,), "centers", (("epoch", -7),), ({},), deterministic=True),
    "hint": Row(
        (2,),
        "centers",
        (("count", 0), ("epoch", -7)),
        ({}, {"count": 3}, {"count": 3, "oracle": True}),
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
    "residual": Row((2,), "pulls", (("neighbors", 0), ("epoch", "mean")), deterministic=True),
    "probe": Row(
        (2, 5),
        "clusters",
        (("inputs", "x"), ("hidden", -1), ("steps", 0)),
        ({}, {"inputs": "embeddings"}, {"inputs": "gradients", "hidden": 16}),
    ),
}
FORMS = [
    pytest.param(name, options, classes, id=f"{name}-{options}-{classes}")
    for name, row in ROWS.items()
    for options in row.options
    for classes in row.classes
]
every_form = pytest.mark.parametrize(("name", "options", "classes"), FORMS)


def features(rng, labels, classes):
    def columns(labels):
        centers = 4 * (np.arange(cases.WIDTH) % classes == labels[:, None])
        return centers + 0.3 * rng.normal(size=(len(labels), cases.WIDTH))

    return {"features": columns(labels), "test_features": columns(np.arange(10) % classes)}


def twice(gradients):
    """Received alike in both recorded epochs."""
    return {"gradients": [gradients, gradients]}


def signs(rng, labels, classes):
    return twice(rng.dirichlet(np.ones(classes), len(labels)) - np.eye(classes)[labels])


def signs_and_features(rng, labels, classes):
    return {**signs(rng, labels, classes), **features(rng, labels, classes)}


def lengths(rng, labels, classes):
    direction = rng.normal(size=(len(labels), 3))
    return twice(direction / np.linalg.norm(direction, axis=1)[:, None] * (1 + labels)[:, None])


def points(rng, labels, classes):
    """Around a point of its own for each class, whose sign differs too."""
    return (2 * np.eye(classes) - 1)[labels] + 0.1 * rng.normal(size=(len(labels), classes))


def centers(rng, labels, classes):
    return twice(points(rng, labels, classes))


def drops(rng, labels, classes):
    """Positives receive the larger sums."""
    return twice(labels[:, None] + 0.1 * rng.uniform(size=(len(labels), 3)))


def clusters(rng, labels, classes):
    """Embeddings and gradients around points."""
    z = points(rng, labels, classes)
    return {"embeddings": [z, z], **centers(rng, labels, classes)}


def pulls(rng, labels, classes):
    """Gradients that are a function of the embedding, and a little of the label."""
    z = rng.uniform(-1, 1, size=(len(labels), 1))
    g = 0.05 * np.sin(z) - 0.5 * labels[:, None]
    return {"embeddings": [z, z], **twice(g)}


LEAKS = {
    one.__name__: one
    for one in (features, signs, signs_and_features, lengths, centers, drops, clusters, pulls)
}


@functools.cache
def case_of(name, classes, leaky):
    """A run whose exchange gives the labels away, or those of an unrelated draw of labels."""
    rng = np.random.default_rng(7)
    labels = np.arange(ROWS_OF_A_RUN) % classes
    if ROWS[name].rare:
        labels = np.int64(np.arange(ROWS_OF_A_RUN) % 5 == 0)
    told = labels if leaky else rng.permutation(labels)
    given = LEAKS[ROWS[name].leak](rng, told, classes)
    return labels, cases.make_case(labels, classes, known=KNOWN, **given)


def make(name, options, classes):
    # an attack is made once, as in a sweep, so that its program is compiled once
    return _made(name, tuple(options.items()), classes)


@functools.cache
def _made(name, options, classes):
    return attacks.TABLE[name](cases.BOTTOMS, classes, **dict(options))


def scores_of(name, options, classes, case) -> Scores:
    return cases.attack(make(name, options, classes), case, **dict(ROWS[name].knobs))


def unknown_rows(case):
    _, known = cases.sight(case)
    return np.asarray(known.rows)[int(known.count) :]


def test_every_attack_of_the_table_has_a_row_here():
    assert set(ROWS) == set(attacks.TABLE)


@every_form
def test_is_perfect_where_the_labels_are_given_away(name, options, classes):
    labels, case = case_of(name, classes, leaky=True)
    scores = scores_of(name, options, classes, case)
    assert harness.leak(scores.train, jnp.asarray(labels)) > 0.99
    assert harness.accuracy(scores.train, jnp.asarray(labels)) > 0.99
    if scores.test is not None:
        assert harness.accuracy(scores.test, jnp.arange(10) % classes) == 1


@every_form
def test_is_near_chance_where_nothing_tells_of_the_labels(name, options, classes):
    labels, case = case_of(name, classes, leaky=False)
    rows = unknown_rows(case)
    train = np.asarray(scores_of(name, options, classes, case).train)[rows]
    accuracy = harness.accuracy(jnp.asarray(train), jnp.asarray(labels[rows]))
    told = np.mean(np.argmax(train, axis=1)[:, None] == np.arange(classes), axis=0)
    # guesses that know nothing of the labels agree by chance alone
    chance = np.sum(told * np.bincount(labels[rows], minlength=classes) / len(rows))
    assert abs(accuracy - chance) < 4 * np.sqrt(chance * (1 - chance) / len(rows))


def with_other_labels(labels, case):
    """The same run with the labels of all unknown rows permuted."""
    rows, permuted = unknown_rows(case), labels.copy()
    permuted[rows] = np.random.default_rng(0).permutation(labels[rows])
    assert np.mean(permuted != labels) > 0.1
    truth = np.concatenate([np.int32(permuted), case.ground.labels[ROWS_OF_A_RUN:]])
    return case._replace(ground=case.ground._replace(labels=truth))


def test_labels_outside_the_known_rows_enter_neither_view_nor_known():
    labels, case = case_of("direct", 5, leaky=True)
    harness.assert_same_bits(cases.sight(case), cases.sight(with_other_labels(labels, case)))


@every_form
def test_labels_outside_the_known_rows_change_no_score(name, options, classes):
    labels, case = case_of(name, classes, leaky=True)
    one = scores_of(name, options, classes, case)
    other = scores_of(name, options, classes, with_other_labels(labels, case))
    harness.assert_same_bits(one, other)


@pytest.mark.parametrize(
    ("name", "options", "classes"),
    [form for form in FORMS if ROWS[form.values[0]].deterministic],
)
def test_rows_permuted_together_permute_the_scores(name, options, classes):
    _, case = case_of(name, classes, leaky=True)
    order = np.random.default_rng(1).permutation(ROWS_OF_A_RUN)
    place = np.argsort(order)
    view, known = cases.sight(case)
    view = jax.device_get(view)
    moved = view._replace(
        embeddings=view.embeddings[:, order],
        gradients=view.gradients[:, order],
        order=view.order[:, order],
        sent=view.sent[:, order],
        sums=jax.tree.map(lambda a: a[order], view.sums),
        features=tuple(x[order] for x in view.features),
        inside=jax.tree.map(lambda a: a[order], view.inside),
    )
    run = cases.jitted(make(name, options, classes).run)
    key, knobs = jax.random.key(0), {}
    plain = run(key, view, known, knobs).train
    permuted = run(key, moved, known._replace(rows=place[known.rows].astype(np.int32)), knobs).train
    # sums over rows in another order: equal up to rounding
    np.testing.assert_allclose(permuted, np.asarray(plain)[order], rtol=1e-5)


@every_form
def test_another_key_changes_the_scores_of_random_attacks_only(name, options, classes):
    _, case = case_of(name, classes, leaky=True)
    one = make(name, options, classes)
    first, again, other = (
        np.asarray(cases.attack(one, case, jax.random.key(seed), **dict(ROWS[name].knobs)).train)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.array_equal(first, other) == ROWS[name].deterministic


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [(name, option, value) for name, row in ROWS.items() for option, value in row.bad],
)
def test_bad_static_options_are_refused_in_one_line_with_the_value(name, option, value):
    with pytest.raises(ValueError, match=f"{option}={value!r}") as error:
        attacks.TABLE[name](cases.BOTTOMS, 2, **{option: value})
    assert "\n" not in str(error.value)
