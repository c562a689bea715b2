"""Makes the units of a sweep that are not made yet, together with any other process that does the same.

``begin`` writes what the units share. ``work`` claims one unit after the other and makes it, until none is
left. Processes that work in one folder need not know of each other (``vfljax.store.claims``).
"""

from __future__ import annotations

import contextlib
import pathlib
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax

from vfljax import datasets, store, testing
from vfljax.attack_runs import run
from vfljax.attack_runs.bundles import Begun, Stored
from vfljax.attack_runs.jobs import planned
from vfljax.attack_runs.planning import extended
from vfljax.config import Config
from vfljax.datasets import prepared
from vfljax.errors import UserError, short_path
from vfljax.machine import cores
from vfljax.store import Unit
from vfljax.store.claims import TRIES, file_name_of
from vfljax.store.units import ATTACK, LOCAL_ONLY, SHARD
from vfljax.sweep import initial, programs, train
from vfljax.sweep.grid import defense_values
from vfljax.sweep.progress import Progress, heartbeat
from vfljax.sweep.variants import static_options

POLL = 0.5  # seconds between looks at units that other processes have claimed

Say = Callable[[str], None]
May = Callable[[Unit], bool]


class Outcome(NamedTuple):
    """What ``work`` did."""

    given_up: Mapping[str, str]  # why, by unit

    def check(self) -> None:
        """Raises UserError if units were given up."""
        for unit, why in self.given_up.items():
            rest = len(self.given_up) - 1
            more = f" (and {rest} more)" if rest else ""
            raise UserError(
                f"{unit} failed {TRIES} times: {why}{more}. All else is done; the same command tries again."
            )


def anything(unit: Unit) -> bool:
    """Returns True: every unit may be made."""
    del unit
    return True


def check_contracts(experiment: Config) -> None:
    """Checks plugins against their contract, before anything is trained.

    Raises:
      ContractError: one line that says what to do.
    """
    testing.check_plugins(defense_values(experiment), static_options(experiment))


def begin(
    experiment: Config,
    workdir: pathlib.Path,
    command: str,
    say: Say = print,
    stages: Sequence[Config] = (),
) -> Begun:
    """Checks and plans a sweep, and writes its header and what its units share. Forgets failures of earlier
    commands.

    Args:
      experiment: to be trained and attacked.
      workdir: the folder of the sweep, new or of the same sweep.
      command: the command that makes the sweep, for its header.
      stages: parts of the experiment whose units are made first, each a config that has the one before.

    Raises:
      UserError: if anything cannot be trained, or does not fit, or if the folder holds another sweep.
    """
    check_contracts(experiment)
    with heartbeat(say, lambda: "planning, and training what several units need"):
        run.check_plugins(experiment, workdir)
        plan, needs = train.planned(experiment, workdir, stages)
        variants = planned(plan, experiment)
        with store.leading(workdir):
            data = experiment.data
            if place := datasets.prepared_at(data.name, data.dir, data.options):
                prepared.verify(place)  # a changed byte must not be trained on
            header = store.begin(workdir, train.header(plan, command))
            if header["shards"] != train.stored_shards(plan):  # another command was faster
                plan = train.plan_of(experiment, header)
            settling = experiment.skip_settled and not experiment.reproduces
            header = store.write(workdir, extended(header, plan, variants, settling))
            store.clear_failures(workdir)
            trials = sum(len(group.trials) for group in plan.groups)
            say(
                f"{trials} trials in {len(plan.groups)} programs on {jax.device_count()} "
                f"{jax.default_backend()} devices, {len(plan.shards)} shards, in {short_path(workdir)}: {needs}"
            )
            if experiment.model.pretrained:
                unread = initial.unread_tensors(
                    plan.groups[0].spec, experiment, plan.seeds, plan.table
                )
                rest = f"; of it left out: {', '.join(unread)}" if unread else ""
                say(f"bottoms start from {experiment.model.pretrained}{rest}")
            for each in variants:
                if each.skipped:
                    say(f"skipped {each.label}: {each.skipped}")
            train.shared(plan, workdir)
    return Begun(plan, workdir, header)


def work(begun: Begun, say: Say = print, may: May = anything) -> Outcome:
    """Makes units until none is left, in this process. Units that other processes have claimed are waited for.

    A unit that fails three times, in any process, is given up, and so are those that need it.

    Args:
      begun: the sweep.
      may: whether a unit may still be begun; it is asked before each.

    Raises:
      UserError: if a unit cannot be made by a fault of the user or the machine, such as a full disk.
    """
    queue = Queue(begun)
    pool = ThreadPoolExecutor(max_workers=cores())
    try:
        maker = _Maker(begun, queue, pool, may)
        with heartbeat(say, maker.doing):
            while queue.left(may):
                if not any(_try(unit, maker, say) for unit in queue.preferred(maker.program, may)):
                    time.sleep(POLL)
        maker.close()
    finally:
        pool.shutdown(cancel_futures=True)  # nothing more is compiled after an interrupt
    return Outcome(queue.given_up)


