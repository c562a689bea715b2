"""A sweep: plan, train by shards, store; resume wherever it was killed.

What enters: a config and a workdir. What leaves: a sweep directory (``vfljax.store``). Attacks
(``vfljax.attacking``) and the report read that directory, never this module's memory.
"""

from __future__ import annotations

import functools
import importlib.metadata
import pathlib
import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import grid, lanes, store, training
from vfljax.config import recorded_epochs
from vfljax.datasets import prepared
from vfljax.datasets.core import checksum, identity
from vfljax.errors import UserError
from vfljax.lab import (
    Lab,
    Shard,
    initial_weights,
    left_out,
    plain,
    prepare,
    recorded,
    split_arrays,
    width_of,
)
from vfljax.models import weights as pretrained
from vfljax.progress import Progress
from vfljax.teacher import lessons, make_teacher, teacher_scores, teacher_start
from vfljax.types import HostArray, PyTree, Spec, Weights

AHEAD = 1  # structures compiled while one trains
SAVE_SECONDS = 5.0  # progress of an unfinished shard is saved this often
ORDER_BYTES = 256 << 20  # orders of rows kept for the next group and shard


def versions() -> dict[str, str]:
    """What produced a result."""
    names = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "scikit-learn")
    found = {name: importlib.metadata.version(name) for name in names}
    found["python"] = platform.python_version()
    try:
        found["vfljax"] = importlib.metadata.version("vfljax")
    except importlib.metadata.PackageNotFoundError:
        found["vfljax"] = "not installed"
    return found


def revision() -> str:
    """The git revision of this code, with '+' when the tree is changed; empty outside git."""
    folder = pathlib.Path(__file__).parent
    call = functools.partial(
        subprocess.run, cwd=folder, capture_output=True, text=True, check=False
    )
    try:
        head = call(["git", "rev-parse", "--short=12", "HEAD"])
        dirty = call(["git", "status", "--porcelain", "--untracked-files=no"])
    except OSError:
        return ""
    if head.returncode:
        return ""
    return head.stdout.strip() + ("+" if dirty.stdout.strip() else "")


def header(lab: Lab, command: str) -> dict[str, Any]:
    """What ``sweep.json`` says."""
    values = checksum(lab.dataset)
    return {
        "schema": store.SCHEMA,
        "config": lab.config,
        "command": command,
        "versions": versions(),
        "revision": revision(),
        "backend": jax.default_backend(),
        "devices": jax.device_count(),
        "data": {
            "name": lab.dataset.name,
            "rows": len(lab.dataset.labels),
            "classes": lab.dataset.num_classes,
            "balance": np.bincount(lab.dataset.labels).tolist(),
            "party_shapes": [list(x.shape[1:]) for x in lab.table.features],
            "train": len(lab.splits[0].train),
            "recorded": len(recorded(lab).splits[0].train),
            "validation": len(lab.splits[0].validation),
            "test": len(lab.splits[0].test),
        },
        "checksum": values,
        "identity": identity(lab.dataset, values),
        "pretrained": {
            part: pretrained.digest(lab.config[part]["pretrained"])
            for part in ("model", "teacher")
            if lab.config[part]["pretrained"]
        },
        "settings": sum(len(g.settings) for g in lab.groups),
        "shards": [{**s._asdict(), "group": lab.groups[s.group].name} for s in lab.shards],
    }


