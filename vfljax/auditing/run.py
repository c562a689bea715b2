"""Runs an audit: the config of its sweep, the sweep within a budget, and the sweep with canaries."""

from __future__ import annotations

import functools
import itertools
import math
import pathlib
import time
from collections.abc import Collection, Mapping
from typing import Any

from vfljax import plugins, store
from vfljax.attack_runs import cascade
from vfljax.attack_runs.bundles import Rejected
from vfljax.auditing import sentences, suite
from vfljax.auditing.suite import KNOWN
from vfljax.auditing.survey import AuditRequest, survey
from vfljax.errors import UserError, argument
from vfljax.report import decision, epsilon_lower_bounds
from vfljax.report.decision import Criterion
from vfljax.report.frames import read_frames
from vfljax.report.looks import number_of_look
from vfljax.report.next_command import remaining
from vfljax.report.sweep_answers import judge_stored
from vfljax.report.verdict_frame import verdict_frame
from vfljax.scheduling import running
from vfljax.scheduling.work import May, Outcome, Say, begin, work
from vfljax.store import Unit
from vfljax.store.units import ATTACK
from vfljax.sweep import train
from vfljax.sweep.grid import experiment_of, parse
from vfljax.sweep.plan import make_plan
from vfljax.sweep.progress import clock, heartbeat

READING_TABLE = "reading the table, and learning from each of its columns"


def config_of(
    request: AuditRequest, federation: str, folder: pathlib.Path, say: Say, first_seed: int = 0
) -> dict[str, Any]:
    """Surveys a table, and returns the config of the sweep that audits it.

    Args:
      request: the table and the parties.
      federation: a key of ``suite.FEDERATIONS``.
      folder: of the audit; what is stored there is continued, or refused if it is something else.
      say: is given each line of progress.
      first_seed: the first of the seeds.

    Raises:
      UserError: for a table that cannot be audited, and a folder of something else. Nothing is written.
    """
    header = store.header_of(folder)
    if header is not None:
        plugins.check_in_use(header, folder)
        if request.known:
            _refuse_other_known(header["config"], request.known, folder)
    say(READING_TABLE)
    with heartbeat(say, lambda: READING_TABLE):
        found = survey(request.table)
        base = suite.config(found, request, federation)
        base["first_seed"] = first_seed
        if request.table.label_range:
            base["data"]["label_range"] = request.table.label_range
        plan = make_plan(parse(base))
        if header is not None:
            store.refuse_another(folder, header, train.header(plan, ""))
            _refuse_other_known(header["config"], _most_known(base), folder)
        names, refused = suite.applicable(base, plan)
    fewer = [] if request.known else sentences.known_note(found.dataset, _most_known(base) or KNOWN)
    notes = (*sentences.table_notes(found), *fewer, *sentences.refused_note(refused))
    values = suite.defended({**base, "notes": notes}, names, plan.shape.num_classes)
    for line in sentences.preamble(found, values):
        say(line)
    return values


def within(
    end: float, values: Mapping[str, Any], folder: pathlib.Path, command: str, say: Say
) -> Outcome:
    """Trains and attacks what is not stored yet, and begins nothing after ``end`` of ``time.monotonic``."""

    def say_with_time(line: str) -> None:
        left = end - time.monotonic()
        say(f"{line} ({clock(left)} of the budget left)" if math.isfinite(left) else line)

    stages = [parse(stage) for stage in suite.stages(values)]
    begun = begin(parse(values), folder, command, say_with_time, stages)
    begun, header = begun._replace(rejected=rejecting(folder)), begun.header
    waves = suite.waves([*header["earlier"], header["config"]])
    given_up: dict[str, str] = {}
    for wave, most in itertools.product(range(max(waves) + 1), (cascade.CHEAP, math.inf)):
        may = _until(end, header, [stage for stage, of in enumerate(waves) if of <= wave], most)
        given_up |= work(begun, say_with_time, may).given_up
    outcome = running.exported(folder, Outcome(given_up), say_with_time)
    store.write_text(folder / "config.py", suite.config_file(values))
    sweep = store.load(folder)
    if not sweep.results.num_rows:
        outcome.check()
        what = " ended before anything was trained"
        raise UserError(("the ", argument("budget"), what), remedy="give more, such as 10m")
    if sweep.unfinished:
        left = remaining(judge_stored(sweep, experiment_of(sweep)))
        say(
            f"The time for this part is spent: {left}. The same command continues it, when called again."
        )
    return outcome


def _until(end: float, header: Mapping[str, Any], stages: Collection[int], most: float) -> May:
    """Returns which units may be begun before ``end``: those of some stages, and of attacks up to a cost."""

    def may(unit: Unit) -> bool:
        cost = header["attacks"][unit.of]["cost"] if unit.kind == ATTACK else 0
        return unit.stage in stages and cost <= most and time.monotonic() < end

    return may


def rejecting(folder: pathlib.Path) -> Rejected:
    """Returns the function that says on which points of an audit dear attacks are not run: those that are
    denied by how much the attacks leak that were run so far, at the limits that deny points. It judges once for
    each shards that are asked for, as all cheap attacks on these are done before the first dear one.

    Seeds of stages that are not complete count here, as they do not in an answer: a point on which dear attacks
    were not run is incomplete, so that it cannot be switched on, and the answer denies it anew or is open.

    Args:
      folder: of the audit.
    """

    @functools.cache
    def rejected(shards: tuple[str, ...]) -> frozenset[tuple[int, str]]:
        del shards
        sweep = store.load(folder)
        experiment = experiment_of(sweep)
        frames = read_frames(sweep, experiment)
        facts = frames.facts
        # as in an answer, each look spends half of what the one before did
        divisor = 2 ** number_of_look(frames, sweep.header, experiment.first_seed)
        level = decision.level(decision.DENYING, divisor)
        verdicts = verdict_frame(frames.rows, frames.trials, facts, level)
        return frozenset(
            (v["configuration"], v["panel"])
            for v in verdicts.to_dict("records")
            if v["known"] == facts.known and v["defenses"]
            if decision.denied(v, facts.goal) is Criterion.EXCESS
        )

    return rejected


def with_canaries(
    values: Mapping[str, Any], folder: pathlib.Path, command: str, say: Say
) -> Outcome:
    """Trains and attacks every defense that claims an epsilon with canaries, in a sweep of their own."""
    planted = suite.canaries(values, store.read_header(folder)["data"]["train"])
    if planted is None:
        say("no defense claims an epsilon, so there is none to audit")
        return Outcome({})
    return running.finish(parse(planted), folder / epsilon_lower_bounds.FOLDER, command, say)


def report(folder: pathlib.Path, say: Say, verbose: bool = False) -> str:
    """Writes the report, and returns it for a terminal; see ``running.report``."""
    with heartbeat(say, lambda: "writing the report"):
        return running.report(folder, verbose)


def _most_known(config: Mapping[str, Any]) -> int:
    """Returns the most labels that an attack of a config knows; 0 if none knows any."""
    return max((options.get("known", 0) for options in config["attacks"].values()), default=0)


def _refuse_other_known(stored: Mapping[str, Any], known: int, folder: pathlib.Path) -> None:
    """Raises UserError if the attackers of a stored audit's config know another number of labels."""
    before = _most_known(stored)
    if before != known:
        what = f" is {known}, and {folder} holds an audit with {before}"
        remedy = ("give that, or choose another ", argument("workdir"))
        raise UserError((argument("known"), what), remedy=remedy)
