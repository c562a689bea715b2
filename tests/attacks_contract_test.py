"""What every attack of the table promises. A new attack adds one row to ``ROWS``.

An attack reads the labels where the exchange (or the attacker's own columns) gives them away, with a top model
and without one. It learns nothing of a label outside the known rows, and neither scores rows that were never
sent nor learns from them.

All that is tried of an attack has the shapes of the contract's own runs, so that one program serves it all.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType
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
FAST = {"learning_rate": 0.05, "ema": 0.95, "lambda_u": 5.0}  # published ones need 25,600 steps


class Row(NamedTuple):
    leak: str  # what gives the labels away: a name in ``cases.LEAKS``
    options: tuple = ({},)  # forms that differ in kind; the first keep all of the contract
    classes: tuple[int, ...] = (5,)  # how many it is tried with; the twins have others
    knobs: Mapping[str, float] = MappingProxyType({})
    tolerance: float = 1e-5  # of permuted rows: sums in another order are rounded anew
    rare: bool = False  # one row in five is positive: the attacker knows which class is rarer
    perfect: float = 0.99  # ranks keep the order of a column, and not the gap between two classes


ROWS = {
    "passive": Row("features", (QUICK,), knobs=FAST),
    "active": Row("features", (QUICK,), knobs=FAST),
    "direct": Row("signs", ({}, {"epoch": "votes"})),
    "two_stage": Row("signs_and_features", (QUICK,), knobs=FAST),
    "norm": Row("lengths", ({}, {"epoch": "mean"}), (2,)),
    "mean": Row("centers", ({}, {"oracle": True, "epoch": 0})),
    "median": Row("centers", ({"scores": "distance"},)),
    "global_median": Row("drops", classes=(2,)),
    "cosine": Row("centers", ({}, {"oracle": True})),
    "inner": Row("centers"),
    "hint": Row("centers", ({"count": 3},)),
    "spectral": Row("clusters", ({}, {"signal": cases.LAYER, "whole": True}), (2,), rare=True),
    "residual": Row("pulls", classes=(2,)),
    "probe": Row("clusters", ({}, {"inputs": "gradients"}), tolerance=1e-3),
    "fusion": Row("logits_and_signs"),
    "posterior": Row("signs_and_features", ({"steps": 50},), tolerance=1e-3),
    "similarity": Row("clusters", ({}, {"signal": "embeddings", "rule": "clusters"})),
    "joint": Row("clusters", ({"steps": 20, "blocks": "best"},), tolerance=1e-3),
    "ranks": Row(
        "clusters", ({}, {"learner": "lda", "blocks": "exchange"}), tolerance=1e-3, perfect=0.85
    ),
    "reader": Row("clusters", ({"learner": "logistic"}, {"blocks": "exchange"}), perfect=0.9),
    "spreading": Row("clusters", ({}, {"blocks": "exchange"}, {"blocks": "ranks"}), tolerance=1e-3),
    "surrogate": Row("tops", ({"steps": 150},), knobs={"learning_rate": 0.1, "anchor": 1.0}),
    "enumeration": Row("tops", perfect=0.9),
    "clusters": Row("tops_and_features", knobs={"gradient": 0.5}),
    "cohabitation": Row("nodes"),
    "node_posterior": Row("signs", ({}, {"smooth": "graph"})),
    "node_spreading": Row("nodes"),
    "swapping": Row("swaps", ({"signal": "norm"},), (2,), {"weight": 10.0}, 1e-3),
    "batch_inversion": Row("sums", tolerance=1e-3),
    "charge": Row("charges", classes=(2,), tolerance=1e-3),
    "correlation": Row("correlations", classes=(4,), tolerance=1e-3),
}
# static options that are refused, beside words that no option has
BAD = {
    "passive": {"layers": 9, "steps": 0, "batch_size": 1, "finetune_bottom": "x"},
    "active": {"batch_size": 0},
    "direct": {"epoch": -7},
    "two_stage": {"layers": 9},
    "norm": {"epoch": "x"},
    "mean": {"epoch": 0.5},
    "median": {"epoch": -7},
    "global_median": {"epoch": "mean"},
    "cosine": {"epoch": -7},
    "inner": {"epoch": -7},
    "hint": {"count": 0, "epoch": -7},
    "spectral": {"epoch": "mean"},
    "residual": {"neighbors": 0, "epoch": "mean"},
    "probe": {"steps": 0, "most": 1, "epoch": "x"},
    "posterior": {"steps": 0},
    "similarity": {"epoch": -7},
    "joint": {"rounds": 5, "steps": 0},
    "ranks": {"most": 1},
    "surrogate": {"hidden": -1, "epoch": "mean", "steps": 0},
    "enumeration": {"steps": 0, "draws": 0},
    "clusters": {"count": 13},
    "cohabitation": {"rounds": 0},
    "swapping": {"epoch": "mean"},
    "batch_inversion": {"epoch": "mean"},
    "charge": {"rounds": 0},
    "correlation": {"rounds": 0, "starts": 0},
}
# the first is the one that papers attack; of the others all, beginning with ``SPLIT``
FEDERATIONS = {
    **dict.fromkeys(("passive", "charge", "correlation"), (SPLIT, NO_SPLIT)),
    **dict.fromkeys(("global_median", "surrogate", "enumeration", "clusters"), (SPLIT, MALICIOUS)),
    **dict.fromkeys(("direct", "two_stage", "fusion", "posterior", "batch_inversion"), (NO_SPLIT,)),
    **dict.fromkeys(("cohabitation", "node_posterior", "node_spreading"), (NO_SPLIT,)),
    **dict.fromkeys(("active", "swapping"), (MALICIOUS,)),
}
EVERY_ROW_SCORED = ("passive", "active", "two_stage")  # whether it was sent or not: by its columns
EVERY_ROW_TEACHES = (*EVERY_ROW_SCORED, "swapping")  # by its columns too
# scores here are of a member among several. That they equal those alone JAX sees to, but for a rule of batching
# that is this attack's own
MAPPED_OTHERWISE = ("charge",)
# of embeddings they read the width alone, which is a shape and no part of what is traced
WIDTH_READ = ("node_spreading", "node_posterior")
DRAWN = (  # from the key
    *EVERY_ROW_SCORED,
    *("surrogate", "enumeration", "clusters", "node_posterior"),
)
every_row = pytest.mark.parametrize("name", attacks.TABLE)
every_form = pytest.mark.parametrize(
    ("name", "options", "classes"),
    [
        pytest.param(name, options, classes, id=f"{name}-{options}-{classes}")
        for name, row in ROWS.items()
        for options in row.options
        for classes in row.classes
    ],
)


def shares(rng, labels, classes):
    """Gradients without model splitting, softmax less target, of models that find class 0 likely."""
    alpha = np.where(np.arange(classes) == 0, 45, 15 / (classes - 1))
    g = rng.dirichlet(alpha, len(labels)) - np.eye(classes)[labels]
    return {"gradients": [g, g]}


def noise(rng, labels, classes):
    z = rng.uniform(-1, 1, size=(len(labels), classes))
    return {"embeddings": [z, z]}


# without model splitting, in place of ``cases.LEAKS``: gradients are of logits there, and another leak would be
# read in place of the one named. The entry "shares" stands for every other name
SHARES = {
    "shares": shares,
    "clusters": lambda *of: {**cases.LEAKS["logits_and_signs"](*of), **shares(*of)},
    "pulls": lambda *of: {**noise(*of), **shares(*of)},
    **{name: cases.LEAKS[name] for name in ("features", "nodes", "charges", "correlations")},
}


@functools.cache
def arrays_of(name, classes, split):
    """Labels, and the arrays of a run whose exchange gives them away, in the shapes of the contract's runs."""
    rng, rows = np.random.default_rng(7), np.arange(ROWS_OF_A_RUN)
    labels = np.int64(rows % 5 == 0) if ROWS[name].rare else rows % classes
    leak = ROWS[name].leak
    draw = cases.LEAKS[leak] if split else SHARES.get(leak, shares)
    arrays = draw(rng, labels, classes)
    arrays.setdefault("gradients", np.zeros((2, len(rows), classes)))
    arrays.setdefault("inputs", rng.normal(size=(2, len(rows), cases.BATCH + 10)))
    return labels, {part: np.asarray(array) for part, array in arrays.items()}


