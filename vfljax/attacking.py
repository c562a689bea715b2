"""Attacks on a stored sweep: which settings each attack needs, its baselines, its figures.

What enters: a sweep directory (weights and exchange, read by block of settings) and the attacker's
own columns. What leaves: one row a setting and attack. Attacks see a ``View`` and the known rows;
true labels meet their scores only in ``judge``.
"""

from __future__ import annotations

import functools
import json
import pathlib
import time
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import checkpoint, keys, lanes, metrics, store
from vfljax.attacks.core import Attack
from vfljax.baselines import logistic_rows
from vfljax.config import recorded_epochs
from vfljax.lab import Lab, initial_weights, split_arrays
from vfljax.progress import Progress
from vfljax.sight import EXCHANGE, Ground, Target, ground_of, known_rows, view_of
from vfljax.suite import Form, attacker_of, forms, kind, make_attack
from vfljax.types import Array, HostArray, Known, PyTree, Scores

BLOCK = 32  # settings attacked by one call on CPU
MEMORY = 2 << 30  # bytes of exchange a block may hold


def judge(scores: Scores, target: Target, ground: Ground, known: Known) -> dict[str, Array]:
    """An attack's figures, on true labels.

    success: top-1 on all training rows (as published, known rows included), and without them;
    leak: the common scale (``metrics.leak``) on unlabeled rows, whole, on the half where the worst
    attack is chosen and on the half where it is reported.
    """
    labels = ground.labels[ground.train[target.seed_index]]
    unlabeled = (
        jnp.zeros(len(labels))
        .at[known.rows]
        .set((jnp.arange(len(labels)) >= known.count).astype(jnp.float32))
    )
    half = ground.selects[target.seed_index].astype(jnp.float32)
    out = {
        "success": metrics.accuracy(scores.train, labels),
        "success_unlabeled": metrics.accuracy(scores.train, labels, unlabeled),
        "leak": metrics.leak(scores.train, labels, unlabeled),
        "leak_select": metrics.leak(scores.train, labels, unlabeled * half),
        "leak_report": metrics.leak(scores.train, labels, unlabeled * (1 - half)),
    }
    if scores.train.shape[1] > 5:
        out["success_top5"] = metrics.topk(scores.train, labels, 5)
    if scores.test is not None:
        labels = ground.labels[ground.test[target.seed_index]]
        out["test_success"] = metrics.accuracy(scores.test, labels)
        out["test_leak"] = metrics.leak(scores.test, labels)
    return out


@functools.cache
def _program(run: Any, oracle: bool, block: int, width: int | None) -> lanes.Program:
    """One compiled program an attack; equal attacks on equal shapes share it. An oracle form is given
    every row's label and judged on all rows."""

    def one(target: Target, ground: Ground) -> dict[str, Array]:
        count = target.knobs.get("known")
        count = jnp.float32(0) if count is None else count
        known = known_rows(ground, target.seed_index, count)
        key = keys.fold(keys.run_key(target.seed), "attack", target.key_name)
        rows = jnp.float32(ground.known_order.shape[1])
        given = known_rows(ground, target.seed_index, rows) if oracle else known
        scores = run(key, view_of(target, ground), given, target.knobs)
        return judge(scores, target, ground, known)

    return lanes.Program(one, block, width)


@functools.lru_cache(maxsize=2)  # settings of a structure follow each other by shard
def _shard(folder: pathlib.Path) -> tuple[PyTree, dict[str, HostArray]]:
    """A shard's weights, and its exchange arrays by memory map."""
    exchange = {
        path.stem: np.load(path, mmap_mode="r", allow_pickle=False)
        for path in (folder / "exchange").glob("*.npy")
    }
    return checkpoint.load(folder / "checkpoint"), exchange


def _target(
    workdir: pathlib.Path, row: Mapping[str, Any], form: Form, knobs: Mapping[str, float]
) -> Target:
    """One setting's exchange and bottom: what its attacker holds."""
    weights, exchange = _shard(workdir / "shards" / row["shard"])
    attacker = attacker_of(row["structure"])
    own = {k.removeprefix(f"party{attacker}_"): v for k, v in exchange.items()}

    def number(value: float, dtype: Any) -> HostArray:
        return np.asarray(value, dtype)

    return Target(
        seed=number(row["seed"], np.uint32),
        seed_index=number(row["seed"], np.int32),
        key_name=number(zlib.crc32(form.name.encode()), np.uint32),
        knobs={k: number(v, np.float32) for k, v in knobs.items()},
        exchange={name: own[name][row["lane"]] for name in EXCHANGE},
        bottom=jax.tree.map(lambda a: a[row["lane"]], weights["bottoms"][str(attacker)]),
    )


