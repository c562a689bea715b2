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
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import keys, lanes, store
from vfljax.attacks.core import Attack
from vfljax.baselines import initial_bottoms, logistic_rows, untrained_cut
from vfljax.config import recorded_epochs
from vfljax.errors import UserError
from vfljax.inside import Inside, make_inside, seen_by
from vfljax.judge import Claim, Truth, judge, truth_of
from vfljax.lab import Lab, plain, recorded, split_arrays, width_of
from vfljax.progress import Progress
from vfljax.rows import over_chunks
from vfljax.servable import servable
from vfljax.sight import Ground, Target, ground_of, known_rows, target_of, view_of
from vfljax.suite import Form, attackers_of, forms, label_of, make_attack
from vfljax.training import rows_of
from vfljax.types import CHUNK, Agreed, Array, Known, Scores, Spec, View, Weights

Run = Callable[[Array, View, Known, Mapping[str, Array]], Scores]

BLOCK = 32  # settings attacked by one call on CPU
MEMORY = 1 << 29  # bytes of exchange a block may hold; what attacks make of it comes on top


class Asks(NamedTuple):
    """What an attack asks of its program beyond the view; static."""

    oracle: bool
    inside: str
    attackers: tuple[int, ...]


@functools.cache
def _program(
    run: Run,
    asks: Asks,
    agreed: Agreed,
    block: int,
    width: int | None,
    shapes: tuple[Any, ...],
    spec: Spec | None,
) -> lanes.Program:
    """One compiled program an attack and shape of view; equal ones share it. An oracle form is given
    every row's label and judged on all rows; ``spec`` (with the attackers) is given where the attack
    looks inside the federation."""
    del shapes
    inside = make_inside(spec, asks.inside, asks.attackers) if spec else None
    chunk = spec.chunk if spec else CHUNK

    def one(target: Target, ground: Ground) -> Scores:
        count = target.knobs.get("known")
        count = jnp.float32(0) if count is None else count
        every = jnp.float32(ground.known_order.shape[1])
        known = known_rows(ground, target.seed_index, every if asks.oracle else count)
        key = keys.fold(keys.run_key(target.seed), "attack", target.key_name)
        seen = {asks.inside: _look(inside, target, ground, chunk)} if inside else {}
        view = view_of(target, ground, agreed, seen)
        return run(key, view, known, target.knobs)

    return lanes.Program(one, block, width)


def _look(inside: Inside, target: Target, ground: Ground, chunk: int) -> Array:
    """What stands inside the federation, for every training row."""
    table, i = ground.whole, target.seed_index
    assert table is not None
    assert target.weights is not None
    weights: Weights = target.weights

    def of(rows: Array) -> Array:
        return inside(weights, rows_of(table, i, rows), table.labels[rows])

    return over_chunks(of, table.train[i], chunk)


def run(
    lab: Lab,
    workdir: pathlib.Path,
    wanted: list[str] | None = None,
    say: Any = print,
) -> None:
    """Attack every stored setting with every form not yet stored; one compile an attack and shape.

    ``wanted`` limits the attacks by name; names outside the config run with published defaults.
    """
    lab = recorded(lab)
    config = dict(lab.config)
    if wanted is not None:
        config["attacks"] = {name: config["attacks"].get(name, {}) for name in wanted}
    num_classes = lab.dataset.num_classes
    all_forms = forms(config, num_classes, lab.blocks[0].input)
    sweep = store.load(workdir)
    arrays = split_arrays(lab.dataset.labels, lab.splits)
    summary = store.attack_summary(workdir)
    plan = []
    for form in all_forms:
        _, rows, reason = servable(form, lab, sweep)
        if reason:
            say(f"skipped {form.label}: {reason}")
            summary[form.label] = {"status": "skipped", "reason": reason}
            continue
        plan.append((form, rows))
    if plan:
        for shard in sweep.header["shards"]:
            if (workdir / "shards" / shard["name"]).is_dir():
                store.verify(workdir / "shards" / shard["name"], deep=True)
    court = Court(lab, arrays)
    for form, rows in plan:
        before = summary.get(form.label, {})
        now = _run_form(form, rows, lab, sweep, arrays, court)
        # a resumed attack's cost is that of all its parts
        seconds = before.get("seconds", 0.0) + now["seconds"]
        compiles = max(before.get("compiles", 0), now["compiles"])
        views = max(before.get("views", 0), now["views"])
        summary[form.label] = {**now, "seconds": seconds, "compiles": compiles, "views": views}
    store.write_text(workdir / "attacks.json", json.dumps(summary, indent=1))