class Queue:
    """The units of a sweep and their states, as this process knows them.

    If shards of a block are given up, or may not be trained, attacks are run on the block's other shards. The
    rows are kept as the progress of their unit, which is not finished.
    """

    def __init__(self, begun: Begun) -> None:
        self.workdir = begun.workdir
        units = store.units_of(begun.header)
        self.units = [unit for unit in units if run.can_run(unit, begun.header)]
        self.done: set[str] = set()
        self.given_up: dict[str, str] = {}
        self.made_partly: set[str] = set()

    def look(self) -> None:
        """Finds the units that are finished, by any process."""
        for unit in self.units:
            if unit.name not in self.done and store.finished(self.workdir, unit.name):
                self.done.add(unit.name)

    def left(self, may: May) -> list[Unit]:
        """Returns the units that are to be made, now or once others are made."""
        return self._states(may)[0]

    def _states(self, may: May) -> tuple[list[Unit], set[str]]:
        """Returns the units that are left, and the names of those that will not be finished."""
        self.look()
        abandoned, left = self.made_partly | set(self.given_up), []
        for unit in self.units:
            if unit.name in self.done or unit.name in abandoned:
                continue
            # a unit waits only for earlier ones, which therefore are listed already
            if (unit.needs and abandoned.issuperset(unit.needs)) or not may(unit):
                abandoned.add(unit.name)
            else:
                left.append(unit)
        return left, abandoned

    def ready(self, may: May) -> list[Unit]:
        """Returns the units that can be made now."""
        left, abandoned = self._states(may)
        waited, over = {unit.name for unit in left}, self.done | abandoned
        return [
            unit for unit in left if over.issuperset(unit.needs) and waited.isdisjoint(unit.after)
        ]

    def beside(self, unit: Unit, may: May) -> list[Unit]:
        """Returns the other units that are made together with one that can be made now: other variants of its
        attack on the same shards. A unit that has failed is made alone, so that it lets no other one fail."""
        failed = store.failed(self.workdir)
        if unit.kind != ATTACK or file_name_of(unit.name) in failed:
            return []
        same = unit.program, unit.shards
        return [
            other
            for other in self.ready(may)
            if other.kind == ATTACK and (other.program, other.shards) == same
            if other.name != unit.name and file_name_of(other.name) not in failed
        ]

    def preferred(self, program: str, may: May) -> Iterator[Unit]:
        """Yields the units that can be made now, stage by stage: first those of ``program``, which this process
        has compiled, then those of programs that no other process is at. Units that have failed come last,
        because they may end this process too."""
        ready, claimed = self.ready(may), store.claimed(self.workdir)
        busy = {unit.program for unit in self.units if file_name_of(unit.name) in claimed}
        failed = store.failed(self.workdir)

        def rank(unit: Unit) -> tuple[Any, ...]:
            last = file_name_of(unit.name) in failed
            return last, unit.stage, unit.program != program, unit.program in busy

        yield from sorted(ready, key=rank)

    def following(self, program: str) -> Unit | None:
        """Returns the unit of another program that will probably be trained next, and has not failed."""
        others = store.claimed(self.workdir) | store.failed(self.workdir)
        busy = {unit.program for unit in self.units if file_name_of(unit.name) in others} | {
            program
        }
        left = (u for u in self.units if u.kind == SHARD and u.name not in self.done)
        return next((unit for unit in left if unit.program not in busy), None)

    def next_attacks(self, may: May) -> list[Unit]:
        """Returns the first unit of each program of attacks that can be run now, whose units no process has
        claimed and none of whose units has failed."""
        others = store.claimed(self.workdir) | store.failed(self.workdir)
        busy = {unit.program for unit in self.units if file_name_of(unit.name) in others}
        ready = (unit for unit in self.ready(may) if unit.kind == ATTACK)
        first = {unit.program: unit for unit in reversed([*ready]) if unit.program not in busy}
        return [*reversed(first.values())]


