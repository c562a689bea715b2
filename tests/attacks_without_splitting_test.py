"""What the contract promises of an attack, on the other federation that it names: without model splitting.

Bottoms say C numbers of a row, and what comes back is the gradient of logits, softmax less target. Where
parties are malicious the wire carries what it does with splitting.
"""

import functools

import numpy as np
import pytest

from tests.attacks import cases
from tests.attacks_contract_test import (
    FORMS,
    KNOWN,
    ROWS,
    ROWS_OF_A_RUN,
    assert_near_chance,
    assert_perfect,
    labels_of,
)
from vfljax import attacks
from vfljax.testing import exchanges as planted
from vfljax.types import NO_SPLIT


def shares(rng, labels, classes):
    """Gradients without model splitting, softmax less target, of models that find class 0 likely."""
    alpha = np.where(np.arange(classes) == 0, 45, 15 / (classes - 1))
    g = rng.dirichlet(alpha, len(labels)) - np.eye(classes)[labels]
    return {"gradients": [g, g]}


def noise(rng, labels, classes):
    z = rng.uniform(-1, 1, size=(len(labels), classes))
    return {"embeddings": [z, z]}


# in place of ``planted.LEAKS``: gradients are of logits here, and another leak would be read in place of
# the one named. The entry "shares" stands for every other name
SHARES = {
    "shares": shares,
    "clusters": planted._together(planted._embedded, shares),
    "pulls": planted._together(noise, shares),
    **{name: planted.LEAKS[name] for name in ("features", "charges", "correlations")},
}


def make_without_splitting(name, options, classes):
    return cases.build_without_splitting(attacks.TABLE[name], classes, **options)


def runs_without_splitting(name, options, classes):
    """Whether it does, and the leaks of the contract are not of that federation already. What trains
    networks, which take long to compile, is tried at one of its class counts."""
    attack = make_without_splitting(name, options, classes)
    once = not attack.steps or classes == ROWS[name].classes[-1]
    return once and NO_SPLIT in attack.federations[1:]


without_splitting = pytest.mark.parametrize(
    ("name", "options", "classes"), [form for form in FORMS if runs_without_splitting(*form.values)]
)


@functools.cache
def case_without_splitting(name, classes, leaky):
    """``case_of``, where bottoms say C numbers of a row and gradients are those of logits."""
    rng = np.random.default_rng(7)
    labels = labels_of(name, np.arange(ROWS_OF_A_RUN), classes)
    leaked = labels if leaky else rng.permutation(labels)
    arrays = SHARES.get(ROWS[name].leak, SHARES["shares"])(rng, leaked, classes)
    return labels, cases.make_case(labels, classes, known=KNOWN, cut=classes, **arrays)


@without_splitting
def test_is_perfect_without_splitting_where_the_labels_are_given_away(name, options, classes):
    labels, case = case_without_splitting(name, classes, leaky=True)
    attack = make_without_splitting(name, options, classes)
    scores = cases.attack(attack, case, **dict(ROWS[name].knobs))
    assert_perfect(labels, scores, classes, ROWS[name].perfect)


@without_splitting
def test_is_near_chance_without_splitting_where_nothing_tells_of_them(name, options, classes):
    labels, case = case_without_splitting(name, classes, leaky=False)
    attack = make_without_splitting(name, options, classes)
    scores = cases.attack(attack, case, **dict(ROWS[name].knobs))
    assert_near_chance(labels, scores, case, classes)
