"""What the benchmark suites share: a timed grid of trials of one structure, and timing programs in turn."""

from __future__ import annotations

import math
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import defenses
from vfljax.federation import training
from vfljax.machine import FITS, offered
from vfljax.sweep import batch_layout, programs, shard_trainer, train
from vfljax.types import HostArray, HParams, PyTree, Spec

SEEDS = 3


def member_bytes(program: programs.Program, members: PyTree) -> int:
    """Returns the bytes of memory per member while a compiled program runs: its arguments, its results and its
    share of the temporaries; 0 if the backend has no memory analysis."""
    needed = program.waited().memory_analysis()  # of one device
    if needed is None:
        return 0
    each = program.layout.capacity // jax.device_count()
    arguments = sum(leaf.nbytes for leaf in jax.tree.leaves(members)) // program.layout.capacity
    return arguments + (needed.output_size_in_bytes + needed.temp_size_in_bytes) // each


def fitting_members(needed: int) -> int | None:
    """Returns how many members of ``needed`` bytes fit into a device's memory, None if that is not known."""
    room = FITS * offered().memory
    return int(room / needed) if math.isfinite(room) else None


def _table(spec: Spec, columns: int | tuple[int, ...]) -> training.Table:
    """Returns random columns and teacher, with labels by a linear function of the first party's columns."""
    rng, shape = np.random.default_rng(0), np.zeros(columns).shape
    parties, rows = len(spec.bottoms), spec.num_rows
    places = np.tile(np.arange(rows, dtype=np.int32), (SEEDS, 1))
    reads_scores = defenses.build(
        spec.defenses, {d.name: defenses.TABLE[d.name].example for d in spec.defenses}
    ).reads_scores
    scores = rng.dirichlet(np.ones(spec.num_classes), (SEEDS, rows)) if reads_scores else None
    features = [rng.normal(size=(rows, *shape)) for _ in range(parties)]
    flat = features[0].reshape(rows, -1)
    labels = np.argmax(flat @ rng.normal(size=(flat.shape[1], spec.num_classes)), axis=1)
    return training.Table(
        features=tuple(jnp.asarray(x, jnp.float32) for x in features),
        labels=jnp.asarray(labels, jnp.int32),
        train=jnp.asarray(places),
        validation=jnp.asarray(places[:, :1]),
        test=jnp.asarray(places[:, :1]),
        mean=(jnp.zeros((SEEDS, *shape)),) * parties,
        scale=(jnp.ones((SEEDS, *shape)),) * parties,
        scores=None if scores is None else jnp.asarray(scores, jnp.float32),
    )


def _members_of(
    spec: Spec, trials: int, knobs: Mapping[str, Mapping[str, float]]
) -> training.Member:
    """Returns trials of ``SEEDS`` seeds, which differ in their learning rates."""

    def column(value: float) -> HostArray:
        return np.full(trials, value, np.float32)

    rates: HostArray = np.linspace(0.01, 0.1, trials, dtype=np.float32)
    honest: HostArray = np.zeros((trials, len(spec.bottoms)), np.float32)
    hparams = HParams(
        learning_rate=rates,
        momentum=column(0.9),
        weight_decay=column(5e-4),
        milestones=honest[:, :0],
        decay=column(0.1),
        gamma=honest,
        strength=honest,
        absent=honest,
        defenses={
            name: {k: column(v) for k, v in values.items()} for name, values in knobs.items()
        },
    )
    seeds: HostArray = (np.arange(trials) % SEEDS).astype(np.int32)
    return training.Member(seeds, seeds, hparams)


def epoch_shapes(
    spec: Spec,
    trials: int,
    columns: int | tuple[int, ...],
    knobs: Mapping[str, Mapping[str, float]],
) -> tuple[PyTree, PyTree]:
    """Returns the shapes of the arguments of ``training.make_run`` for many trials: by trial, and shared.

    Args:
      spec: of the trials.
      trials: the number of trials.
      columns: the number of columns of every party, or the shape of its images.
      knobs: of the defenses.
    """
    member = _members_of(spec, trials, knobs)

    def begun(member: training.Member) -> tuple[PyTree, PyTree]:
        table, seeds = _table(spec, columns), jnp.arange(SEEDS, dtype=jnp.uint32)
        order = jnp.zeros((SEEDS, spec.num_rows), jnp.int32)
        now = training.Epoch(jnp.int32(0), order, order)
        initial = training.make_initial(spec)(seeds, table)
        start = jax.vmap(training.make_start(spec), in_axes=(0, None, None))
        return (member, start(member, table, initial)), (table, initial, now)

    return jax.eval_shape(begun, member)


