"""The surrogate top: its loss against the twin and finite differences, what it reads, and its limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import surrogate as reference
from tests.reference.posterior import adamw
from vfljax.attacks import surrogate as module
from vfljax.attacks.surrogate import KNOBS, Seen, labels_of, make_loss, seen_of, surrogate
from vfljax.testing.exchanges import LEAKS
from vfljax.types import MALICIOUS, SPLIT

ROWS, CLASSES, CUT, HIDDEN = 7, 3, 2, 4
WEIGHTS = {"cross_entropy": 0.3, "balance": 0.7, "anchor": 2.0}
QUICK = {"learning_rate": 0.1}


def small(seed=0):
    """Parameters, u, and what a tiny exchange looks like; one row is known, one is not sent."""
    rng = np.random.default_rng(seed)
    shapes = ((HIDDEN, CUT), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,))
    parameters = [rng.normal(size=shape) for shape in shapes]
    u, z, g = (rng.normal(size=(ROWS, w)) for w in (CLASSES, CUT, CUT))
    sent, labels = np.arange(ROWS) != 5, np.where(np.arange(ROWS) == 2, 1, -1)
    return parameters, u, (z * sent[:, None], g * sent[:, None], sent, labels)


def logits_of(parameters, z):
    w, b, v, c = parameters
    return jnp.tanh(z @ w.T + b[None]) @ v.T + c[None]


def ours(parts, weights):
    z, g, sent, labels = parts
    seen = Seen(jnp.float32(z), jnp.float32(g), jnp.asarray(sent), jnp.asarray(labels))
    return make_loss(logits_of, seen, {k: jnp.float32(v) for k, v in weights.items()})


def as_jax(parameters, u):
    return [jnp.float32(p) for p in parameters], jnp.float32(u)


@pytest.mark.parametrize("weights", [WEIGHTS, {**WEIGHTS, "anchor": 0.0}])
def test_the_loss_and_its_gradient_are_those_of_the_numpy_twin(weights):
    parameters, u, parts = small()
    value, (by_parameters, by_u) = harness.quick_jit(jax.value_and_grad(ours(parts, weights)))(
        as_jax(parameters, u)
    )
    np.testing.assert_allclose(value, reference.loss(parameters, u, *parts, **weights), rtol=1e-5)
    expected = reference.slopes(lambda u: reference.loss(parameters, u, *parts, **weights), u)
    np.testing.assert_allclose(by_u, expected, atol=1e-5)
    for place, got in enumerate(by_parameters):

        def changed(part, place=place):
            other = [*parameters[:place], part, *parameters[place + 1 :]]
            return reference.loss(other, u, *parts, **weights)

        expected = reference.slopes(changed, parameters[place])
        np.testing.assert_allclose(got, expected, atol=1e-4)


def test_known_rows_and_rows_not_sent_have_no_label_to_learn():
    parameters, u, parts = small()
    _, by_u = harness.quick_jit(jax.grad(ours(parts, WEIGHTS)))(as_jax(parameters, u))
    np.testing.assert_array_equal(np.flatnonzero(np.any(by_u != 0, axis=1)), [0, 1, 3, 4, 6])


def test_the_gradient_term_is_0_for_the_true_top_and_labels_and_1_for_a_constant():
    parameters, _, (z, _, sent, labels) = small()
    truth = np.arange(ROWS) % CLASSES
    u = 40.0 * np.eye(CLASSES)[truth]
    g = np.zeros((ROWS, CUT))
    for i in np.flatnonzero(sent):  # the distance to nothing is the gradient's own length
        terms = [
            reference.row_terms(parameters, u[i], z[i], step, truth[i])[0]
            for step in (np.zeros(CUT), [1e-4, 0], [0, 1e-4])
        ]
        g[i] = [(terms[0] ** 2 - t**2 + 1e-8) / 2e-4 for t in terms[1:]]
    none = dict.fromkeys(WEIGHTS, 0.0)
    loss = harness.quick_jit(ours((z, g, sent, labels * 0 - 1), none))
    assert loss(as_jax(parameters, u)) < 1e-3
    constant = [parameters[0] * 0, *parameters[1:]]
    np.testing.assert_allclose(loss(as_jax(constant, u)), 1, rtol=1e-5)


def tops(seed=7, classes=CLASSES, rows=120, known=12, sent=None, changes=()):
    """A run with the exact gradients of a top model, whose embeddings overlap."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(rows) % classes
    arrays = {**LEAKS["tops"](rng, labels, classes), **dict(changes)}
    return labels, cases.make_case(labels, classes, known=known, sent=sent, **arrays)


