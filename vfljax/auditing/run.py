"""Runs an audit: the config of its sweep, the sweep within a budget, and the sweep with canaries."""

from __future__ import annotations

import math
import pathlib
import time
from collections.abc import Mapping
from typing import Any

from vfljax import plugins, store
from vfljax.auditing import sentences, suite
from vfljax.auditing.suite import KNOWN
from vfljax.auditing.survey import AuditRequest, survey
from vfljax.errors import UserError, argument
from vfljax.launching import running
from vfljax.launching.work import Outcome, Say
from vfljax.report import lower_limits
from vfljax.report.judged import judged
from vfljax.report.settle import remaining
from vfljax.store import Unit
from vfljax.sweep import train
from vfljax.sweep.grid import experiment_of, parse
from vfljax.sweep.plan import make_plan
from vfljax.sweep.progress import clock, heartbeat

READING = "reading the table, and learning from each of its columns"


def config_of(
    asked: AuditRequest, federation: str, folder: pathlib.Path, say: Say, first_seed: int = 0
) -> dict[str, Any]:
    """Surveys a table, and returns the config of the sweep that audits it.

    Args:
      asked: the table and the parties.
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
    say(READING)
    with heartbeat(say, lambda: READING):
        found = survey(asked.data, asked.label, asked.parties, asked.options)
        attackers = asked.label_party, asked.attackers, federation
        base = suite.config(found, *attackers, asked.known, asked.seeds, asked.goal)
        base["first_seed"] = first_seed
        plan = make_plan(parse(base))
        if header is not None:
            store.refuse_another(folder, header, train.header(plan, ""))
            _refuse_other_known(header["config"], base, folder)
        names, refused = suite.applicable(base, plan)
    known = max((o["known"] for o in base["attacks"].values() if "known" in o), default=KNOWN)
    fewer = [] if asked.known else sentences.known_note(found.dataset, known)
    notes = (*sentences.table_notes(found), *fewer, *sentences.refused_note(refused))
    values = suite.defended({**base, "notes": notes}, names)
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

    def may(unit: Unit) -> bool:
        del unit  # of all kinds alike
        return time.monotonic() < end

    stages = [parse(stage) for stage in suite.stages(values)]
    outcome = running.finish(parse(values), folder, command, say_with_time, may=may, stages=stages)
    store.write_text(folder / "config.py", suite.config_file(values))
    sweep = store.load(folder)
    if not sweep.results.num_rows:
        outcome.check()
        what = " ended before anything was trained"
        raise UserError(("the ", argument("budget"), what), remedy="give more, such as 10m")
    if sweep.unfinished:
        left = remaining(judged(sweep, experiment_of(sweep)))
        say(f"The budget of this part is spent: {left}. The same call goes on.")
    return outcome


def with_canaries(
    values: Mapping[str, Any], folder: pathlib.Path, command: str, say: Say
) -> Outcome:
    """Trains and attacks every defense that claims an epsilon with canaries, in a sweep of their own."""
    planted = suite.canaries(values, store.read_header(folder)["data"]["train"])
    if planted is None:
        say("no defense claims an epsilon, so there is none to audit")
        return Outcome({})
    return running.finish(parse(planted), folder / lower_limits.FOLDER, command, say)


def report(folder: pathlib.Path, say: Say, verbose: bool = False) -> str:
    """Writes the report, and returns it for a terminal; see ``running.report``."""
    with heartbeat(say, lambda: "writing the report"):
        return running.report(folder, verbose)


def _refuse_other_known(
    stored: Mapping[str, Any], config: Mapping[str, Any], folder: pathlib.Path
) -> None:
    """Raises UserError if the attackers of a stored audit's config know another number of labels."""
    before, known = (
        max((options.get("known", 0) for options in of["attacks"].values()), default=0)
        for of in (stored, config)
    )
    if before != known:
        what = f" is {known}, and {folder} holds an audit with {before}"
        remedy = ("give that, or choose another ", argument("workdir"))
        raise UserError((argument("known"), what), remedy=remedy)
