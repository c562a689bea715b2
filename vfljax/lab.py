"""A config made concrete: data on the device, settings, groups of one program, shards.

Everything that can be refused is refused here, before anything is trained or written.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import datasets, grid, published, suite, teacher, training
from vfljax.config import recorded_epochs, resolve, unknown
from vfljax.datasets.core import (
    Block,
    Dataset,
    Split,
    make_table,
    split_rows,
)
from vfljax.datasets.dividing import divide
from vfljax.datasets.scaling import SCALING_ROWS, SCALINGS
from vfljax.errors import UserError
from vfljax.models import weights as pretrained
from vfljax.types import PyTree, Spec, Weights

MEMORY = 2 << 30  # bytes of recorded exchange a shard may hold


class Shard(NamedTuple):
    """At most about ``execution.shard_seconds`` of work: some settings of one group."""

    name: str
    group: int
    settings: tuple[int, ...]  # places in the group
    block: int  # lanes of the program, the same for every shard of the group


class Lab(NamedTuple):
    """A config made concrete: data on the device, settings, groups and shards."""

    config: dict[str, Any]
    dataset: Dataset
    table: training.Table
    splits: list[Split]
    seeds: np.ndarray  # [Q] uint32
    groups: list[grid.Group]
    shards: list[Shard]
    teachers: dict[int, int]  # setting id -> its teacher's place in table.scores
    blocks: tuple[Block, ...]  # what each party that owns columns owns


def load_dataset(config: Mapping[str, Any]) -> Dataset:
    data = config["data"]
    return datasets.load(data["name"], data["dir"], data["options"])


def prepare(config: Mapping[str, Any]) -> Lab:
    """Resolve and check a config completely; nothing is trained and nothing is written."""
    config = resolve(config)
    dataset = load_dataset(config)
    data = config["data"]
    if data["scaling"] not in SCALINGS:
        raise unknown("config.data.scaling", data["scaling"], SCALINGS)
    if data["scaling_rows"] not in SCALING_ROWS:
        raise unknown("config.data.scaling_rows", data["scaling_rows"], SCALING_ROWS)
    splits = [
        split_rows(dataset, seed, data["train"], data["validation"], data["test"])
        for seed in range(config["seeds"])
    ]
    blocks, rows = divide(dataset, config["parties"]), len(splits[0].train)
    if config["training"]["batch_size"] > rows:
        raise UserError(
            f"config.training.batch_size={config['training']['batch_size']} is more than the {rows} "
            f"training rows of {dataset.name}: choose at most {rows}, or more rows."
        )
    table = make_table(
        blocks,
        dataset.labels,
        splits,
        data["scaling"],
        data["scaling_rows"],
        resident=data["resident_gb"] * 1e9,
    )
    inputs, classes = [block.input for block in blocks], dataset.num_classes
    forms = suite.forms(config, classes, inputs[0])
    published.check(config, [form.label for form in forms])
    structures = suite.structures(config, forms, classes, inputs[0])
    settings = grid.settings(config, structures)
    grid.check_points(config, settings, classes, rows, inputs)
    groups = grid.groups(config, settings, classes, rows, inputs)
    teacher.check(config, groups, table, inputs[-1], classes)
    shards = plan_shards(
        groups, table, config["execution"]["shard_seconds"], len(recorded_epochs(config))
    )
    seeds = np.arange(config["seeds"], dtype=np.uint32)
    lab = Lab(config, dataset, table, splits, seeds, groups, shards, {}, blocks)
    for seed, split in enumerate(recorded(lab).splits):
        if len(np.unique(dataset.labels[split.train])) < classes:
            raise UserError(
                f"config.training.record_rows={config['training']['record_rows']}: the recorded rows of "
                f"seed {seed} have no row of some class: record more."
            )
    if config["model"]["pretrained"]:
        left_out(lab)  # refuses a file that is none, or of another network
    return lab


def plan_shards(
    groups: list[grid.Group], table: training.Table, seconds: float, epochs: int
) -> list[Shard]:
    """Divide groups into shards by an estimate of their work and memory; ``epochs`` are recorded.

    The estimate is rough (60 us a step plus 6 operations a weight and row at 20 GFLOP/s a core);
    what bounds the work a kill can lose is that unfinished shards are saved every 5 s.
    """
    shards: list[Shard] = []
    devices = jax.device_count()
    for number, group in enumerate(groups):
        spec = group.spec
        try:
            initial = jax.eval_shape(
                training.make_initial(spec), jnp.zeros(1, jnp.uint32), _first_seed(table)
            )
        except (ValueError, TypeError, ArithmeticError) as error:  # such as too small an image
            raise UserError(f"config.model: {error}") from error
        size = sum(int(np.prod(a.shape)) for a in jax.tree.leaves(initial))
        step = 60e-6 + 6 * size * spec.batch_size / 20e9
        lane = step * spec.epochs * spec.steps_per_epoch
        cuts = sum(module.out for module in spec.bottoms[: spec.passive])
        memory = 4 * (2 * epochs + 3) * spec.recorded_rows * cuts  # z and g of each, three sums
        most = max(devices, min(int(seconds * devices / lane), MEMORY // memory))
        count = -(-len(group.settings) // most)
        block = -(-len(group.settings) // count)
        block = -(-block // devices) * devices
        for first in range(0, len(group.settings), block):
            places = tuple(range(first, min(first + block, len(group.settings))))
            shards.append(Shard(f"{len(shards):05d}-{group.name}", number, places, block))
    return shards


def _first_seed(table: training.Table) -> training.Table:
    return table._replace(
        train=table.train[:1],
        mean=tuple(m[:1] for m in table.mean),
        scale=tuple(s[:1] for s in table.scale),
        scores=None,
    )


def recorded(lab: Lab) -> Lab:
    """The lab as attacks know it: of the training rows, those whose exchange is recorded; where these
    are not all, of the test rows as many: an attack's models are evaluated on them in memory."""
    spec = lab.groups[0].spec
    rows = spec.recorded_rows
    held = rows if spec.recorded else len(lab.splits[0].test)
    splits = [s._replace(train=s.train[:rows], test=s.test[:held]) for s in lab.splits]
    table = lab.table._replace(train=lab.table.train[:, :rows], test=lab.table.test[:, :held])
    return lab._replace(splits=splits, table=table)


