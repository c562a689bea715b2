"""The codebooks of a sweep, one for each seed, defense with a ``codebook`` slot, and values of its knobs.

They are trained and stored before the federations start. Trials of the same seed and knobs share a codebook.
"""

from __future__ import annotations

import functools
import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import defenses, keys, machine, store
from vfljax.errors import UserError
from vfljax.sweep.grid import knobs_of, trial_rows
from vfljax.sweep.grouping import Group
from vfljax.types import Array, DefenseSpec, HostArray, PyTree, Spec

CODEBOOKS = "codebooks"  # the kind of shared arrays that hold them
# codebooks trained at once on a CPU; above HEAVY numbers in a codebook they are trained one by one
TOGETHER, HEAVY = 8, 100_000
Identity = tuple[int, tuple[tuple[str, float], ...]]  # seed and knobs


def _makers(spec: Spec) -> tuple[DefenseSpec, ...]:
    return defenses.having("codebook", spec.defenses)


def _uses(groups: Sequence[Group]) -> Iterator[tuple[DefenseSpec, dict[str, Any]]]:
    """Yields every defense that trains a codebook, with the row of every trial that has the defense."""
    for group in groups:
        if makers := _makers(group.spec):
            rows = trial_rows(group.trials)
            yield from ((maker, row) for maker in makers for row in rows)


def numbers(spec: Spec) -> int:
    """Returns how many numbers the codebooks of one trial have, without computing them."""
    return sum(_numbers(_shapes(maker, spec.num_classes)) for maker in _makers(spec))


def train(groups: Sequence[Group], workdir: pathlib.Path) -> None:
    """Trains and stores the codebooks that trials have and that are not stored yet.

    Args:
      groups: the trials of the sweep.
      workdir: the folder of the sweep, whose lock the caller holds.
    """
    there, missing = store.read_keyed(workdir, CODEBOOKS), dict[DefenseSpec, dict[Identity, None]]()
    for maker, row in _uses(groups):
        identity = _identity(maker, row)
        if _name(maker, identity, 0) not in there:
            missing.setdefault(maker, {})[identity] = None
    arrays = {}
    for maker, identities in missing.items():
        trained = _train(maker, list(identities), groups[0].spec.num_classes)
        for place, identity in enumerate(identities):
            leaves = jax.tree.leaves(trained)
            arrays |= {_name(maker, identity, n): a[place] for n, a in enumerate(leaves)}
    store.write_keyed(workdir, CODEBOOKS, arrays)


def codebooks(groups: Sequence[Group], workdir: pathlib.Path) -> dict[int, dict[str, PyTree]]:
    """Returns the codebooks of every trial that has any, by its id and the defense's name.

    Args:
      groups: the trials of the sweep.
      workdir: the folder of the sweep, where ``train`` has stored them.
    """
    there, out = store.read_keyed(workdir, CODEBOOKS), dict[int, dict[str, PyTree]]()
    for maker, row in _uses(groups):
        structure = jax.tree.structure(_shapes(maker, groups[0].spec.num_classes))
        identity = _identity(maker, row)
        leaves = [there[_name(maker, identity, n)] for n in range(structure.num_leaves)]
        out.setdefault(row["trial"], {})[maker.name] = jax.tree.unflatten(structure, leaves)
    return out


def _name(maker: DefenseSpec, identity: Identity, leaf: int) -> str:
    """Returns the name under which a leaf of a codebook is stored: what the codebook depends on."""
    seed, knobs = identity
    return "-".join(
        [maker.name, *(f"{n}={v!r}" for n, v in (*maker.options, *knobs)), f"{seed}.{leaf}"]
    )


def _identity(maker: DefenseSpec, row: Mapping[str, Any]) -> Identity:
    return row["seed"], tuple(knobs_of(row)[maker.name].items())


def _make(maker: DefenseSpec, num_classes: int, seed: Array, knobs: dict[str, Array]) -> PyTree:
    """The codebook that the protocol's ``init`` would train."""
    chain = defenses.build((maker,), {maker.name: knobs})
    return chain.codebook(keys.fold(keys.run_key(seed), "defense"), num_classes)[maker.name]


def _shapes(maker: DefenseSpec, num_classes: int) -> PyTree:
    knobs = jax.tree.map(jnp.float32, dict(defenses.TABLE[maker.name].example))
    return jax.eval_shape(functools.partial(_make, maker, num_classes), jnp.uint32(0), knobs)


def _numbers(shapes: PyTree) -> int:
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))


def _train(maker: DefenseSpec, identities: Sequence[Identity], num_classes: int) -> PyTree:
    """Trains the codebooks [T, ...] of these identities. Raises UserError if one diverged."""
    seeds: HostArray = np.asarray([seed for seed, _ in identities], np.uint32)
    knobs = {
        name: np.asarray([dict(values)[name] for _, values in identities], np.float32)
        for name in defenses.TABLE[maker.name].knobs
    }
    together = TOGETHER if _numbers(_shapes(maker, num_classes)) <= HEAVY else 1
    together = together if machine.offered().cpu else len(seeds)

    def all_of_them(seeds: Array, knobs: dict[str, Array], together: int) -> PyTree:
        train = functools.partial(_make, maker, num_classes)
        return jax.lax.map(lambda each: train(*each), (seeds, knobs), batch_size=together)

    given = jax.device_put(seeds), knobs
    lower = jax.jit(all_of_them, static_argnums=2).lower
    trained = jax.device_get(
        machine.run_fitting(lambda width: lower(*given, width).compile(), together, given)
    )
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(trained)):
        raise UserError(f"a codebook of {maker.name} diverged: lower its learning_rate.")
    return trained