def enable_compile_cache(workdir: pathlib.Path) -> None:
    """Keep compiled programs in the workdir, so that a resumed sweep does not compile again."""
    jax.config.update("jax_compilation_cache_dir", str((workdir / "compile_cache").absolute()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def run(
    config: Mapping[str, Any],
    workdir: pathlib.Path,
    command: str,
    say: Callable[[str], None] = print,
) -> Lab:
    """Train every setting that is not stored yet. Returns the lab; results are in ``workdir``."""
    lab = prepare(config)
    if prepared.is_prepared(lab.config["data"]["dir"]):
        prepared.verify(lab.config["data"]["dir"])  # a changed byte must not be trained on
    stored = store.begin(workdir, header(lab, command))
    lab = lab._replace(shards=_stored_plan(lab, stored))
    enable_compile_cache(workdir)
    say(
        f"{stored['settings']} settings in {len(lab.groups)} program structures on "
        f"{jax.device_count()} {jax.default_backend()} devices, {len(lab.shards)} shards, in {workdir}"
    )
    if lab.config["model"]["pretrained"]:
        left = left_out(lab)
        rest = f"; of it left out: {', '.join(left)}" if left else ""
        say(f"bottoms start from {lab.config['model']['pretrained']}{rest}")
    own = split_arrays(lab.dataset.labels, recorded(lab).splits)
    own["test"] = np.stack([split.test for split in lab.splits])  # those of the results: all
    store.write_arrays(workdir / "splits.npz", own)
    done = [store.finished(workdir, shard.name) for shard in lab.shards]
    if not all(done):
        _train(with_teachers(lab, workdir), workdir, done)
    return lab


def _stored_plan(lab: Lab, stored: Mapping[str, Any]) -> list[Shard]:
    """The shards of the stored plan: a resume on another machine keeps the division."""
    number = {group.name: i for i, group in enumerate(lab.groups)}
    return [
        Shard(s["name"], number[s["group"]], tuple(s["settings"]), s["block"])
        for s in stored["shards"]
    ]


def with_teachers(lab: Lab, workdir: pathlib.Path) -> Lab:
    """The lab with the scores of every teacher its defenses read; trained once, then stored."""
    given, teachers = lessons(lab.groups, lab.table)
    if given is None:
        return lab
    path = workdir / "teacher.npz"
    if path.exists():
        scores = store.read_arrays(path)["scores"]
    else:
        seeds, reads = jnp.asarray(lab.seeds), lab.blocks[-1].input
        teacher = make_teacher(lab.config, reads, lab.dataset.num_classes)
        start, file = None, lab.config["teacher"]["pretrained"]
        if file:
            # what the file does not hold differs by seed
            drawn = [teacher_start(lab.table, teacher, int(seed)) for seed in lab.seeds]
            loaded = [pretrained.load(teacher.network, own, file)[0] for own in drawn]
            start = jax.tree.map(lambda *parts: np.stack(parts), *loaded)
        scores = np.asarray(teacher_scores(lab.table, seeds, given, teacher, start))
        if not np.all(np.isfinite(scores)):
            raise UserError(
                "the label party's teacher diverged: lower config.teacher.learning_rate "
                f"({teacher.learning_rate:g})."
            )
        store.write_arrays(path, {"scores": scores})
    return lab._replace(table=lab.table._replace(scores=jnp.asarray(scores)), teachers=teachers)


def _train(lab: Lab, workdir: pathlib.Path, done: list[bool]) -> None:
    total = [
        len(s.settings) * lab.groups[s.group].spec.epochs * lab.groups[s.group].spec.steps_per_epoch
        for s in lab.shards
    ]
    progress = Progress("train", sum(len(s.settings) for s in lab.shards), sum(total))
    for shard, steps, finished in zip(lab.shards, total, done, strict=True):
        if finished:
            progress.resume(len(shard.settings), steps)
    todo = [shard for shard, finished in zip(lab.shards, done, strict=True) if not finished]
    ahead = list(dict.fromkeys(shard.group for shard in todo))
    trainers: dict[int, Trainer] = {}
    orders = Orders(lab)
    with ThreadPoolExecutor(max_workers=lanes.cores()) as pool:
        for shard in todo:
            place = ahead.index(shard.group)
            for number in ahead[place : place + 1 + AHEAD]:
                if number not in trainers:
                    first = next(s for s in todo if s.group == number)
                    trainers[number] = Trainer(lab, lab.groups[number], first, pool, orders)
            for number in ahead[:place]:
                trainers.pop(number, None)  # its program and tables are done with
            train_shard(trainers[shard.group], shard, lab, workdir, progress)
    progress.close()


class Orders:
    """The order of rows of every seed and epoch: the same for all groups and shards of a sweep, so it
    is made once, and kept as far as ``ORDER_BYTES`` go (small networks train faster than rows sort)."""

    def __init__(self, lab: Lab) -> None:
        self._seeds, self._rows = jnp.asarray(lab.seeds), len(lab.splits[0].train)
        self._most = ORDER_BYTES // (8 * len(lab.seeds) * self._rows)  # order and place, int32
        self._kept: dict[int, training.Epoch] = {}

    def of(self, epoch: int) -> training.Epoch:
        if epoch in self._kept:
            return self._kept[epoch]
        made = training.epoch_of(jnp.int32(epoch), self._seeds, self._rows)
        if len(self._kept) < self._most:
            self._kept[epoch] = made
        return made


class Trainer:
    """The compiled programs of one group: training spans, and evaluation of final weights."""

    def __init__(
        self, lab: Lab, group: grid.Group, shard: Shard, pool: ThreadPoolExecutor, orders: Orders
    ) -> None:
        spec = group.spec
        width = width_of(lab, spec)
        self.group = group
        self.milestones = lab.config["training"]["milestones"]
        self.program = lanes.Program(training.make_run(spec), shard.block, width)
        largest = max(shard.block for shard in lab.shards)
        bare = lab.table._replace(scores=None)  # evaluation has no teacher
        shapes = (*((a.shape, a.dtype) for a in jax.tree.leaves(bare)), jax.tree.structure(bare))
        self.evaluate = _evaluate_program(plain(spec), largest, width, shapes)
        initial = initial_weights(spec, lab)
        self.table, self.initial = self.program.share((lab.table, initial))
        self.bare = self.table._replace(scores=None)
        self.orders, self.teachers = orders, lab.teachers
        self.program.compile_ahead(self.start(shard), self.shared(0), pool)

    def shared(self, epoch: int) -> tuple[Any, ...]:
        """What all lanes share in an epoch."""
        return self.table, self.initial, self.program.share(self.orders.of(epoch))

    def start(self, shard: Shard) -> tuple[training.Lane, training.Progress]:
        """A shard's lanes and what they start from, on the devices."""
        own = [self.group.settings[i] for i in shard.settings]
        lane = self.program.pad(grid.lanes_of(self.group, own, self.milestones, self.teachers))
        return lane, self.program.pad(
            empty_progress(self.group.spec, lane, self.table, self.initial)
        )


def empty_progress(
    spec: Spec, lane: training.Lane, table: training.Table, initial: Weights
) -> training.Progress:
    """What a run that starts at epoch 0 is given (and ignores): the shapes matter."""
    # by shape alone: a lane taken from arrays that lie on several devices would be a program of its own
    one = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), lane)
    shapes = jax.eval_shape(training.make_start(spec), one, table, initial)
    count = lanes.leading(lane)

    def zeros(a: jax.ShapeDtypeStruct) -> Any:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(jnp.zeros((count, 2), jnp.uint32))
        return np.zeros((count, *a.shape), a.dtype)

    return jax.tree.map(zeros, shapes)


