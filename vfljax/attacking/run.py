"""Attack a stored sweep: plan, load a block of settings, attack, score, write.

What enters: a sweep directory (weights and exchange, read by block of settings) and the attackers'
own columns. What leaves: one row a setting and attack. Attacks see a ``View`` and the known rows;
true labels meet their scores only in ``scoring``.
"""

from __future__ import annotations

import functools
import pathlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import attacks, plugins, store
from vfljax.attacking import alone, rules
from vfljax.attacking.baselines import logistic_figures, untrained_cut
from vfljax.attacking.diagnostics import belongs_to
from vfljax.attacking.jobs import (
    ATTACK,
    UNTRAINED,
    FormPlan,
    Job,
    ViewGroup,
    identity,
    plan_form,
)
from vfljax.attacking.program import AttackProgram, make_attack_lane, program_of
from vfljax.attacking.scoring import Scorer
from vfljax.attacking.view import (
    AttackInput,
    CommonData,
    common_data,
    input_of,
    read_shard,
)
from vfljax.attacks.core import Attack
from vfljax.last_layer import recorded_width
from vfljax.sweep import lanes
from vfljax.sweep.experiment import Experiment, experiment_of
from vfljax.sweep.forms import Form, attack_forms
from vfljax.sweep.initial import initial_weights
from vfljax.sweep.known import most_known
from vfljax.sweep.plan import Plan, recorded, split_arrays, width_of
from vfljax.sweep.progress import Progress
from vfljax.types import PyTree

BLOCK = 32  # settings attacked by one call on CPU
MEMORY = 1 << 29  # bytes of exchange a block may hold; what attacks make of it comes on top


# (attackers, seed, known) -> figures
Logistic = Callable[[tuple[int, ...], int, int], dict[str, float]]


class Stored(NamedTuple):
    """What attacking needs of a stored sweep."""

    plan: Plan  # of the recorded rows
    sweep: store.Sweep
    arrays: Mapping[str, np.ndarray]  # the splits
    scorer: Scorer
    summary: Mapping[str, dict[str, Any]] = {}  # what ``attacks.json`` says, which names folders
    shard: Callable[[pathlib.Path, str], tuple[PyTree, Mapping[str, np.ndarray]]] = read_shard

    @property
    def workdir(self) -> pathlib.Path:
        return self.sweep.workdir

    def folder(self, form: Form) -> str:
        """What the folder of the form's rows is called."""
        return store.folder_of(form.label, self.summary)

    def rows(self, form: Form) -> list[dict[str, Any]]:
        """The form's rows."""
        return store.read_form(self.workdir, self.folder(form)).to_pylist()


def attack_sweep(
    plan: Plan,
    workdir: pathlib.Path,
    names: Iterable[str] | None = None,
    say: Callable[[str], None] = print,
    renew_rules: bool = False,
) -> None:
    """Attack every stored setting with every form not yet stored; one compile an attack and shape.

    ``names`` limits the attacks; those outside the config run with published defaults. ``renew_rules``
    attacks anew what an attack's earlier rule attacked, and keeps the earlier rows (``rules``).
    """
    with store.writing(workdir):
        _attack_sweep(recorded(plan), workdir, names, say, renew_rules)