def run(
    lab: Lab,
    workdir: pathlib.Path,
    wanted: list[str] | None = None,
    say: Any = print,
) -> None:
    """Attack every stored setting with every form not yet stored; one compile an attack and shape.

    ``wanted`` limits the attacks by name; names outside the config run with published defaults.
    """
    config = dict(lab.config)
    if wanted is not None:
        config["attacks"] = {name: config["attacks"].get(name, {}) for name in wanted}
    num_classes = lab.dataset.num_classes
    all_forms = forms(config, num_classes)
    sweep = store.load(workdir)
    arrays = split_arrays(lab.dataset.labels, lab.splits)
    summary = _summary(workdir)
    plan = []
    for form in all_forms:
        attack, rows, reason = _servable(form, lab, sweep)
        if reason:
            say(f"skipped {form.label}: {reason}")
            summary[form.label] = {"status": "skipped", "reason": reason}
            continue
        plan.append((form, attack, rows))
    if plan:
        for shard in sweep.header["shards"]:
            if (workdir / "shards" / shard["name"]).is_dir():
                store.verify(workdir / "shards" / shard["name"], deep=True)
    for form, attack, rows in plan:
        summary[form.label] = _run_form(form, attack, rows, lab, sweep, arrays)
    store.write_text(workdir / "attacks.json", json.dumps(summary, indent=1))


def _summary(workdir: pathlib.Path) -> dict[str, Any]:
    path = workdir / "attacks.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def _servable(form: Form, lab: Lab, sweep: store.Sweep) -> tuple[Attack, list[dict], str]:
    """The attack, the stored settings it can be run on, or why there are none."""
    num_classes = lab.dataset.num_classes
    spec = lab.groups[0].spec
    attack = make_attack(form, spec.bottoms[0], num_classes)
    if attack.binary and num_classes > 2:
        return attack, [], f"defined for two classes, {lab.dataset.name} has {num_classes}"
    columns = ["setting", "seed", "structure", "status", "shard", "lane"]
    rows = sweep.results.select(columns).to_pylist() if sweep.results.num_rows else []
    rows = [row for row in rows if kind(row["structure"]) == attack.structure]
    if not rows:
        return (
            attack,
            [],
            (
                f"it needs runs of the structure {attack.structure!r} and this sweep trained none: add "
                f"{form.name!r} to config.attacks and train in a new workdir"
            ),
        )
    recorded = recorded_epochs(sweep.config)
    if attack.epoch >= 0 and attack.epoch not in recorded:
        return (
            attack,
            [],
            f"it reads epoch {attack.epoch} and this sweep recorded {recorded}: name it in "
            "config.training.record and train in a new workdir",
        )
    count = len(lab.splits[0].train)
    for point in form.knobs:
        known = point.get("known", 0)
        if "known" in point and known < num_classes:
            return attack, [], f"known={known:g} labels are fewer than the {num_classes} classes"
        if known > count:
            return attack, [], f"known={known:g} labels are more than the {count} training rows"
    return attack, rows, ""


class Job(NamedTuple):
    """One lane of a block. ``what``: the attack itself, or one of its two trained baselines."""

    row: dict[str, Any]
    point: int
    what: str  # "attack", "all_labels", "untrained"


def _jobs(attack: Attack, rows: list[dict], points: int, seeds: int) -> list[Job]:
    """Untrained baselines (one a seed) first, then per setting the attack and its upper bound."""
    out: list[Job] = []
    for point in range(points):
        if attack.baselines:
            for seed in range(seeds):
                sample = next(row for row in rows if row["seed"] == seed)
                out.append(Job(sample, point, "untrained"))
        for row in rows:
            if row["status"] != "ok":
                continue
            out.append(Job(row, point, "attack"))
            if attack.baselines:
                out.append(Job(row, point, "all_labels"))
    return out


