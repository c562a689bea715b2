"""Online enumeration: against the twin, and what it reads."""

import jax
import jax.numpy as jnp
import numpy as np

from tests import harness
from tests.attacks import cases
from tests.reference import enumeration as reference
from vfljax import keys
from vfljax.attacks import enumeration as module
from vfljax.attacks.surrogate import Seen, seen_of


def test_batches_are_met_as_by_the_numpy_twin():
    rng, shape, steps = np.random.default_rng(0), (4, 5, 3), 2
    w, b, z, g = (rng.normal(size=s) for s in ((3, 4), (4,), shape, shape))
    sent, labels = np.ones((4, 5), bool), np.full((4, 5), -1)
    sent[3, 3:], labels[1, 2] = False, 3
    known = jnp.asarray(labels >= 0)
    seen = Seen(jnp.float32(z), jnp.float32(g), jnp.asarray(sent), jnp.asarray(labels), known)
    start, adam = (jnp.float32(w), jnp.float32(b)), module.optax.adam(0.05)
    follow = harness.quick_jit(lambda h, seen: module.followed(h, seen, adam, steps))
    parts = [(z[t][sent[t]], g[t][sent[t]], labels[t][sent[t]]) for t in range(4)]
    expected = reference.replayed(w, b, parts, 0.05, steps)
    for t, got in enumerate(follow(start, seen)):
        np.testing.assert_allclose(got[sent[t]], expected[t], rtol=2e-3)


def test_the_draw_that_leaves_least_counts_and_epochs_are_averaged():
    rng, sent = np.random.default_rng(7), np.ones((2, 50), bool)
    sent[0, 7] = sent[:, 9] = False
    labels = rng.permutation(50) % 2
    exchange = cases.LEAKS["tops"](rng, labels, 2)
    case = cases.make_case(labels, 2, known=12, sent=sent, cut=2, **exchange)
    view, known = cases.seen_of(case)
    key, found = jax.random.key(3), []
    in_epoch = harness.quick_jit(seen_of)
    seen = [[np.asarray(x, np.float64) for x in in_epoch(view, known, e)[:2]] for e in (0, 1)]
    parts = [np.flatnonzero(sent[e, i : i + 20]) + i for e in (0, 1) for i in (0, 20, 40)]
    batches = [(*(x[rows] for x in seen[t // 3]), 0 * rows - 1) for t, rows in enumerate(parts)]
    for draw in jax.random.split(keys.fold(key, "surrogate"), 4):
        w, b = (np.float64(x) for x in module.drawn(draw, 2, 2))
        r = np.full((2, 50, 2), np.nan)
        for t, part in enumerate(reference.replayed(w, b, batches, 0.01, 1)):
            r[t // 3, parts[t]] = part
        found.append((np.nansum(r[1].min(axis=1)), r))
    best = min(found, key=lambda pair: pair[0])[1]
    attack = cases.build(module.ROW, 2, 2, names="none", draws=4)
    got = np.asarray(cases.attack(attack, case, key).train)
    rows = np.arange(50) != 9
    np.testing.assert_allclose(got[rows], -np.nanmean(best[:, rows], axis=0), rtol=5e-3, atol=1e-4)
    assert np.all(np.isnan(got[9]))
    # known labels are nothing to this form
    other = case._replace(run=case.run._replace(knobs={"known": np.float32(0)}))
    np.testing.assert_array_equal(got, cases.attack(attack, other, key).train)