class TimedStep:
    """A grid of trials of one structure: its compiled program and its arguments."""

    def __init__(
        self,
        spec: Spec,
        trials: int,
        columns: int,
        knobs: Mapping[str, Mapping[str, float]],
        width: int | None,
    ) -> None:
        self.spec, self.trials = spec, trials
        layout = batch_layout.layout(trials, width)
        self.program = programs.Program(training.make_run(spec), layout)
        member = layout.pad(_members_of(spec, trials, knobs))
        table = _table(spec, columns)
        self.seeds: HostArray = np.arange(SEEDS, dtype=np.uint32)
        initial = jax.jit(training.make_initial(spec))(self.seeds, table)
        self.weights = sum(a[0].size for a in jax.tree.leaves(initial))
        self.member, self.shared = member, batch_layout.share((table, initial))
        self.state = layout.pad(shard_trainer.empty_snapshot(spec, member, *self.shared))
        # results that epochs overwrite in turn, as in a sweep; None: results take new memory
        self.results: list[Any] = [None, None]
        if layout.width * jax.device_count() < layout.capacity:
            self.results = [
                (
                    layout.pad(shard_trainer.empty_snapshot(spec, member, *self.shared)),
                    layout.pad(np.zeros(layout.capacity, bool)),
                )
                for _ in self.results
            ]
        self.orders: dict[int, Any] = {}  # of rows, by epoch
        began = time.perf_counter()
        self.train()
        self.first = time.perf_counter() - began  # tracing and compilation included
        self.memory = peak_memory()

    def train(self, queued: bool = False) -> training.Snapshot:
        """Trains all epochs of all trials, as a sweep does. Returns the final snapshot, padding members
        included. The next call overwrites it.

        Args:
          queued: whether the devices are given all epochs at once, with orders of rows that are stored.
        """
        state, finite, earlier = self.state, None, None
        for number in range(self.spec.epochs):
            if not queued or number not in self.orders:
                order = training.epoch_of(number, self.seeds, self.spec.num_rows)
                self.orders[number] = batch_layout.share(order)
            shared, place = (*self.shared, self.orders[number]), number % 2
            state, finite = ended = self.program((self.member, state), shared, self.results[place])
            # if results take new memory, the host waits for the epoch before, while this one runs
            if not queued:
                jax.block_until_ready(finite if earlier is None else earlier)
            earlier = finite if self.results[place] is None else None
            if self.results[place] is not None:
                self.results[place] = ended
        jax.block_until_ready(finite)
        return state

    def measure(self, seconds: float = 0.5, queued: bool = False) -> float:
        """Trains for at least some seconds, and returns the microseconds per trial and step.

        Args:
          seconds: the least time to train.
          queued: as for ``train``.
        """
        runs, began = 0, time.perf_counter()
        while runs == 0 or time.perf_counter() - began < seconds:
            self.train(queued)
            runs += 1
        steps = runs * self.spec.epochs * self.spec.steps_per_epoch * self.trials
        return (time.perf_counter() - began) / steps * 1e6


class Spread(NamedTuple):
    """Median and range of several times, or of their ratios."""

    median: float
    lowest: float
    highest: float

    def shown(self, form: str) -> str:
        """Returns the three numbers in a number format, such as ".2f"."""
        return f"{self.median:{form}} ({self.lowest:{form}} to {self.highest:{form}})"


def times(values: Sequence[float]) -> Spread:
    """Returns the median and range of some measurements.

    >>> times([3.0, 1.0, 2.0]).shown("g")
    '2 (1 to 3)'
    """
    return Spread(statistics.median(values), min(values), max(values))


def ratios(these: Sequence[float], those: Sequence[float]) -> Spread:
    """Returns median and range of the ratios of times of the same turns.

    Args:
      these: times, one per turn.
      those: the times that divide them.
    """
    return times([a / b for a, b in zip(these, those, strict=True)])


def in_turn(measures: Mapping[str, Callable[[], float]], turns: int) -> dict[str, list[float]]:
    """Returns the times of several programs, which are measured one after the other in each turn.

    Args:
      measures: by the name of a program, a function that times it.
      turns: how many times each program is timed.
    """
    every = [[measure() for measure in measures.values()] for _ in range(turns)]
    return {name: list(each) for name, each in zip(measures, zip(*every), strict=True)}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table.

    Args:
      header: the names of the columns.
      rows: cells of text.
    """
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])


def peak_memory() -> float:
    """Returns the peak memory so far in GiB: of the first accelerator, or on CPU of this process."""
    stats = jax.devices()[0].memory_stats()  # None on CPU
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return (stats["peak_bytes_in_use"] if stats else own) / 2**30


def matmul_rate(n: int = 1024) -> float:
    """Returns the GFLOP/s of float32 products of [n, n] matrices on all devices at once, the best of five."""
    count = jax.device_count()
    layout = batch_layout.layout(count, 1)
    program = programs.Program(lambda a, _: (a @ a) / n, layout)
    a = layout.pad(np.ones((count, n, n), np.float32))
    jax.block_until_ready(program(a, ()))
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(10):
            out = program(a, ())
        jax.block_until_ready(out)
        best = min(best, time.perf_counter() - began)
    return 10 * count * 2 * n**3 / best / 1e9


def machine(suite: str) -> dict[str, Any]:
    """Returns the entries on machine and code in the JSON of every suite."""
    return {
        "suite": suite,
        "backend": jax.default_backend(),
        "devices": [str(d.device_kind) for d in jax.devices()],
        "machine": train.processor_name(),
        "versions": train.versions(),
        "revision": train.revision(),
    }