@functools.cache
def _evaluate_program(
    spec: Spec, block: int, width: int | None, shapes: tuple[Any, ...]
) -> lanes.Program:
    """Shared by the groups of a sweep with equal models; ``shapes`` tell data sets apart."""
    del shapes
    return lanes.Program(training.make_evaluate(spec), block, width)


def train_shard(
    trainer: Trainer, shard: Shard, lab: Lab, workdir: pathlib.Path, progress: Progress
) -> None:
    """Train one shard epoch by epoch, saving now and then, and commit it."""
    spec = trainer.group.spec
    own = [trainer.group.settings[i] for i in shard.settings]
    count, began = len(own), time.monotonic()
    lane, state = trainer.start(shard)
    recorded: dict[int, dict[str, np.ndarray]] = {}
    wanted = recorded_epochs(lab.config)
    epoch, partial = 0, store.read_partial(workdir, shard.name)
    if partial is not None:
        epoch, tree = partial
        state = trainer.program.pad(_unpack(tree["progress"], state))
        recorded = {int(k): v for k, v in tree.get("recorded", {}).items()}
        progress.resume(0, epoch * spec.steps_per_epoch * count)
    saved = time.monotonic()
    finite = np.ones(count, bool)
    while epoch < spec.epochs:
        state, ok = trainer.program((lane, state), trainer.shared(epoch))
        finite = lanes.unpad(ok, count)  # waits for the epoch
        progress.update(0, spec.steps_per_epoch * count, trainer.group.name)
        epoch += 1
        if epoch - 1 in wanted:
            recorded[epoch - 1] = _exchange(lanes.unpad(state.record, count))
        if epoch < spec.epochs and time.monotonic() - saved > SAVE_SECONDS:
            tree: dict[str, Any] = {"progress": _pack(state)}
            if recorded:
                tree["recorded"] = {str(k): v for k, v in recorded.items()}
            store.write_partial(workdir, shard.name, epoch, tree)
            saved = time.monotonic()
    weights = lanes.unpad(state.state.weights, count)
    judged = trainer.evaluate.pad((lanes.unpad(lane.seed_index, count), weights))
    values = lanes.unpad(trainer.evaluate(judged, trainer.bare), count)
    record = lanes.unpad(state.record, count)
    seconds = (time.monotonic() - began) / count
    rows = [
        _row(setting, shard.name, i, values, record, bool(finite[i]), seconds)
        for i, setting in enumerate(own)
    ]
    tree = {"bottoms": {str(p): b for p, b in enumerate(weights.bottoms)}, "active": weights.active}
    store.write_shard(workdir, shard.name, rows, tree, _by_epoch(recorded, record, wanted))
    progress.update(count, 0)