class Court:
    """Judges blocks of scores while they are still on the devices; one program for all attacks on
    arrays of equal shapes."""

    def __init__(self, lab: Lab, arrays: Mapping[str, np.ndarray]) -> None:
        self.truth = truth_of(arrays)
        self.width = lab.config["execution"]["width"] or None
        self.programs: dict[Any, tuple[lanes.Program, Truth]] = {}

    def figures(
        self, scores: Scores, targets: Target, attack: Attack, batch_size: int, block: int
    ) -> dict[str, np.ndarray]:
        """[lanes] of each figure; ``targets`` are those of the block, on the host and unpadded."""
        count, epochs = len(targets.seed), targets.exchange["epochs"][0]
        place = -1 if attack.epoch == -1 else int(np.argmax(epochs == attack.epoch))
        known = targets.knobs.get("known", np.zeros(count)) * (not attack.oracle)
        sent = (
            targets.exchange["sum_count"] > 0
            if attack.over_epochs
            else targets.exchange["sent"][:, place]
        )
        own = (
            *(targets.seed_index, np.asarray(known, np.int32)),
            *(targets.exchange["order"][:, place], sent, np.full(count, attack.steps > 0)),
        )
        key = (batch_size, block, jax.tree.structure(scores))
        if key not in self.programs:
            # the scores come in the attack's block, whose width was chosen by other limits
            made = lanes.Program(
                lambda claim, truth: judge(claim, truth, batch_size),
                block,
                lanes.dividing_width(block, self.width),
            )
            self.programs[key] = made, made.share(self.truth)
        program, truth = self.programs[key]
        return lanes.unpad(program(Claim(scores, *program.pad(own)), truth), count)


class Job(NamedTuple):
    """One lane of a block. ``what``: the attack itself, or one of its trained baselines."""

    row: dict[str, Any]
    point: int
    what: str  # "attack", "all_labels", "untrained"


class Sight(NamedTuple):
    """Settings attacked alike: one federation, one set of attackers, one shape of model."""

    structure: str
    attackers: tuple[int, ...]
    spec: Spec  # models only
    number: int  # of the spec, in the sweep


def _sights(form: Form, rows: list[dict], lab: Lab) -> dict[Sight, list[dict]]:
    specs = list(dict.fromkeys(plain(group.spec) for group in lab.groups))
    spec_of = {s.id: plain(group.spec) for group in lab.groups for s in group.settings}
    out: dict[Sight, list[dict]] = {}
    for row in rows:
        who = attackers_of(row["structure"], form)
        spec = spec_of[row["setting"]]
        sight = Sight(row["structure"], who, spec, specs.index(spec))
        out.setdefault(sight, []).append(row)
    return out


def _jobs(attack: Attack, rows: list[dict], points: int, seeds: int) -> list[Job]:
    """Untrained baselines (one a seed) first, then per setting the attack and its upper bound."""
    out: list[Job] = []
    for point in range(points):
        if "untrained" in attack.baselines:
            for seed in range(seeds):
                sample = next((row for row in rows if row["seed"] == seed), None)
                out += [Job(sample, point, "untrained")] if sample else []
        for row in rows:
            if row["status"] != "ok":
                continue
            out.append(Job(row, point, "attack"))
            if "all_labels" in attack.baselines:
                out.append(Job(row, point, "all_labels"))
    return out


def _run_form(
    form: Form,
    rows: list[dict],
    lab: Lab,
    sweep: store.Sweep,
    arrays: Mapping[str, np.ndarray],
    court: Court,
) -> dict[str, Any]:
    folder = sweep.workdir / "attacks" / form.label.replace("/", "_")
    began, classes = time.monotonic(), lab.dataset.num_classes
    sights = _sights(form, rows, lab)
    made = {
        sight: make_attack(form, tuple(sight.spec.bottoms[p] for p in sight.attackers), classes)
        for sight in sights
    }
    jobs = {
        sight: _jobs(made[sight], own, len(form.knobs), lab.config["seeds"])
        for sight, own in sights.items()
    }
    every = [job for own in jobs.values() for job in own]
    attack = next(iter(made.values()))
    settings, steps = sum(job.what == "attack" for job in every), max(1, attack.steps)
    progress = Progress(f"attack {form.label}", settings, steps * len(every))
    # what is stored is known by its rows, not its file: blocks differ between machines
    stored = store.read_table(sorted(folder.glob("*.parquet"))).to_pylist()
    _check_stored(form, stored, folder)
    done = {_identity(row) for row in stored}
    programs = set()
    for sight, own in jobs.items():
        known = [_identity(_figures(form, sight, job, {}, 0)) in done for job in own]
        todo = [job for job, found in zip(own, known, strict=True) if not found]
        finished = [job for job, found in zip(own, known, strict=True) if found]
        progress.resume(sum(job.what == "attack" for job in finished), steps * len(finished))
        if not todo:
            continue
        attack = made[sight]
        program, shared = _prepared(attack, sight, lab, arrays)
        programs.add(program)
        initial = functools.cache(functools.partial(initial_bottoms, sight.spec, lab))
        untrained = functools.cache(
            functools.partial(untrained_cut, lab, sight.spec, sight.attackers)
        )
        for start in range(0, len(todo), program.block):
            part = todo[start : start + program.block]
            targets = []
            for job in part:
                knobs = dict(form.knobs[job.point])
                if job.what == "all_labels":
                    knobs["known"] = float(len(lab.splits[0].train))
                target = target_of(
                    sweep.workdir, job.row, form.name, knobs, sight.attackers, bool(attack.inside)
                )
                if job.what == "untrained":
                    i = job.row["seed"]
                    bottoms = tuple(
                        jax.tree.map(lambda a, i=i: a[i], initial()[p]) for p in sight.attackers
                    )
                    cut = np.tile(untrained()[i], (len(target.exchange["epochs"]), 1, 1))
                    exchange = {**target.exchange, "embeddings": cut}
                    target = target._replace(bottoms=bottoms, exchange=exchange)
                targets.append(target)
            stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *targets)
            scores = program(program.pad(stacked), shared)
            out = court.figures(scores, stacked, attack, sight.spec.batch_size, program.block)
            figures = [_figures(form, sight, job, out, i) for i, job in enumerate(part)]
            path = folder / f"{sight.structure}-{sight.number}-{len(finished) + start:06d}.parquet"
            store.write_rows(path, figures)
            progress.update(sum(job.what == "attack" for job in part), steps * len(part))
    progress.close()
    if "logistic" in attack.baselines:
        store.write_rows(
            folder / "logistic.parquet", logistic_rows(form, list(sights), lab, arrays)
        )
    own_layer = all(seen_by(attack.inside, sight.attackers) for sight in sights)
    return {
        "status": "ok",
        "steps": attack.steps,
        "knobs": form.knobs,
        "options": form.options,
        "oracle": attack.oracle or (bool(attack.inside) and not own_layer),
        "labels": "all" if attack.oracle else "",
        "adaptive": attack.adaptive,
        "structure": attack.structure,
        "settings": settings,
        "diverged": sum(row["status"] != "ok" for row in rows),
        "seconds": time.monotonic() - began if programs else 0.0,
        "compiles": sum(program.traces for program in programs),
        "views": len(programs),
    }