def split_arrays(labels: np.ndarray, splits: list[Split]) -> dict[str, np.ndarray]:
    """What is stored of the splits, and the seeds' order of known rows and halves for judging."""
    orders, halves = [], []
    for seed, split in enumerate(splits):
        rng = np.random.default_rng([seed, 7919])
        own = labels[split.train]
        queue = rng.permutation(len(own))
        # the j-th row of every class before the j+1-th of any: the first n are balanced
        turn = np.empty(len(own), np.int64)
        for c in np.unique(own):
            members = queue[own[queue] == c]
            turn[members] = np.arange(len(members))
        orders.append(queue[np.argsort(turn[queue], kind="stable")])
        halves.append(rng.permutation(len(own)) < len(own) // 2)
    return {
        "labels": labels,
        "train": np.stack([s.train for s in splits]),
        "validation": np.stack([s.validation for s in splits]),
        "test": np.stack([s.test for s in splits]),
        "known_order": np.stack(orders).astype(np.int32),
        "selects": np.stack(halves),
    }


def width_of(lab: Lab, spec: Spec) -> int | None:
    """Settings mapped at once: as configured; where networks are large, one on CPU (measured for
    convolutions: vmapped ones are slower there than one after the other); else the backend's own."""
    heavy = not spec.light and jax.default_backend() == "cpu"
    return lab.config["execution"]["width"] or (1 if heavy else None)


def plain(spec: Spec) -> Spec:
    """The spec's models alone: what initial weights and evaluation depend on."""
    return dataclasses.replace(spec, defenses=(), optimizers=("sgd",) * len(spec.optimizers))


@functools.cache
def _initial_program(spec: Spec) -> Callable[..., Weights]:
    # run once: optimizing the draws of a deep network's kernels took XLA on CPU minutes (ResNet-18)
    heavy = not spec.light and jax.default_backend() == "cpu"
    options: dict[str, Any] = {"xla_backend_optimization_level": 0} if heavy else {}
    return jax.jit(training.make_initial(spec), compiler_options=options)


def random_weights(spec: Spec, lab: Lab) -> Weights:
    """Randomly drawn weights [Q, ...] of every seed."""
    table = lab.table._replace(scores=None)
    return _initial_program(plain(spec))(jnp.asarray(lab.seeds), table)


def weight_shapes(spec: Spec, lab: Lab) -> Weights:
    """Their shapes [Q, ...], nothing computed."""
    table = lab.table._replace(scores=None)
    return jax.eval_shape(training.make_initial(plain(spec)), jnp.asarray(lab.seeds), table)


def initial_weights(spec: Spec, lab: Lab) -> Weights:
    """Initial weights [Q, ...] of every seed: the same for all settings of a seed and model. Drawn at
    random, except what ``config.model.pretrained`` holds of the bottoms."""
    drawn, path = random_weights(spec, lab), lab.config["model"]["pretrained"]
    if not path:
        return drawn
    bottoms = []
    for module, variables in zip(spec.bottoms, drawn.bottoms, strict=True):
        # what the file does not hold differs by seed
        loaded = [pretrained.load(module, own, path)[0] for own in _by_seed(variables, lab)]
        bottoms.append(jax.tree.map(lambda *parts: np.stack(parts), *loaded))
    return drawn._replace(bottoms=tuple(bottoms))


def _by_seed(variables: PyTree, lab: Lab) -> list[PyTree]:
    own = jax.device_get(variables)
    return [jax.tree.map(lambda a, q=q: a[q], own) for q in range(len(lab.seeds))]


def left_out(lab: Lab) -> list[str]:
    """The tensors of ``config.model.pretrained`` that no bottom of the first group takes."""
    spec, path = lab.groups[0].spec, lab.config["model"]["pretrained"]
    shapes = weight_shapes(spec, lab).bottoms
    named = []
    for module, variables in zip(spec.bottoms, shapes, strict=True):
        one = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), variables)
        named.append(set(pretrained.load(module, one, path)[1]))
    return sorted(set.intersection(*named))
