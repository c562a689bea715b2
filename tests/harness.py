"""Small federations for tests: a Spec, its numbers, its batches, and its jitted step."""

from __future__ import annotations

import collections
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

import vfljax.attacks  # noqa: F401  first: see imports_test.py
from vfljax import keys, protocol
from vfljax.defenses.core import TrainingData
from vfljax.models import MLP
from vfljax.types import Batch, DefenseSpec, HParams, Spec

COLUMNS = 6  # of every party
ROWS = 24  # training rows


def make_spec(num_classes=5, defenses=(), **changes) -> Spec:
    """Two passive parties and a label party with columns; linear bottoms, one hidden layer on top."""
    passive = changes.pop("passive", 2)
    count = passive + int(changes.pop("label_features", True))
    split = changes.pop("split", True)
    cut = changes.pop("cut", 4) if split else num_classes
    top = MLP(changes.pop("top_hidden", (6,)), num_classes) if split else None
    bottom = MLP(changes.pop("hidden", ()), cut)
    values = {
        "bottoms": (bottom,) * count,
        "top": top,
        "passive": passive,
        "num_classes": num_classes,
        "num_rows": ROWS,
        "batch_size": 8,
        "epochs": 3,
        "optimizers": ("sgd",) * (count + 1),
        "defenses": tuple(
            one if isinstance(one, DefenseSpec) else DefenseSpec(one) for one in defenses
        ),
    }
    return Spec(**{**values, **changes})


def make_hparams(spec: Spec, defenses=None, gamma=None, **changes) -> HParams:
    values = {
        "learning_rate": 0.1,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "milestones": (),
        "decay": 0.1,
        "gamma": [0.0] * len(spec.bottoms) if gamma is None else gamma,
        **changes,
    }
    return HParams(
        **{name: jnp.asarray(value, jnp.float32) for name, value in values.items()},
        defenses=jax.tree.map(jnp.float32, defenses or {}),
    )


def make_batch(spec: Spec, seed: int, rows: int | None = None) -> Batch:
    """A batch of Gaussian columns, uniform labels and a random teacher."""
    rng = np.random.default_rng(seed)
    rows = spec.batch_size if rows is None else rows
    scores = rng.dirichlet(np.ones(spec.num_classes), rows)
    return Batch(
        features=tuple(
            jnp.asarray(rng.normal(size=(rows, COLUMNS)), jnp.float32) for _ in spec.bottoms
        ),
        labels=jnp.asarray(rng.integers(spec.num_classes, size=rows), jnp.int32),
        index=jnp.asarray(rng.permutation(spec.num_rows)[:rows], jnp.int32),
        scores=jnp.asarray(scores, jnp.float32),
    )


def make_state(spec: Spec, hparams: HParams, seed: int = 0, rows: int | None = None):
    rows = spec.batch_size if rows is None else rows
    key = keys.run_key(seed)
    initial = _initial_weights(
        dataclasses.replace(spec, defenses=(), optimizers=(), scope="all"), seed
    )
    data = TrainingData(
        jnp.zeros(spec.num_rows, jnp.int32),
        jnp.zeros((spec.num_rows, spec.num_classes)),
        spec.num_classes,
    )
    cut = tuple(jnp.zeros((rows, bottom.out)) for bottom in spec.bottoms)
    # eager: concrete knobs are range-checked here, as when a sweep is planned
    return protocol.make_init(spec)(key, initial, hparams, data, cut)


@functools.cache
def _initial_weights(spec: Spec, seed: int):
    examples = tuple(jnp.zeros((2, COLUMNS)) for _ in spec.bottoms)
    return _jitted_weights(spec)(keys.run_key(seed), examples)


@functools.cache
def _jitted_weights(spec: Spec):
    return jax.jit(protocol.make_weights(spec))


TRACES = collections.Counter()  # how often each spec's step was traced


@functools.cache
def jitted_step(spec: Spec):
    step = protocol.make_step(spec)

    def counted(state, batch, hparams):
        TRACES[spec] += 1
        return step(state, batch, hparams)

    return jax.jit(counted)


def run_steps(spec: Spec, hparams: HParams, batches, seed: int = 0):
    """(final state, exchanges, metrics) of consecutive steps."""
    step, state = jitted_step(spec), make_state(spec, hparams, seed, len(batches[0].labels))
    exchanges, metrics = [], []
    for batch in batches:
        state, exchange, seen = step(state, batch, hparams)
        exchanges.append(exchange)
        metrics.append(seen)
    return state, exchanges, metrics


def numbers(tree) -> list[np.ndarray]:
    """All leaves of a tree as NumPy arrays; keys as their words."""
    return [
        np.asarray(jax.random.key_data(a) if jnp.issubdtype(a.dtype, jax.dtypes.prng_key) else a)
        for a in jax.tree.leaves(tree)
    ]


def assert_same_bits(one, other) -> None:
    """Every number equal, not just close (0 and -0 are the same number)."""
    a, b = numbers(one), numbers(other)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        np.testing.assert_array_equal(x, y)


def assert_close(one, other, tolerance: float = 1e-5) -> None:
    a, b = numbers(one), numbers(other)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def assert_finite(tree) -> None:
    for x in numbers(tree):
        assert np.all(np.isfinite(x))
