"""The least JAX program that trains a grid of trials and records what vfljax does: a peer of the grid
suite.

Nothing of vfljax is in it but the numbers that are trained (``problem``): a step written out for one
trial, scanned over an epoch, mapped over a few trials at once on each device, and returning what the
passive party sent and received in the order of sending. What vfljax takes beyond it are defenses' slots,
keys, records by row and their running sums, metrics and checks of finiteness.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from analysis.benchmark.peers.problem import MOMENTUM, WEIGHT_DECAY, Problem, draw
from vfljax.types import Array, PyTree

MOST_AT_ONCE = 5  # trials mapped at once on a core: more fall out of its cache


def network(layers: PyTree, x: Array) -> Array:
    """Linear -> ReLU, repeated, then Linear: [B, in] -> [B, out]."""
    for kernel, bias in layers[:-1]:
        x = jax.nn.relu(x @ kernel + bias[None])
    kernel, bias = layers[-1]
    return x @ kernel + bias[None]


def step(
    state: PyTree, features: tuple[Array, Array], labels: Array, rate: Array
) -> tuple[PyTree, tuple[Array, Array]]:
    """One batch of one trial: state (weights, velocity) -> state, and the passive party's embeddings
    and received gradients, each [B, D]."""
    weights, velocity = state
    mine, pull_mine = jax.vjp(lambda w: network(w, features[0]), weights["a"])
    theirs, pull_theirs = jax.vjp(lambda w: network(w, features[1]), weights["b"])

    def loss(top: PyTree, mine: Array, theirs: Array) -> Array:
        log_q = jax.nn.log_softmax(network(top, jnp.concatenate([mine, theirs], axis=1)))
        targets = jax.nn.one_hot(labels, log_q.shape[1])
        return -jnp.mean(jnp.sum(targets * log_q, axis=1))

    of_top, to_mine, to_theirs = jax.grad(loss, argnums=(0, 1, 2))(weights["top"], mine, theirs)
    gradients = {"a": pull_mine(to_mine)[0], "b": pull_theirs(to_theirs)[0], "top": of_top}
    velocity = jax.tree.map(
        lambda v, g, w: MOMENTUM * v + g + WEIGHT_DECAY * w, velocity, gradients, weights
    )
    weights = jax.tree.map(lambda w, v: w - rate * v, weights, velocity)
    return (weights, velocity), (mine, to_mine)


class Least:
    """The compiled program, its state and its times. Where trials do not divide among the devices, the
    first ones are trained again, and count."""

    def __init__(self, problem: Problem, width: int | None = None) -> None:
        drawn = draw(problem)
        devices = jax.devices()
        each = -(-problem.trials // len(devices))
        self.trials, self.steps = each * len(devices), problem.steps
        most = width or (MOST_AT_ONCE if jax.default_backend() == "cpu" else each)
        self.width = next(w for w in range(min(most, each), 0, -1) if each % w == 0)
        mesh = Mesh(devices, ("lane",))
        by_lane = NamedSharding(mesh, PartitionSpec("lane"))
        everywhere = NamedSharding(mesh, PartitionSpec())
        lanes = np.arange(self.trials) % problem.trials
        weights = jax.tree.map(lambda a: a[lanes], drawn.weights)
        # copies: the state is donated, and a device may share what lies on the host
        self.state = jax.device_put(
            (jax.tree.map(np.copy, weights), jax.tree.map(np.zeros_like, weights)), by_lane
        )
        self.lane = jax.device_put((drawn.rates[lanes], drawn.orders[lanes]), by_lane)
        self.table = jax.device_put((drawn.features, drawn.labels), everywhere)
        self.exchange: PyTree = None
        self.program = _program(mesh, each, self.width)

    def epoch(self) -> None:
        """One epoch of every trial."""
        self.state, self.exchange = self.program(self.state, self.lane, self.table)
        jax.block_until_ready(self.exchange)

    def measure(self, seconds: float) -> float:
        """Microseconds a trial and step, of at least ``seconds`` of training."""
        epochs, began = 0, time.perf_counter()
        while epochs == 0 or time.perf_counter() - began < seconds:
            self.epoch()
            epochs += 1
        return (time.perf_counter() - began) / (epochs * self.steps * self.trials) * 1e6


def _program(mesh: Mesh, each: int, width: int) -> Any:
    def epoch(state: PyTree, lane: tuple[Array, Array], table: tuple[Array, Array]) -> Any:
        (rate, order), (features, labels) = lane, table

        def one(state: PyTree, rows: Array) -> tuple[PyTree, Any]:
            return step(state, (features[0, rows], features[1, rows]), labels[rows], rate)

        return jax.lax.scan(one, state, order)

    def local(state: PyTree, lane: PyTree, table: PyTree) -> Any:
        def some(group: PyTree) -> Any:
            state, lane = group
            return jax.vmap(epoch, in_axes=(0, 0, None))(state, lane, table)

        groups = jax.tree.map(lambda a: a.reshape(-1, width, *a.shape[1:]), (state, lane))
        out = jax.lax.map(some, groups)
        return jax.tree.map(lambda a: a.reshape(each, *a.shape[2:]), out)

    lane, same = PartitionSpec("lane"), PartitionSpec()
    mapped = jax.shard_map(
        local, mesh=mesh, in_specs=(lane, lane, same), out_specs=(lane, lane), check_vma=False
    )
    return jax.jit(mapped, donate_argnums=0)