def case_of(name, classes, split=True, sent=None, garbage=0.0):
    """A run of these arrays, in which rows that were never ``sent`` hold garbage."""
    labels, arrays = arrays_of(name, classes, split)
    if sent is not None:
        crossed = {part: arrays[part] for part in arrays if not part.endswith("features")}
        ever = sent.any(axis=0)[:, None]
        hidden = {part: np.where(ever, x, garbage) for part, x in crossed.items()}
        arrays = {**arrays, **hidden, "sent": sent}
    cut = arrays["gradients"].shape[-1]
    return labels, cases.make_case(labels, classes, known=KNOWN, cut=cut, **arrays)


def make(name, options, classes):
    # by place as the contract does: equal arguments give one object, hence one program
    return of_attacks.built(name, tuple(options.items()), classes, classes)


def scores_of(name, options, classes, case, seed=0) -> Scores:
    attack = make(name, options, classes)
    knobs, key = {**attack.knobs, **ROWS[name].knobs}, jax.random.key(seed)
    return of_attacks.scores_of(attack, case, classes, key, knobs, of_attacks.mapped)


@every_row
def test_the_row_says_of_federations_published_steps_and_baselines_what_the_attack_does(name):
    row, classes = attacks.TABLE[name], ROWS[name].classes[0]
    attack = row(cases.ONE_BOTTOM, classes, **row.options)
    assert attack.federations == FEDERATIONS.get(name, KINDS)
    # adaptive: ours by default, nothing was published
    assert row.published_steps == (0 if attack.adaptive else attack.steps)
    if name in ("passive", "active"):
        assert {"untrained", "logistic"} <= set(attack.baselines)