def _attack_sweep(
    plan: Plan,
    workdir: pathlib.Path,
    names: Iterable[str] | None,
    say: Callable[[str], None],
    renew_rules: bool,
) -> None:
    experiment = plan.experiment if names is None else plan.experiment.with_attacks(names)
    sweep = store.load(workdir)
    arrays = split_arrays(plan.dataset.labels, plan.splits)
    summary = store.attack_summary(workdir)
    trained = [s["name"] for s in sweep.header["shards"] if store.finished(workdir, s["name"])]
    todo, left = [], []
    _check_plugins(experiment, sweep, summary)
    for form in attack_forms(experiment, plan.dataset.num_classes, plan.blocks[0].input):
        form_plan = plan_form(form, plan, sweep)
        if isinstance(form_plan, str):
            say(f"skipped {form.label}: {form_plan}")
            summary[form.label] = {"status": "skipped", "reason": form_plan}
            continue
        about = described(form_plan, len(trained))
        if not rules.settle(form, about, summary, workdir, renew_rules, say):
            left.append(form_plan)
            continue
        todo.append(form_plan)
        summary[form.label] = {**summary.get(form.label, {}), **about}
    away = alone.jobs([*todo, *left], experiment.seeds)
    if away:
        store.open_form(workdir, alone.LABEL)
        summary[alone.LABEL] = alone.described(away, workdir, len(trained))
    # what an attack is, is known before its first row
    store.write_attack_summary(workdir, summary)
    if todo:
        for name in trained:
            store.verify(workdir / "shards" / name, deep=True)
    naming = most_known(plan._replace(experiment=experiment_of(sweep)))  # whoever attacks it now
    scorer = Scorer(arrays, experiment.execution.width or None, naming)
    stored = Stored(plan, sweep, arrays, scorer, summary)
    _run_forms(todo, stored, summary)
    alone.run(away, plan, workdir, arrays, stored.scorer)


def _check_plugins(experiment: Experiment, sweep: store.Sweep, summary: rules.Summary) -> None:
    """Refuse rows of plugins that are not in use, or whose files are not those of what is stored; an
    attack whose rule has a new number is another one."""
    names = [request.name for request in experiment.attacks]
    stored = {
        name: about
        for name, about in sweep.header.get("plugins", {}).items()
        if about["kind"] == "defense"
    }
    for entry in summary.values():
        for name, about in entry.get("plugins", {}).items():
            if name in attacks.TABLE and attacks.TABLE[name].rule == about["rule"]:
                stored[name] = about
    plugins.required([*experiment.points, *names], stored, sweep.workdir)


def _run_forms(todo: Sequence[FormPlan], stored: Stored, summary: dict[str, Any]) -> None:
    logistic = _logistic(stored)
    for form_plan in todo:
        label = form_plan.form.label
        cost = run_form(form_plan, stored, logistic)
        summary[label] = {**summary[label], **_with_earlier_parts(cost, summary[label])}
        store.write_attack_summary(stored.workdir, summary)