def _prepared(
    attack: Attack, sight: Sight, lab: Lab, arrays: Mapping[str, np.ndarray]
) -> tuple[lanes.Program, Ground]:
    """An attack's program for one shape of view, and what all its lanes share."""
    attackers, spec = sight.attackers, sight.spec
    cut = sum(spec.bottoms[p].out for p in attackers)
    columns = tuple(lab.table.features[p].shape for p in attackers)
    ground = ground_of(lab.table, arrays, attackers)
    if attack.inside:
        ground = ground._replace(whole=lab.table._replace(scores=None))
    # every shape that enters: another sweep of this process may differ in its test rows alone
    shapes = tuple((a.shape, a.dtype) for a in jax.tree.leaves(ground))
    program = _program(
        attack.run,
        Asks(attack.oracle, attack.inside, attackers if attack.inside else ()),
        Agreed(spec.batch_size),
        _block(lab, spec, cut, columns),
        width_of(lab, spec),
        (cut, shapes, jax.tree.structure(ground), len(recorded_epochs(lab.config))),
        spec if attack.inside else None,
    )
    return program, program.share(ground)


def _block(lab: Lab, spec: Spec, cut: int, columns: tuple[tuple[int, ...], ...]) -> int:
    """Lanes of one call: BLOCK on CPU, as many as memory allows on an accelerator. Large networks run
    one lane after the other on CPU: few a call, so that progress shows and a kill loses little."""
    epochs = len(recorded_epochs(lab.config))
    own, rows = sum(int(np.prod(shape[1:])) for shape in columns), len(lab.splits[0].train)
    lane = 4 * (rows * ((2 * epochs + 3) * cut + own) + len(lab.splits[0].test) * own)
    heavy = 2 * jax.device_count() if not spec.light else BLOCK
    most = heavy if jax.default_backend() == "cpu" else 1024
    return max(jax.device_count(), min(most, MEMORY // lane))


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes a row of an attack the same row."""
    return tuple(
        row.get(name) for name in ("structure", "view", "setting", "what", "point", "seed")
    )


def _check_stored(form: Form, stored: list[dict[str, Any]], folder: pathlib.Path) -> None:
    """Refuse to add to rows that were made with other options or knobs under the same name."""
    options = _options(form)
    for row in stored:
        own = {k.removeprefix("attack."): v for k, v in row.items() if k.startswith("attack.")}
        same = row["point"] < len(form.knobs) and own == form.knobs[row["point"]]
        if row["what"] != "logistic" and not (same and row["options"] == options):
            raise UserError(
                f"{form.label} is stored in {folder} with {row['options']} and {own}, and now asks for "
                f"{options} and {form.knobs}: remove that folder to attack anew."
            )


def _options(form: Form) -> str:
    return json.dumps(form.options, sort_keys=True)


def _figures(
    form: Form, sight: Sight, job: Job, out: Mapping[str, np.ndarray], lane: int
) -> dict[str, Any]:
    return {
        "attack": label_of(form, sight.attackers),
        "setting": job.row["setting"],
        "seed": job.row["seed"],
        "structure": job.row["structure"],
        "view": sight.number,
        "parties": "+".join(map(str, sight.attackers)),
        "what": job.what,
        "point": job.point,
        "options": _options(form),
        **{f"attack.{k}": float(v) for k, v in form.knobs[job.point].items()},
        **{name: float(values[lane]) for name, values in out.items()},
    }