@every_form
def test_keeps_every_rule_of_the_contract_and_declares_nothing_that_it_does_not_read(
    name, options, classes
):
    """Of other forms only what they read."""
    row = ROWS[name]
    for rule in testing.rules(name) if options == row.options[0] else ():
        if rule != of_attacks.MEMBERS or name in MAPPED_OTHERWISE:
            testing.check(name, rule, options=options, classes=(classes,), knobs=row.knobs)
    tested = of_attacks.TestedAttack(name, options, classes)
    attack = tested.attack()
    unseen = {"", "embeddings"} if name in WIDTH_READ else {""}
    assert of_attacks.fields_read(tested) == {*attack.reads, attack.diagnostic} - unseen


@every_form
def test_reads_labels_that_are_given_away_with_a_top_model_and_without(name, options, classes):
    federations = make(name, options, classes).federations
    for split in (True, False) if NO_SPLIT in federations[1:] else (True,):
        labels, case = case_of(name, classes, split)
        scores = scores_of(name, options, classes, case)
        assert harness.best_leak(scores.train, jnp.asarray(labels)) > ROWS[name].perfect
        assert harness.accuracy(scores.train, jnp.asarray(labels)) > ROWS[name].perfect
        if scores.test is not None:
            assert harness.accuracy(scores.test, jnp.arange(10) % classes) == 1


def relabeled(case, labels):
    """The case with other true labels of all rows."""
    return case._replace(common=case.common._replace(labels=labels))


def test_labels_outside_the_known_rows_enter_neither_view_nor_known():
    labels, case = case_of("direct", 5)
    view, known = cases.seen_of(case)
    rows, permuted = np.asarray(known.rows)[int(known.count) :], labels.copy()
    permuted[rows] = np.random.default_rng(0).permutation(labels[rows])
    assert np.mean(permuted != labels) > 0.1
    truth = np.concatenate([np.int32(permuted), case.common.labels[ROWS_OF_A_RUN:]])
    other = relabeled(case, truth)
    chex.assert_trees_all_equal((view, known), cases.seen_of(other))


@every_form
def test_rows_permuted_together_permute_the_scores_unless_they_are_drawn(name, options, classes):
    _, case = case_of(name, classes)
    plain = scores_of(name, options, classes, case).train
    if name in DRAWN:
        assert np.any(plain != scores_of(name, options, classes, case, seed=1).train)
        return
    order = np.random.default_rng(1).permutation(ROWS_OF_A_RUN)
    run, common = case
    by_epoch = ("embeddings", "gradients", "inputs", "nodes", "order", "sent")
    exchange = {
        part: x if part == "epochs" else x[:, order] if part in by_epoch else x[order]
        for part, x in run.exchange.items()
    }
    everyone = np.concatenate([order, np.arange(ROWS_OF_A_RUN, len(common.labels))])
    moved = common._replace(
        features=(common.features[0][everyone],),
        labels=common.labels[everyone],
        known_order=np.argsort(order)[common.known_order].astype(np.int32),
    )
    moved_case = cases.Case(run._replace(exchange=exchange), moved)
    permuted = scores_of(name, options, classes, moved_case, seed=1).train
    tolerance = ROWS[name].tolerance
    np.testing.assert_allclose(permuted, plain[order], tolerance, tolerance)


@every_row
def test_rows_not_sent_in_what_is_read_have_no_score_and_those_never_sent_change_none(name):
    options, classes = ROWS[name].options[0], ROWS[name].classes[-1]
    sent = np.tile(np.arange(ROWS_OF_A_RUN) % 7 != 3, (2, 1))
    sent[1, 5] = False  # this row was sent in the first epoch alone
    labels, case = case_of(name, classes, True, sent)
    _, other = case_of(name, classes, True, sent, garbage=9.0)
    epoch = make(name, options, classes).epoch
    scored = sent.any(axis=0) if epoch is None else sent[epoch]
    scored = scored | (name in EVERY_ROW_SCORED)
    # known ones among those never sent teach nothing
    teaching = sent.any(axis=0) | (name in EVERY_ROW_TEACHES)
    turned = np.where(teaching, labels, (labels + 1) % classes)
    truth = np.concatenate([np.int32(turned), case.common.labels[ROWS_OF_A_RUN:]])
    other = relabeled(other, truth)
    zeros, nines = (scores_of(name, options, classes, of).train for of in (case, other))
    np.testing.assert_array_equal(zeros, nines)
    np.testing.assert_array_equal(np.isfinite(zeros), scored[:, None] & np.ones(classes, bool))


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        *((name, option, value) for name in BAD for option, value in BAD[name].items()),
        *(
            (name, option, "unheard")
            for name, row in attacks.TABLE.items()
            for option, default in row.options.items()
            if isinstance(default, str)
        ),
    ],
)
def test_bad_static_options_are_refused_in_one_line_with_the_value(name, option, value):
    with pytest.raises(ValueError, match=f"{option}={value!r}") as error:
        attacks.TABLE[name](cases.ONE_BOTTOM, 2, **{option: value})
    assert "\n" not in str(error.value)
