"""Builds what an attacker sees of a stored run, without true labels.

True labels stay in ``Table``, which no attack is given. Only for oracle forms does the view hold what a
diagnostic computes from them (``attack_runs.diagnostics``).
"""

from __future__ import annotations

import functools
import pathlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.attacks.core import batches_at
from vfljax.federation.training import Table, labels_of, of_parties, rows_of
from vfljax.models.last_layer import parameter_gradient
from vfljax.store import checkpoint, exchange
from vfljax.types import Agreed, Array, HostArray, Known, Mates, PyTree, Sums, View, Weights

SUMS = ("sum_gradient", "sum_sign", "sum_square")  # over epochs, besides the count of epochs
PLACES = 8  # arrays are padded to a multiple of so many seeds (``with_places``)


class AttackInput(NamedTuple):
    """The arrays of one attack on one trial; a batch stacks them to [S, ...]."""

    seed: Array  # [] int32
    key_name: Array  # [] uint32 hash of the attack's name, folded into the seed's key
    knobs: dict[str, Array]  # each [points]
    exchange: dict[str, Array]  # concatenated over colluding parties
    bottoms: tuple[PyTree, ...]  # the attackers' trained bottom variables
    weights: Weights | None = None  # of the whole federation, for diagnostics


def with_places(of_seeds: PyTree, seeds: int) -> PyTree:
    """Returns arrays padded to a multiple of ``PLACES`` seeds, by copies of the last one that are never read.

    Sweeps of slightly different numbers of seeds therefore share the programs of attacks and of scoring.

    Args:
      of_seeds: arrays [Q, ...] or [draws Q, ...].
      seeds: Q.
    """

    # on the host, where no program is compiled for each shape
    def padded(a: Array | HostArray) -> HostArray:
        by_draw = np.asarray(a).reshape(-1, seeds, *a.shape[1:])
        last = np.repeat(by_draw[:, -1:], -seeds % PLACES, axis=1)
        return np.concatenate([by_draw, last], axis=1).reshape(-1, *a.shape[1:])

    return jax.tree.map(padded, of_seeds)


def common_data(table: Table, arrays: Mapping[str, np.ndarray], parties: Sequence[int]) -> Table:
    """Returns the data that all trials share, with the order in which labels become known and without
    validation rows, padded by ``with_places``.

    Args:
      table: the data.
      arrays: the plan's splits (``known.split_arrays``).
      parties: whose columns are taken.
    """
    names = ("mean", "scale", "train", "test", "label_mean", "label_scale")
    table = of_parties(table, parties)._replace(known_order=jax.device_put(arrays["known_order"]))
    by_seed = {name: getattr(table, name) for name in (*names, "known_order")}
    by_seed = with_places(by_seed, len(table.train))
    no_rows: Any = np.zeros((len(by_seed["train"]), 0), np.int32)
    return table._replace(validation=no_rows, scores=None, label_range=None, **by_seed)


def known_rows(common: Table, seed: Array, count: Array, draw: Array | int = 0) -> Known:
    """Returns the known rows with their labels, then all others with -1.

    A seed's order takes the classes in turn, so that the known rows are balanced. Beyond them, this order
    would reveal labels: a row's place determines its class, and the last rows are of the most frequent class.
    The other rows are therefore ordered by their place among the training rows, which attackers see anyway.

    Args:
      common: of ``common_data``.
      seed: whose order of rows is used.
      count: how many of the first rows are known.
      draw: which of the seed's orders it is.
    """
    assert common.known_order is not None
    in_turn = common.known_order[draw * len(common.train) + seed]
    rows = len(in_turn)
    count = jnp.minimum(count.astype(jnp.int32), rows)
    places = jnp.arange(rows, dtype=jnp.int32)
    turn = jnp.zeros(rows, jnp.int32).at[in_turn].set(places)
    order = jnp.argsort(jnp.where(turn < count, turn, rows + places)).astype(jnp.int32)
    labels = labels_of(common, seed, common.train[seed])[order]
    return Known(order, jnp.where(places < count, labels, -1), count)


def no_known_rows(common: Table) -> Known:
    """Returns ``known_rows`` of no row, which are all rows in their order, without its sort."""
    rows = jnp.arange(common.train.shape[1], dtype=jnp.int32)
    return Known(rows, jnp.full(rows.shape, -1, common.labels.dtype), jnp.int32(0))


