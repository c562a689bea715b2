"""Loads what an attack's program is given of each member: what it reads of the exchange, and the bottoms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import attacks
from vfljax.attack_runs.bundles import Bundle, Stored
from vfljax.attack_runs.jobs import UNTRAINED, Job, ViewGroup
from vfljax.attack_runs.projection import project_exchange, width_read
from vfljax.attack_runs.view import AttackInput, attack_input
from vfljax.federation.protocol import make_embed
from vfljax.federation.training import Table, rows_of
from vfljax.models.reading import over_chunks
from vfljax.store.exchange import INPUTS, NODES
from vfljax.sweep import programs
from vfljax.sweep.initial import initial_weights
from vfljax.types import Array, HostArray, Spec, Weights

OF_EXCHANGE = {
    "embeddings": ("embeddings",),
    "gradients": ("gradients", "sum_gradient", "sum_sign", "sum_square"),
    "order": ("order",),
}
"""The arrays of an exchange that an attack is given only if it reads them, by name in ``READS``."""


def _as_read(run: AttackInput, names: Collection[str]) -> AttackInput:
    """Returns the input without what is not read, by ``names`` in ``READS``: it need not be moved to the
    devices."""
    summed = "parameter gradients" in names  # which are computed from gradients by batch
    reads = {*names, *(("gradients", "order") if summed else ())}
    left_out = [name for read, names in OF_EXCHANGE.items() if read not in reads for name in names]
    left_out += [] if summed else [INPUTS]
    left_out += [] if NODES in reads else [NODES]
    kept = {name: a for name, a in run.exchange.items() if name not in left_out}
    return run._replace(exchange=kept, bottoms=run.bottoms if "bottoms" in reads else ())


def filled(run: AttackInput, bottoms: tuple[nn.Module, ...], widest: int) -> AttackInput:
    """Returns the input with zeros for the arrays that ``_as_read`` left out. No score depends on them."""
    sent, width = run.exchange["sent"], sum(width_read(bottom.out, widest) for bottom in bottoms)
    of_epochs = jnp.zeros((*sent.shape, width))
    empty: dict[str, Array] = dict.fromkeys(("embeddings", "gradients"), of_epochs)
    empty |= dict.fromkeys(OF_EXCHANGE["gradients"][1:], of_epochs[0])
    empty["order"] = jnp.zeros(sent.shape, jnp.int32)
    return run._replace(exchange={**empty, **run.exchange})


def loader(bundle: Bundle, stored: Stored) -> Callable[[Job], AttackInput]:
    """Returns a function that loads a member's ``AttackInput``, for UNTRAINED with untrained bottoms."""
    plan, workdir = stored.plan, stored.begun.workdir
    reads = {name for variant in bundle.variants for name in variant.attack.reads}
    weights = "own" if "bottoms" in reads else "none"
    weights = "all" if bundle.variants[0].attack.diagnostic else weights

    @functools.cache
    def untrained(group: ViewGroup) -> tuple[Any, np.ndarray]:
        weights = initial_weights(
            group.spec, plan.experiment, plan.seeds, plan.table, plan.effort.training
        )
        cut = untrained_cut(weights, plan.table, group.spec, group.attackers, plan.effort.attacks)
        return jax.device_get(weights.bottoms), cut

    def as_read(run: AttackInput, member: Job) -> AttackInput:
        group, widest = member.group, attacks.TABLE[member.variant.name].widest
        of_trees = NODES in run.exchange  # paths through nodes are read as they are
        widths = [] if of_trees else [group.spec.bottoms[p].out for p in group.attackers]
        run = _as_read(run, reads)
        return run._replace(exchange=project_exchange(run.exchange, widths, widest, member.seed))

    def load(member: Job) -> AttackInput:
        rows = len(plan.splits[0].train)
        points = [member._replace(point=k).knobs(rows) for k in range(bundle.points)]
        trained = attack_input(
            workdir,
            member.row,
            member.variant.name,
            {name: [point[name] for point in points] for name in points[0]},
            member.group.attackers,
            weights,
            attacks.TABLE[member.variant.name].whole_batches,
        )
        if member.what != UNTRAINED:
            return as_read(trained, member)
        initial, cut = untrained(member.group)
        bottoms = tuple(
            jax.tree.map(lambda a: a[member.seed], initial[party])
            for party in member.group.attackers
        )
        embeddings = np.tile(cut[member.seed], (len(trained.exchange["epochs"]), 1, 1))
        exchange = {**trained.exchange, "embeddings": embeddings}
        return as_read(trained._replace(bottoms=bottoms, exchange=exchange), member)

    return load


def make_untrained_cut(
    spec: Spec, attackers: tuple[int, ...]
) -> Callable[[Weights, Array, Table], Array]:
    """Returns ``cut(weights [Q, ...], seeds [Q], table)``, the attackers' embeddings [Q, N, D] of all training
    rows."""
    embed = make_embed(spec)

    def of_seed(weights: Weights, seed: Array, table: Table) -> Array:
        def of(rows: Array) -> Array:
            cut = embed(weights, rows_of(table, seed, rows))
            return jnp.concatenate([cut[p] for p in attackers], axis=-1)

        return over_chunks(of, table.train[seed], spec.chunk)

    return jax.vmap(of_seed, in_axes=(0, 0, None))


def untrained_cut(
    weights: Weights, table: Table, spec: Spec, attackers: tuple[int, ...], level: int | None = None
) -> HostArray:
    """The attackers' embeddings [Q, N, D] of all training rows from each seed's initial weights [Q, ...]."""
    seeds = jnp.arange(len(table.train))
    arguments = weights, seeds, table._replace(scores=None)  # the table is not compiled in
    return np.asarray(
        programs.compiled(make_untrained_cut, (spec, attackers), arguments, level)(*arguments)
    )
