"""Small federations for tests: a Spec, its numbers, its batches, and its jitted step."""

from __future__ import annotations

import dataclasses
import functools
import os

import jax
import numpy as np
import scipy.stats

from vfljax import keys, metrics
from vfljax.federation import protocol
from vfljax.testing import federations
from vfljax.testing.federations import (
    COLUMNS,
    ROWS,
    make_batch,
    make_context,
    make_hparams,
    make_labels,
    make_spec,
    make_weights,
)
from vfljax.testing.rules import finite, numbers
from vfljax.types import HParams, Spec

__all__ = [
    "COLUMNS",
    "ROWS",
    "make_batch",
    "make_context",
    "make_hparams",
    "make_labels",
    "make_spec",
    "make_weights",
    "numbers",
]

# tests compile much and compute little: unoptimized code halves their time. On a GPU XLA stops at some then
_QUICK = {"xla_backend_optimization_level": 0} if jax.default_backend() == "cpu" else None
quick_jit = functools.partial(jax.jit, compiler_options=_QUICK)

# "changes no bit" must hold of code as users run it, whatever XLA_FLAGS the tests run with
_AS_USERS = {"xla_backend_optimization_level": 3}
if "fusion_emitters" in os.environ.get("XLA_FLAGS", ""):
    _AS_USERS["xla_cpu_use_fusion_emitters"] = True
optimized_jit = functools.partial(jax.jit, compiler_options=_AS_USERS)

accuracy, leak = quick_jit(metrics.accuracy), quick_jit(metrics.leak)


def leak_best_named(scores, labels, weights=None):
    """The leak of scores whose columns are named as fits these labels best."""
    return metrics.leak(scores, metrics.names(scores, labels, weights), labels, weights)


best_leak = quick_jit(leak_best_named)


def make_state(spec: Spec, hparams: HParams, seed: int = 0, rows: int | None = None):
    """The protocol's initial state around the weights of a seed."""
    weights = make_weights(dataclasses.replace(spec, defenses=(), optimizers=(), scope="all"), seed)
    return _jitted_init(spec, rows)(keys.run_key(seed), weights, hparams)


@functools.cache
def _jitted_init(spec: Spec, rows: int):
    def start(key, weights, hparams):
        return federations.make_state(spec, hparams, key, weights, rows)

    return quick_jit(start)


@functools.cache
def jitted_step(spec: Spec, jit=quick_jit):
    return jit(protocol.make_step(spec))


def run_steps(spec: Spec, hparams: HParams, batches, seed: int = 0, jit=quick_jit):
    """(final state, exchanges, metrics) of consecutive steps."""
    step, state = jitted_step(spec, jit), make_state(spec, hparams, seed, len(batches[0].labels))
    exchanges, metrics = [], []
    for batch in batches:
        state, exchange, seen = step(state, batch, hparams)
        exchanges.append(exchange)
        metrics.append(seen)
    return state, exchanges, metrics


def tensor(seed: int, shape=(8, 4), scale: float = 1.0, mean: float = 0.0) -> np.ndarray:
    """Normal numbers of deviation ``scale``."""
    drawn = np.random.default_rng(seed).normal(mean, 1.0, size=shape) * scale
    return drawn.astype(np.float32)


def make_batches(spec: Spec, count: int) -> list:
    """The first batches of a federation."""
    return [make_batch(spec, number) for number in range(count)]


def differ(one, other) -> bool:
    """Whether two trees of the same shapes hold other numbers."""
    return any(np.any(a != b) for a, b in zip(numbers(one), numbers(other)))


def assert_law(samples, law, other) -> None:
    """Samples follow a law of SciPy, and not the other one; of fixed keys, or this would flicker."""
    assert scipy.stats.kstest(samples, law.cdf).pvalue > 1e-3
    assert scipy.stats.kstest(samples, other.cdf).pvalue < 1e-6


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
    assert finite(tree)