def _pack(tree: PyTree) -> dict[str, np.ndarray]:
    leaves = jax.tree.leaves(tree)
    leaves = [
        jax.random.key_data(a) if jnp.issubdtype(a.dtype, jax.dtypes.prng_key) else a
        for a in leaves
    ]
    return {f"{i:05d}": np.asarray(a) for i, a in enumerate(jax.device_get(leaves))}


def _unpack(packed: Mapping[str, np.ndarray], like: PyTree) -> PyTree:
    leaves, structure = jax.tree.flatten(like)
    out = [
        jax.random.wrap_key_data(jnp.asarray(packed[f"{i:05d}"]))
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key)
        else jnp.asarray(packed[f"{i:05d}"])
        for i, a in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, out)


def _exchange(record: training.Record) -> dict[str, HostArray]:
    out: dict[str, HostArray] = {"order": record.order, "sent": record.sent}
    for p, (z, g) in enumerate(zip(record.embeddings, record.gradients, strict=True)):
        out |= {f"party{p}_embeddings": z, f"party{p}_gradients": g}
    return out


def _by_epoch(
    recorded: Mapping[int, Mapping[str, np.ndarray]], record: training.Record, epochs: list[int]
) -> dict[str, np.ndarray]:
    """[S, E, ...] arrays of the recorded epochs, and the sums over all epochs [S, ...]."""
    out = {k: np.stack([recorded[e][k] for e in epochs], axis=1) for k in recorded[epochs[0]]}
    out["epochs"] = np.tile(np.asarray(epochs, np.int32), (len(out["order"]), 1))
    for p, sums in enumerate(record.sums):
        for field, array in sums._asdict().items():
            out[f"party{p}_sum_{field}"] = array
    return out


def _row(
    setting: grid.Setting,
    shard: str,
    lane: int,
    values: Mapping[str, np.ndarray],
    record: training.Record,
    finite: bool,
    seconds: float,
) -> dict[str, Any]:
    """One row of results: every knob, every metric, status. Metrics of a diverged run are null."""
    pooled_auc, pooled = {}, float(record.pooled_auc[lane, -1])
    if np.isfinite(pooled):
        turned = 1 - pooled if values["inverted"][lane] else pooled
        pooled_auc = {"test_pooled_auc": pooled, "test_pooled_oriented_auc": turned}
    loss = record.loss[lane]
    broken = np.flatnonzero(~np.isfinite(loss))
    return {
        **setting.row(),
        **{name: float(v[lane]) if finite else None for name, v in values.items()},
        **(pooled_auc if finite else {}),
        "status": "ok" if finite else "diverged",
        "diverged_epoch": None if finite else int(broken[0]) if len(broken) else len(loss) - 1,
        "loss": [float(x) for x in loss],
        "train_accuracy": [float(x) for x in record.accuracy[lane]],
        "shard": shard,
        "lane": lane,
        "seconds": seconds,
    }