def scores(case, classes=CLASSES, known=12, key=None, **options):
    one = cases.build(surrogate, classes, **{"steps": 200, **options})
    known = {"known": known} if options.get("names") != "none" else {}
    return np.asarray(cases.attack(one, case, key, **known, **QUICK).train)


def hits(scores, labels):
    return np.mean(scores.argmax(axis=1) == labels)


def test_the_first_steps_are_adam_s_on_the_twin_s_loss():
    labels, case = tops(rows=8, known=CLASSES)
    case = case._replace(run=case.run._replace(knobs={"known": np.float32(CLASSES)}))
    view, known = cases.seen_of(case)
    z, g, sent, named = (np.array(part, np.float64) for part in seen_of(view, known, -1))
    parts = z, g, sent > 0, named.astype(int)
    model = module.from_module(module.MLP((2,), CLASSES, "tanh"))
    start = model.init(module.keys.fold(jax.random.key(3), "model"), jnp.float32(z[:1]))["params"]
    layers = [np.float64(start[f"Dense_{i}"][k]).T for i in (0, 1) for k in ("kernel", "bias")]
    shapes = [part.shape for part in (*layers, np.zeros((8, CLASSES)))]
    weights = {k: KNOBS[k] for k in ("cross_entropy", "balance", "anchor")}

    def gradient(flat):
        def loss(x):
            cuts = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
            pieces = [p.reshape(s) for p, s in zip(np.split(x, cuts), shapes)]
            return reference.loss(pieces[:4], pieces[4], *parts, **weights)

        return [reference.slopes(loss, flat[0])]

    begun = np.concatenate([part.ravel() for part in (*layers, np.zeros((8, CLASSES)))])
    (end,) = adamw(gradient, [begun], 2, QUICK["learning_rate"], 0.0)
    u = end[-8 * CLASSES :].reshape(8, CLASSES)
    expected = np.log([reference.softmax(row) for row in u])
    got = scores(case, hidden=2, steps=2, known=CLASSES, key=jax.random.key(3))
    unknown = named < 0
    np.testing.assert_allclose(got[unknown], expected[unknown], atol=2e-3)
    np.testing.assert_array_equal(got[~unknown].argmax(axis=1), labels[~unknown])
    assert np.ptp(got[unknown]) > 0.2


def test_reads_labels_that_neither_embeddings_nor_one_known_row_a_class_give_away():
    labels, case = tops()
    z = case.run.exchange["embeddings"][-1]
    assert hits(scores(case, hidden=8), labels) > 0.97 > hits(z, labels) + 0.05


def test_units_and_origin_of_the_embeddings_change_nothing():
    _, case = tops()
    e = case.run.exchange
    moved = {"embeddings": 3 + 100 * e["embeddings"], "gradients": e["gradients"] / 100}
    _, other = tops(changes=moved.items())
    np.testing.assert_allclose(scores(case, steps=20), scores(other, steps=20), atol=2e-2)


def test_without_known_rows_two_classes_are_told_apart_and_may_change_names():
    labels, case = tops(classes=2, known=0)
    apart = hits(scores(case, 2, names="none", hidden=0), labels)
    assert max(apart, 1 - apart) > 0.97
    with_known = tops(classes=2, known=40)[1]
    one, other = (scores(c, 2, names="none", hidden=0) for c in (with_known, case))
    np.testing.assert_array_equal(one, other)


def test_q_is_the_label_where_it_is_known():
    u = jnp.float32([[0, 0], [1, 0]])
    np.testing.assert_allclose(labels_of(u, jnp.array([-1, 1])), [[0.5, 0.5], [0, 1]])


def test_the_attacker_without_labels_has_no_knob_known():
    one, other = (surrogate(cases.BOTTOMS, 2, names=name) for name in ("known", "none"))
    assert one.federations == other.federations == (SPLIT, MALICIOUS)
    assert set(one.knobs) - set(other.knobs) == {"known"}
    assert one.baselines == ("logistic",)
    assert other.baselines == ()