def _with_earlier_parts(now: dict[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """A resumed attack's cost is that of all its parts."""
    return {
        "seconds": before.get("seconds", 0.0) + now["seconds"],
        "compiles": max(before.get("compiles", 0), now["compiles"]),
        "views": max(before.get("views", 0), now["views"]),
    }


def run_form(form_plan: FormPlan, stored: Stored, logistic_of: Logistic) -> dict[str, Any]:
    """Run every job of a form that is not stored yet; returns what that cost."""
    form, attack, began = form_plan.form, form_plan.attack, time.monotonic()
    steps = max(1, attack.steps)
    # what is stored is known by its rows, not its file: blocks differ between machines
    rows = stored.rows(form)
    rules.check_options(form, rows, stored.workdir)
    done = {identity(row) for row in rows}
    total = sum(len(jobs) for jobs in form_plan.jobs.values())
    progress = Progress(f"attack {form.label}", form_plan.settings, steps * total)
    programs = set()
    for group, jobs in form_plan.jobs.items():
        todo = [job for job in jobs if job.identity not in done]
        progress.resume(_attacks(jobs) - _attacks(todo), steps * (len(jobs) - len(todo)))
        if todo:
            one = form_plan.attacks[group]
            programs.add(_run_group(form, group, one, todo, stored, progress))
    progress.close()
    logistic = [job for job in form_plan.logistic if job.identity not in done]
    if logistic:
        _run_logistic(logistic, stored, logistic_of)
    _check_complete(form_plan, stored)
    return {
        "seconds": time.monotonic() - began if programs else 0.0,
        "compiles": sum(program.traces for program in programs),
        "views": len(programs),
    }


def _check_complete(form_plan: FormPlan, stored: Stored) -> None:
    """Refuse to end while a job has no row."""
    rows = {identity(row) for row in stored.rows(form_plan.form)}
    missing = sum(job.identity not in rows for job in form_plan.every_job)
    if missing:
        unit = store.unit_of(stored.folder(form_plan.form))
        raise store.Damaged(stored.workdir, unit, f"{missing} rows are missing")


def _attacks(jobs: Sequence[Job]) -> int:
    return sum(job.what == ATTACK for job in jobs)


def described(form_plan: FormPlan, shards: int) -> dict[str, Any]:
    """What an attack is, as ``attacks.json`` says it; ``shards`` are trained."""
    form, attack = form_plan.form, form_plan.attack
    owns_layer = all(belongs_to(attack.diagnostic, g.attackers) for g in form_plan.attacks)
    return {
        "status": "ok",
        "steps": attack.steps,
        "knobs": form.knobs,
        "options": form.options,
        "oracle": attack.oracle or (bool(attack.diagnostic) and not owns_layer),
        "labels": "all" if attack.oracle else "",
        "adaptive": attack.adaptive,
        "structure": list(attack.federations),
        "settings": form_plan.settings,
        "diverged": form_plan.diverged,
        "rows": len(form_plan.every_job),
        "shards": shards,
        "rule": attacks.TABLE[form.name].rule,
        **({"plugins": about} if (about := plugins.described([form.name])) else {}),
    }


def _run_group(
    form: Form,
    group: ViewGroup,
    attack: Attack,
    todo: Sequence[Job],
    stored: Stored,
    progress: Progress,
) -> lanes.Program:
    """Load a block of jobs, attack, score, write; until none is left."""
    steps, block, program = max(1, attack.steps), make_block(form, group, attack, stored), None
    left = list(todo)
    while left:
        jobs = left[: block.layout.block]
        try:
            program, figures = attack_block(block, jobs, stored)
        except jax.errors.JaxRuntimeError as error:
            width = lanes.fewer(block.layout, form.label, error, progress.say)
            block = block._replace(layout=lanes.layout_of(width * jax.device_count(), width))
            continue
        del left[: len(jobs)]
        rows = [
            job.figures({name: float(values[i]) for name, values in figures.items()})
            for i, job in enumerate(jobs)
        ]
        _write(form, f"{group.federation}-{group.number}", jobs, rows, stored)
        progress.update(_attacks(jobs), steps * len(jobs))
    assert program is not None
    return program


class Block(NamedTuple):
    """What the jobs of one form and group share: one program over so many of them at a time."""

    layout: lanes.Layout
    static: AttackProgram
    attack: Attack
    batch_size: int
    common: CommonData
    load: Callable[[Job], AttackInput]


def make_block(form: Form, group: ViewGroup, attack: Attack, stored: Stored) -> Block:
    """What these jobs share, on the devices."""
    common = _common(group, attack, stored)
    static, layout = requested(form, group, attack, stored.plan, common)
    return Block(
        layout,
        static,
        attack,
        group.spec.batch_size,
        common,
        _loader(group, attack, stored),
    )


def attack_block(
    block: Block, jobs: Sequence[Job], stored: Stored
) -> tuple[lanes.Program, dict[str, np.ndarray]]:
    """Load, attack and score at most a block of jobs: the program, and each figure [jobs]."""
    inputs = jax.tree.map(lambda *leaves: np.stack(leaves), *map(block.load, jobs))
    on_devices = block.layout.pad(inputs)
    program = lanes.program(
        make_attack_lane, (block.static,), block.layout, on_devices, block.common
    )
    scores = program(on_devices, block.common)
    figures = stored.scorer.figures(
        scores, inputs, block.attack, block.batch_size, block.layout.block
    )
    return program, figures


def _logistic(stored: Stored) -> Logistic:
    """The baseline without any federation; it runs on the host."""
    plan = stored.plan

    @functools.cache  # it is the same beside every federation and attack
    def figures(attackers: tuple[int, ...], seed: int, known: int) -> dict[str, float]:
        common = jax.device_get(common_data(plan.table, stored.arrays, attackers))
        inputs = tuple(plan.blocks[p].input for p in attackers)
        return logistic_figures(common, inputs, plan.dataset.num_classes, seed, known)

    return figures


def _run_logistic(jobs: Sequence[Job], stored: Stored, logistic_of: Logistic) -> None:
    """Write the baseline's rows of a form, which are one file."""
    rows = []
    for job in jobs:
        known = int(job.knobs(len(stored.plan.splits[0].train))["known"])
        rows.append(job.figures(logistic_of(job.group.attackers, job.seed, known)))
    _write(jobs[0].form, "logistic", jobs, rows, stored)


def _write(
    form: Form, name: str, jobs: Sequence[Job], rows: list[dict[str, Any]], stored: Stored
) -> None:
    identities = [job.identity for job in jobs]
    store.write_block(stored.workdir, stored.folder(form), name, identities, rows)


def _loader(group: ViewGroup, attack: Attack, stored: Stored) -> Callable[[Job], AttackInput]:
    """What reads a job's ``AttackInput``: a stored setting's, or with an untrained bottom in place."""
    plan, workdir = stored.plan, stored.workdir

    @functools.cache
    def untrained() -> tuple[Any, np.ndarray]:
        weights = initial_weights(group.spec, plan.experiment, plan.seeds, plan.table)
        cut = untrained_cut(weights, plan.table, group.spec, group.attackers)
        return jax.device_get(weights.bottoms), cut

    def load(job: Job) -> AttackInput:
        knobs = job.knobs(len(plan.splits[0].train))
        shard = stored.shard(workdir, job.row["shard"])
        one = input_of(
            shard, job.row, job.form.name, knobs, group.attackers, bool(attack.diagnostic)
        )
        if job.what != UNTRAINED:
            return one
        initial, cut = untrained()
        bottoms = tuple(
            jax.tree.map(lambda a: a[job.seed], initial[party]) for party in group.attackers
        )
        embeddings = np.tile(cut[job.seed], (len(one.exchange["epochs"]), 1, 1))
        return one._replace(bottoms=bottoms, exchange={**one.exchange, "embeddings": embeddings})

    return load


def _common(group: ViewGroup, attack: Attack, stored: Stored) -> CommonData:
    """What all settings of a group share, on the devices."""
    return lanes.share(shared_data(group, attack, stored.plan, stored.arrays))


def shared_data(
    group: ViewGroup, attack: Attack, plan: Plan, arrays: Mapping[str, np.ndarray]
) -> CommonData:
    """What all settings of a group share; ``arrays`` are the plan's splits."""
    common = common_data(plan.table, arrays, group.attackers)
    return common._replace(table=plan.bare_table) if attack.diagnostic else common


def requested(
    form: Form, group: ViewGroup, attack: Attack, plan: Plan, common: CommonData
) -> tuple[AttackProgram, lanes.Layout]:
    """What decides a group's program beside the shapes of its jobs: its static part and its lanes."""
    layout = lanes.layout(_block(plan, group, common), width_of(plan.experiment, group.spec))
    return program_of(form, group, attack, plan.dataset.num_classes), layout


def _block(plan: Plan, group: ViewGroup, common: CommonData) -> int:
    """Lanes of one call: BLOCK on CPU, as many as memory allows on an accelerator. Large networks run
    one lane after the other on CPU: few a call, so that progress shows and a kill loses little."""
    spec = group.spec
    epochs, cut = (
        len(plan.experiment.training.recorded_epochs),
        sum(spec.bottoms[p].out for p in group.attackers),
    )
    columns = sum(int(np.prod(x.shape[1:])) for x in common.features)
    rows, held = len(plan.splits[0].train), len(plan.splits[0].test)
    lane = 4 * (rows * ((2 * epochs + 3) * cut + columns) + held * columns)
    lane += 4 * rows * epochs * recorded_width(spec)
    heavy = 2 * jax.device_count() if not spec.light else BLOCK
    most = heavy if jax.default_backend() == "cpu" else 1024
    return max(jax.device_count(), min(most, MEMORY // lane))
