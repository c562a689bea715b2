"""Sends unfinished shards to an engine, waits, and sends failed shards again.

Shards are divided, in the plan's order, among the jobs that run at once, so that each compiles few programs.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vfljax import store
from vfljax.attacking import run, versions
from vfljax.attacking.batching import Stored
from vfljax.attacking.jobs import VariantPlan
from vfljax.config import Config
from vfljax.errors import UserError, user_path
from vfljax.launching import worker
from vfljax.launching.backends import Engine, Handle, Lost, opened
from vfljax.launching.worker import Outcome, ShardJob
from vfljax.sweep import train
from vfljax.sweep.plan import Plan, Shard
from vfljax.sweep.progress import Progress

TRIES = 3  # of a shard
POLL = 0.5  # seconds between looks at the jobs
GRACE = 10  # seconds for jobs to save what they have, when they are canceled


class GivenUp(NamedTuple):
    """A shard that failed too often."""

    shard: str
    what: str  # "trained" or "attacked"
    why: str

    def __str__(self) -> str:
        return f"the shard {self.shard} was not {self.what}, after {TRIES} tries: {self.why}"


class Way(NamedTuple):
    """How the unfinished parts of a sweep are trained and attacked."""

    train: train.TrainShards
    attack: run.RunVariants
    given_up: list[GivenUp]  # ``train`` and ``attack`` add to it


INLINE = Way(train.train_shards, run.run_variants, [])


def way(engine: Engine, plugins: Sequence[str] = (), names: Iterable[str] | None = None) -> Way:
    """Returns the way that trains and attacks by jobs of an engine.

    Args:
      engine: runs the jobs.
      plugins: files or modules of plugins that workers use too.
      names: attacks that are run in place of the config's; None: those of the config.
    """
    given_up: list[GivenUp] = []
    sources = (str(user_path(name, "plugin")) if name.endswith(".py") else name for name in plugins)
    asked = tuple(sources), None if names is None else tuple(names)

    def train_there(
        plan: Plan, workdir: pathlib.Path, todo: Sequence[Shard], done: Sequence[Shard]
    ) -> None:
        job = _job(worker.train_shards, workdir, plan.experiment, *asked)
        steps = {shard.name: plan.steps(shard) for shard in todo}
        trials = {shard.name: len(shard.trials) for shard in todo}
        progress = train.progress_of(plan, todo, done)
        shards = workdir / "shards"
        failed, _ = _send(engine, job, steps, trials, progress, lambda n: (shards / n).is_dir())
        given_up.extend(GivenUp(name, "trained", why) for name, why in failed.items())
        if len(failed) == len(todo) and not done:  # there is nothing to attack or to report
            raise UserError(f"no shard could be trained: {given_up[0]}.")

    def attack_there(todo: Sequence[VariantPlan], stored: Stored) -> Iterator[run.Attacked]:
        labels = tuple(variant_plan.variant.label for variant_plan in todo)
        job = _job(worker.attack_shards, stored.workdir, stored.plan.experiment, *asked)
        job = job._replace(attacks=labels)
        counts = _left(todo, stored)
        progress = Progress("attack", sum(counts.values()), sum(counts.values()))
        failed, costs = _send(engine, job, counts, counts, progress, lambda name: False)
        given_up.extend(GivenUp(name, "attacked", why) for name, why in failed.items())
        names = {shard["name"] for shard in stored.sweep.header["shards"]} - set(failed)
        for variant_plan in todo:
            cost = costs.get(variant_plan.variant.label, versions.NO_COST)
            yield variant_plan.of_shards(names), cost

    return Way(train_there, attack_there, given_up)


@contextlib.contextmanager
def chosen(
    name: str,
    jobs: int,
    options: Sequence[str],
    plugins: Sequence[str] = (),
    names: Iterable[str] | None = None,
) -> Iterator[Way]:
    """Opens the way of a launcher.

    Args:
      name: "inline" or a name of ``backends.ENGINES``.
      jobs: jobs at once, 0 for as many as there is room for.
      options: "KEY=VALUE" of the launcher.
      plugins: files or modules of plugins that workers use too.
      names: as for ``way``.

    Raises:
      UserError: for invalid options, and at the end if shards were given up.
    """
    if name == "inline":
        if options or jobs:
            raise UserError(
                "--jobs and --launcher_options are for --launcher=local, slurm or ray: inline uses all that "
                "this process has."
            )
        yield INLINE
        return
    with opened(name, jobs, dict(map(_option, options))) as engine:
        opened_way = way(engine, plugins, names)
        yield opened_way
    if opened_way.given_up:
        first, rest = opened_way.given_up[0], len(opened_way.given_up) - 1
        more = f" (and {rest} more)" if rest else ""
        raise UserError(f"{first}{more}. All else is done; the same command tries again.")


def _option(text: str) -> tuple[str, str | int | float]:
    key, is_there, value = text.partition("=")
    if not key or not is_there:
        raise UserError(
            f"--launcher_options={text!r}: give KEY=VALUE, for example timeout_min=240."
        )
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return key, kind(value)
    return key, value


def _job(
    do: Callable[[ShardJob], Outcome],
    workdir: pathlib.Path,
    experiment: Config,
    plugins: tuple[str, ...],
    names: tuple[str, ...] | None,
) -> ShardJob:
    """Returns a job without shards that is led by this process, the writer of the sweep. Makes a new folder
    for the files of such jobs, which only this user may enter."""
    sweep = workdir.absolute()
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S-%f")
    folder = sweep / "launcher" / f"{stamp}-{os.getpid()}"
    for private in (folder.parent, folder):
        private.mkdir(mode=0o700, exist_ok=True)
        private.chmod(0o700)
    config = folder / "config.json"
    config.write_text(json.dumps(experiment.stored))
    return ShardJob(
        do=do,
        workdir=str(sweep),
        sweep=store.identity(sweep),
        leader=store.writer(sweep),
        config=str(config),
        shards=(),
        attacks=(),
        names=names,
        plugins=plugins,
        begun=str(folder / "begun"),
    )


def _left(todo: Sequence[VariantPlan], stored: Stored) -> dict[str, int]:
    """Returns the number of jobs of attacks that are not stored yet by shard, for shards that have any."""
    counts: collections.Counter[str] = collections.Counter()
    for variant_plan in todo:
        done = stored.keys(variant_plan.variant)
        left = (job.row["shard"] for job in variant_plan.every_job if job.key not in done)
        counts.update(left)
    return dict(sorted(counts.items()))


def _parts(weights: Mapping[str, float], count: int) -> list[tuple[str, ...]]:
    """Returns the names in their order, in at most ``count`` parts of about equal weight.

    >>> _parts({"a": 1, "b": 1, "c": 2, "d": 4}, 2)
    [('a', 'b', 'c'), ('d',)]
    """
    sizes = np.maximum(np.fromiter(weights.values(), float, len(weights)), 1e-9)
    middles = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    numbers = np.minimum((middles * count).astype(int), count - 1)
    names = np.array(list(weights), dtype=object)
    return [tuple(names[numbers == number]) for number in np.unique(numbers)]


def _send(
    engine: Engine,
    job: ShardJob,
    weights: Mapping[str, float],
    trials: Mapping[str, int],
    progress: Progress,
    is_done: Callable[[str], bool],
) -> tuple[dict[str, str], dict[str, run.Cost]]:
    """Runs ``job`` for the shards of ``weights``, and again for those that fail, ``TRIES`` times at most.

    ``weights`` has the steps of each shard, ``trials`` its number of trials, and ``is_done`` tells from files
    whether it is finished. Returns why shards were given up, by name, and the costs of attacks, by label.
    """
    folder = pathlib.Path(job.config).parent
    tries: collections.Counter[str] = collections.Counter()
    failed: dict[str, str] = {}
    costs: dict[str, run.Cost] = {}
    counted: set[str] = set()

    def look(names: Iterable[str]) -> None:
        for name in names:
            if name not in counted:
                counted.add(name)
                progress.update(trials[name], int(weights[name]))

    todo, turn = list(weights), 0
    while todo:
        jobs = [
            job._replace(shards=names, begun=f"{job.begun}/{turn}-{number}")
            for number, names in enumerate(_parts({n: weights[n] for n in todo}, engine.jobs))
        ]
        handles = engine.submit(jobs, folder / str(turn))
        ended = _wait(handles, lambda: look(filter(is_done, weights)))
        again: list[str] = []
        for sent, outcome in zip(jobs, ended, strict=True):
            if isinstance(outcome, Lost):
                blamed = _blamed(sent, outcome.why)
                left = [name for name in sent.shards if not is_done(name)]
            else:
                blamed, left = outcome.failed, list(outcome.failed)
                for label, cost in outcome.costs.items():
                    costs[label] = run.with_earlier_parts(cost, costs.get(label, {}))
            look(set(sent.shards) - set(left))
            again += [name for name in left if name not in blamed]
            for name in (name for name in left if name in blamed):
                tries[name] += 1
                failed[name] = blamed[name]
                if tries[name] < TRIES:
                    progress.say(f"{name} failed and is tried again: {blamed[name]}")
                    again.append(name)
        todo, turn = [name for name in weights if name in set(again)], turn + 1
    progress.close()
    return {name: failed[name] for name in failed if tries[name] == TRIES}, costs


def _wait(handles: Sequence[Handle], look: Callable[[], None]) -> list[Outcome | Lost]:
    """Waits until all jobs have ended, and returns their outcomes. An interrupt cancels them."""
    try:
        while not all(handle.done() for handle in handles):
            look()
            time.sleep(POLL)
    except BaseException:
        for handle in handles:
            with contextlib.suppress(Exception):  # the job has ended
                handle.cancel()
        end = time.monotonic() + GRACE
        while time.monotonic() < end and not all(handle.done() for handle in handles):
            time.sleep(POLL / 5)
        raise
    return [handle.outcome() for handle in handles]


def _blamed(job: ShardJob, why: str) -> dict[str, str]:
    """Returns the shards that a job had begun when it died, else all its shards, each with ``why``."""
    folder = pathlib.Path(job.begun)
    begun = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return dict.fromkeys(begun or job.shards, why)