def _try(unit: Unit, maker: _Maker, say: Say) -> bool:
    """Claims a unit and makes it, with the units that can be made with it. Returns False if another process has
    claimed it."""
    workdir, queue = maker.begun.workdir, maker.queue
    with contextlib.ExitStack() as claims:
        if not claims.enter_context(store.claim(workdir, unit.name)):
            return False
        if store.finished(workdir, unit.name):  # another process was faster
            return True
        failed = store.failures(workdir, unit.name)
        if len(failed) >= TRIES:
            queue.given_up[unit.name] = failed[-1]
            say(f"{unit.name} is given up: {failed[-1]}")
            return True
        units = [unit]
        for other in queue.beside(unit, maker.may):
            mine = claims.enter_context(store.claim(workdir, other.name))
            if mine and not store.finished(workdir, other.name):
                units.append(other)
        try:
            with contextlib.ExitStack() as attempts:
                for each in units:
                    attempts.enter_context(store.attempt(workdir, each.name))
                maker.make(units)
            for each in units:
                if not store.finished(workdir, each.name):
                    queue.made_partly.add(each.name)
        except UserError:
            raise
        except Exception as error:  # of these units: others may succeed
            traceback.print_exception(error)
            say(f"{unit.name} failed, {len(failed) + 1} of {TRIES} times")
    return True


class _Maker:
    """Makes units in this process, and keeps what several of them need."""

    def __init__(self, begun: Begun, queue: Queue, pool: Executor, may: May) -> None:
        self.begun, self.queue, self._pool, self.may = begun, queue, pool, may
        self.program = ""  # of the last unit
        self._unit: Unit | None = None
        self._shards = {shard.name: shard for shard in begun.plan.shards}
        self._training: train.Training | None = None
        self._stored: Stored | None = None
        self._progress: Progress | None = None
        self._counted: set[str] = set()
        # what was spent on compiling ahead, by the program of the units that call it
        self._ahead: dict[str, programs.Spent] = {}

    def doing(self) -> str:
        """Returns what this process does now, for a line of progress."""
        if self._unit is None:
            return "waiting for units of other processes"
        kind, of = self._unit.kind, self._unit.of
        names = {SHARD: f"training {of}", LOCAL_ONLY: "learning without the federation"}
        if kind == ATTACK:
            names[kind] = f"attacking by {self.begun.header['attacks'][of]['attack']}"
        beside = programs.compiling()
        return names[kind] + f" ({', '.join(beside)})" * bool(beside)

    def make(self, units: Sequence[Unit]) -> None:
        """Makes and stores a unit, or units that are made together (``Queue.beside``)."""
        unit = units[0]
        self.program, self._unit = unit.program, unit
        if unit.kind == SHARD:
            self._train(unit)
            return
        self.close()
        if self._stored is None:
            self._stored = run.opened_sweep(self.begun)
        self._compile_ahead(units, self._stored)
        ahead = self._ahead.get(unit.program, programs.Spent())
        self._ahead[unit.program] = programs.Spent()
        run.run_units(units, self._stored, ahead)

    def _compile_ahead(self, units: Sequence[Unit], stored: Stored) -> None:
        """Compiles the programs of an attack in the background, and of as many following as there are cores."""
        following = self.queue.next_attacks(self.may)[: cores()]
        together = [[unit, *self.queue.beside(unit, self.may)] for unit in following]
        own = [units] if units[0].kind == ATTACK else []
        for each in [*own, *together]:
            if each[0].program not in self._ahead:
                before = programs.spent()
                # what an attack's code raises, the units themselves will raise too
                with contextlib.suppress(Exception):
                    run.compile_ahead(each, stored, self._pool)
                self._ahead[each[0].program] = programs.spent_since(before)

    def _train(self, unit: Unit) -> None:
        plan, workdir = self.begun.plan, self.begun.workdir
        if self._training is None:
            self._training = train.Training(train.ready(plan, workdir), workdir, self._pool)
        following = self.queue.following(unit.program)
        progress = self._training_progress()
        self._counted.add(unit.of)  # it counts itself
        ahead = None if following is None else self._shards[following.of]
        self._training.train(self._shards[unit.of], ahead, progress)

    def _training_progress(self) -> Progress:
        """Returns the progress line of training, which counts shards that other processes trained too."""
        plan, done = self.begun.plan, self.queue.done
        if self._progress is None:
            steps = sum(map(plan.steps, plan.shards))
            trials = sum(len(shard.trials) for shard in plan.shards)
            self._progress = Progress("train", trials, steps)
        trained = {unit.of for unit in self.queue.units if unit.kind == SHARD and unit.name in done}
        for name in trained - self._counted:
            shard = self._shards[name]
            self._progress.resume(len(shard.trials), plan.steps(shard))
        self._counted |= trained
        return self._progress

    def close(self) -> None:
        """Frees what training needs, and ends its progress line."""
        if self._training is not None:
            self._training.close()
            self._training = None
        if self._progress is not None:
            self._progress.close()
            self._progress = None