def _run_form(
    form: Form,
    attack: Attack,
    rows: list[dict],
    lab: Lab,
    sweep: store.Sweep,
    arrays: Mapping[str, np.ndarray],
) -> dict[str, Any]:
    folder = sweep.workdir / "attacks" / form.label.replace("/", "_")
    began = time.monotonic()
    width = lab.config["execution"]["width"] or None
    wanted = {row["structure"] for row in rows}
    spec = next(g.spec for g in lab.groups if any(s.structure.name in wanted for s in g.settings))
    block = _block(lab, spec.bottoms[0].out)
    by_structure: dict[str, list[dict]] = {}
    for row in rows:
        by_structure.setdefault(row["structure"], []).append(row)
    jobs = {
        structure: _jobs(attack, own, len(form.knobs), lab.config["seeds"])
        for structure, own in by_structure.items()
    }
    every = [job for own in jobs.values() for job in own]
    settings, steps = sum(job.what == "attack" for job in every), max(1, attack.steps)
    progress = Progress(f"attack {form.label}", settings, steps * len(every))
    program = _program(attack.run, attack.oracle, block, width)
    initial = jax.device_get(initial_weights(spec, lab).bottoms)
    # what is stored is known by its rows, not its file: blocks differ between machines
    stored = store.read_table(sorted(folder.glob("*.parquet"))).to_pylist()
    done = {_identity(row) for row in stored}
    for structure, own in jobs.items():
        attacker = attacker_of(structure)
        shared = program.share(ground_of(lab.table, arrays, attacker))
        known = [_identity(_figures(form, job, {}, 0)) in done for job in own]
        todo = [job for job, found in zip(own, known, strict=True) if not found]
        finished = [job for job, found in zip(own, known, strict=True) if found]
        progress.resume(sum(job.what == "attack" for job in finished), steps * len(finished))
        for start in range(0, len(todo), program.block):
            part = todo[start : start + program.block]
            targets = []
            for job in part:
                knobs = dict(form.knobs[job.point])
                if job.what == "all_labels":
                    knobs["known"] = float(len(lab.splits[0].train))
                target = _target(sweep.workdir, job.row, form, knobs)
                if job.what == "untrained":
                    bottom = jax.tree.map(lambda a, i=job.row["seed"]: a[i], initial[attacker])
                    target = target._replace(bottom=bottom)
                targets.append(target)
            stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *targets)
            out = lanes.unpad(program(program.pad(stacked), shared), len(part))
            figures = [_figures(form, job, out, i) for i, job in enumerate(part)]
            path = folder / f"{structure}-{len(finished) + start:06d}.parquet"
            store.write_rows(path, figures)
            progress.update(sum(job.what == "attack" for job in part), steps * len(part))
    progress.close()
    if attack.baselines:
        store.write_rows(folder / "logistic.parquet", logistic_rows(form, rows, lab, arrays))
    return {
        "status": "ok",
        "steps": attack.steps,
        "knobs": form.knobs,
        "options": form.options,
        "oracle": attack.oracle,
        "structure": attack.structure,
        "settings": settings,
        "diverged": sum(row["status"] != "ok" for row in rows),
        "seconds": time.monotonic() - began,
        "compiles": program.traces,
    }


def _block(lab: Lab, cut: int) -> int:
    """Lanes of one call: BLOCK on CPU, as many as memory allows on an accelerator."""
    lane = 4 * len(lab.splits[0].train) * (7 * cut + lab.table.features[0][0].size)
    most = BLOCK if jax.default_backend() == "cpu" else 1024
    return max(jax.device_count(), min(most, MEMORY // lane))


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes a row of an attack the same row."""
    return tuple(row.get(name) for name in ("structure", "setting", "what", "point", "seed"))


def _figures(form: Form, job: Job, out: Mapping[str, np.ndarray], lane: int) -> dict[str, Any]:
    return {
        "attack": form.label,
        "setting": job.row["setting"],
        "seed": job.row["seed"],
        "structure": job.row["structure"],
        "what": job.what,
        "point": job.point,
        **{f"attack.{k}": float(v) for k, v in form.knobs[job.point].items()},
        **{name: float(values[lane]) for name, values in out.items()},
    }
