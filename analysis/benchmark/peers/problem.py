"""What the grid suite's peers all train, drawn with NumPy: table, initial weights, orders of rows and
learning rates of trials of one two-party MLP structure.

The update, of each trial by itself: the cross entropy's mean over the batch, its gradient g with
respect to both bottoms and the top model, then v <- .9 v + g + 5e-4 theta and theta <- theta - rate v.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

MOMENTUM, WEIGHT_DECAY = 0.9, 5e-4
NETWORKS = ("a", "b", "top")  # the passive party's, the label party's own bottom, the top model


class Problem(NamedTuple):
    """The sizes; static."""

    bottom: tuple[int, ...]  # widths from a party's columns to its embedding
    top: tuple[int, ...]  # from both embeddings to the classes
    rows: int  # N, of which each epoch takes floor(N / B) full batches
    batch: int  # B
    trials: int  # S

    @classmethod
    def of(cls, fields: list[Any]) -> Problem:
        """From its fields as JSON gives them back."""
        bottom, top, rows, batch, trials = fields
        return cls(tuple(bottom), tuple(top), rows, batch, trials)

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return self.rows // self.batch


Layers = list[tuple[np.ndarray, np.ndarray]]  # kernel [S, in, out] and bias [S, out] of each


class Drawn(NamedTuple):
    """The arrays, the same for the same ``Problem``; those of a trial do not depend on S."""

    features: np.ndarray  # [2, N, F] float32, each party's columns
    labels: np.ndarray  # [N] int32
    weights: dict[str, Layers]  # by network
    rates: np.ndarray  # [S] float32
    orders: np.ndarray  # [S, steps, B] int32: the rows of each step of every epoch


def draw(problem: Problem) -> Drawn:
    """Standard normal columns, uniform labels, kernels of variance 1 / in and biases of .1."""
    rng = np.random.default_rng(0)
    shape = (2, problem.rows, problem.bottom[0])
    features = rng.normal(size=shape).astype(np.float32)
    labels = rng.integers(problem.top[-1], size=problem.rows).astype(np.int32)
    used = problem.steps * problem.batch
    nets, orders = [], []
    for _ in range(problem.trials):
        nets.append({name: _layers(rng, widths) for name, widths in _widths(problem).items()})
        orders.append(rng.permutation(problem.rows)[:used].reshape(problem.steps, problem.batch))
    weights = {
        name: [
            (np.stack([w for w, _ in of_trials]), np.stack([b for _, b in of_trials]))
            for of_trials in zip(*(net[name] for net in nets), strict=True)
        ]
        for name in NETWORKS
    }
    # spread over a fixed range by a sequence in which the first trials stay what they are
    rates = 0.01 + 0.09 * (np.arange(problem.trials) * 0.618 % 1)
    return Drawn(
        features, labels, weights, rates.astype(np.float32), np.stack(orders).astype(np.int32)
    )


def _widths(problem: Problem) -> dict[str, tuple[int, ...]]:
    return {"a": problem.bottom, "b": problem.bottom, "top": problem.top}


def _layers(rng: np.random.Generator, widths: tuple[int, ...]) -> Layers:
    return [
        ((rng.normal(size=(i, o)) / np.sqrt(i)).astype(np.float32), np.full(o, 0.1, np.float32))
        for i, o in itertools.pairwise(widths)
    ]