@functools.lru_cache(maxsize=2)  # trials of a federation follow each other by shard
def _exchange(workdir: pathlib.Path, name: str) -> dict[str, HostArray]:
    """Returns the exchange arrays of the shard of this name, of which a trial's part is read when it is
    indexed."""
    return exchange.read(workdir / "shards" / name / exchange.FILE)


@functools.lru_cache(maxsize=2)
def _weights(workdir: pathlib.Path, name: str) -> PyTree:
    """Returns the weights of the shard of this name. Reading them takes longer than most attacks."""
    return checkpoint.load(workdir / "shards" / name / "checkpoint")


def attack_input(
    workdir: pathlib.Path,
    row: Mapping[str, Any],
    name: str,
    knobs: Mapping[str, Sequence[float]],
    attackers: tuple[int, ...],
    weights: str = "own",
    mates: bool = False,
) -> AttackInput:
    """Returns the exchange and bottoms of a stored trial, as an attack is given them.

    Args:
      row: the trial's row of results.
      name: of the attack.
      knobs: the attack's numbers at each of their points.
      attackers: whose exchange and bottoms are taken.
      weights: which trained weights are read, "none", the attackers' "own", which are ``bottoms``, or those of
        "all" parties, for diagnostics.
      mates: whether the exchange of batch mates is added.
    """
    arrays = _exchange(workdir, row["shard"])

    def number(value: Any, dtype: Any) -> HostArray:
        return np.asarray(value, dtype)

    given = AttackInput(
        seed=number(row["seed"], np.int32),
        key_name=number(zlib.crc32(name.encode()), np.uint32),
        knobs={knob: number(value, np.float32) for knob, value in knobs.items()},
        exchange=exchange.of_parties(arrays, row["member"], attackers, mates),
        bottoms=(),
    )
    if weights == "none":
        return given
    trained = jax.tree.map(lambda a: a[row["member"]], _weights(workdir, row["shard"]))
    bottoms = tuple(trained["bottoms"][str(p)] for p in range(len(trained["bottoms"])))
    every = Weights(bottoms, trained["active"]) if weights == "all" else None
    return given._replace(bottoms=tuple(bottoms[p] for p in attackers), weights=every)


def view_of(
    run: AttackInput,
    common: Table,
    agreed: Agreed,
    diagnostics: Mapping[str, Array] | None = None,
    columns: bool = True,
) -> View:
    """Returns what an attacker sees. True labels enter it only through ``diagnostics``.

    Args:
      run: the exchange and bottoms of a trial.
      common: of ``common_data``.
      agreed: what the parties agreed on.
      diagnostics: what no attacker sees, by name.
      columns: whether the attack reads the attackers' columns; if not, they are zeros.
    """
    arrays, seed = run.exchange, run.seed
    names = {name: exchange.MATES + name for name in Mates._fields}
    mates = {name: arrays[stored] for name, stored in names.items() if stored in arrays}
    parts = common.train, common.test
    if columns:
        features, test_features = (rows_of(common, seed, part[seed]) for part in parts)
    else:
        shapes = [x.shape[1:] for x in common.features]
        features, test_features = (
            tuple(jnp.zeros((part.shape[1], *shape)) for shape in shapes) for part in parts
        )
    view = View(
        **{name: arrays[name] for name in ("embeddings", "gradients", "order", "sent", "epochs")},
        sums=Sums(*(arrays[f"sum_{name}"] for name in Sums._fields)),
        features=features,
        test_features=test_features,
        bottoms=run.bottoms,
        agreed=agreed,
        diagnostics=dict(diagnostics or {}),
        inputs=arrays.get(exchange.INPUTS),
        nodes=arrays.get(exchange.NODES),
        mates=Mates(**mates) if mates else None,
    )
    return view if view.inputs is None else view._replace(parameter_gradients=summed(view))


def summed(view: View) -> Array:
    """Returns the parameter gradients of the attackers' last linear layers that the exchange adds up to, by
    recorded epoch, batch and attacker [E, T, P, H + 1, D]."""
    attackers = len(view.features)

    def of_epoch(place: int) -> Array:
        rows = batches_at(view, place)
        assert view.inputs is not None
        a, g = (rows.gather(x[place]) for x in (view.inputs, view.gradients))
        a, g = (x.reshape(*x.shape[:2], attackers, -1) for x in (a, g))
        each = jax.vmap(parameter_gradient, in_axes=(1, 1, None))  # no party sees another's sums
        return jax.vmap(each)(a, g, rows.sent)

    return jnp.stack([of_epoch(place) for place in range(len(view.epochs))])
