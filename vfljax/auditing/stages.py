"""Runs the stages of an audit: undefended, pilot, audit, confirmed, canaries. Each is a sweep like any other.

    DIR/undefended/   the undefended federation under as many attacks as there is time for (``deadline``). It
                      shows how long attacks take. Attacks that are left out here are left out of all stages
    DIR/pilot/        every defense at every operating point of its row, on one seed, without attacks, to see
                      what each operating point costs. There is no pilot if time is short
    DIR/              the audit's own sweep and report: undefended and every defense, on all seeds, under all
                      attacks. A defense is audited around the operating point at which it begins to cost more
                      than is allowed, or without a pilot at two points between weak and strong
    DIR/confirmed/    if asked for: undefended and the recommended defenses on three fresh seeds, under all
                      attacks. Nothing was chosen on these seeds, so their verdict needs no correction
    DIR/canaries/     if asked for: defenses with a claimed epsilon, on one seed with label canaries
    DIR/config.py     the config of the audit's own sweep, for ``vfljax sweep``
    DIR/audit.json    the request, the decisions, and how long each stage took

Operating points are never chosen by leak, so the attacks of the audit influenced no choice. The same call
again continues an audit that was killed at any moment.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pathlib
import pprint
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vfljax import defenses, store
from vfljax.auditing import deadline, planning, sentences, suite
from vfljax.auditing.request import FRAME, JOURNAL, WORKDIR, Request
from vfljax.auditing.survey import survey
from vfljax.config import Goal
from vfljax.errors import UserError, shown, user_path
from vfljax.launching import running
from vfljax.launching.work import May, anything
from vfljax.report import fresh, lower_limits
from vfljax.report.judged import CONFIRMED
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import check_attacks, make_plan
from vfljax.sweep.progress import clock

DAY = 86_400.0  # seconds
CANARIES = 1000  # most training rows whose labels are coins; at most a fifth of all rows
CONFIG = '''"""What an audit trained and attacked; the same tables come from:

    vfljax sweep --config=config.py --workdir=NEW_DIR
"""

from vfljax.config import ordered


def get_config():
    return ordered(
{body}
    )
'''


def audit(
    request: Request,
    workdir: pathlib.Path,
    command: str,
    say: Callable[[str], None] = print,
    attacks: Mapping[str, Mapping[str, Any]] = suite.ATTACKS,
    defenses: tuple[str, ...] | None = None,
) -> pathlib.Path:
    """Runs the audit, or those parts that are not stored yet.

    Args:
      request: of the audit.
      workdir: the audit's folder; it holds a finished sweep afterwards.
      command: the command line, for the headers of the sweeps.
      say: is given each line of progress.
      attacks: the suite: options by name of an attack.
      defenses: names of defenses to try; None for all that apply.

    Returns:
      ``workdir``.

    Raises:
      UserError: if the request cannot be audited; nothing has been written then.
    """
    journal = Journal(workdir, request, command, say)
    table = survey(request)
    base = suite.config(request, table, attacks)
    plan = make_plan(parse(base))  # bad requests are refused before anything is written
    check_attacks(plan)
    applicable, refused = suite.applicable(base, plan, defenses)
    say(sentences.preamble(request, table, base, len(applicable)))
    if journal.grown and (folder := _set_aside(workdir, [*journal.times])):
        say(f"a larger budget: what was audited before is kept in {folder}")
    journal.keep()
    base = _undefended(journal, base)
    config = journal.stored.get("config")
    if config is None:
        late = sentences.late_attacks(journal.stored["attacks_left_out"])
        notes = [*sentences.table_notes(table), *sentences.refused_note(refused), *late]
        for note in late:
            say(note)
        config = _decision(journal, base, applicable, notes)
    body = pprint.pformat(dict(config), width=92, sort_dicts=False)  # literals only
    indented = "\n".join("        " + line for line in body.splitlines())
    store.write_text(workdir / "config.py", CONFIG.format(body=indented))
    journal.stage("audit", config, workdir)
    if request.confirm:
        _confirm(journal, config)
    if request.canaries:
        _plant(journal, config)
    audited, left_out = len(config["grid"]) - 1, journal.stored.get("left_out", [])
    say(sentences.ending(audited, left_out, journal.spent, request.budget))
    return workdir


def _set_aside(workdir: pathlib.Path, stages: Sequence[str]) -> pathlib.Path | None:
    """Moves all but ``stages`` and the request into a new folder. Returns it; None if nothing is moved."""
    earlier = [path.name for path in workdir.glob("earlier-*")]
    kept = {JOURNAL, FRAME, *stages, *earlier}
    paths = [path for path in sorted(workdir.iterdir()) if path.name not in kept]
    if not paths:
        return None
    folder = workdir / f"earlier-{1 + len(earlier)}"
    folder.mkdir()
    for path in paths:
        path.rename(folder / path.name)
    return folder


def _undefended(journal: Journal, base: dict[str, Any]) -> dict[str, Any]:
    """Trains and attacks the undefended federation. Returns ``base`` with the attacks that had time."""
    decided = journal.stored.get("attacks_left_out")
    left_out: set[str] = set(decided or ())
    left = deadline.SHARE * journal.request.budget - journal.spent
    end = time.monotonic() + left if decided is None else math.inf
    folder = journal.workdir / "undefended"
    journal.stage("undefended", base, folder, deadline.until(end, folder, left_out))
    journal.keep(attacks_left_out=sorted(left_out))
    return {**base, "attacks": {n: v for n, v in base["attacks"].items() if n not in left_out}}


def _decision(
    journal: Journal, base: dict[str, Any], applicable: list[str], notes: list[str]
) -> dict[str, Any]:
    """Returns the config of the audit's own sweep, after a pilot if there is time for it. The journal keeps
    the config, and the defenses for which there is no time."""
    request, undefended = journal.request, journal.times["undefended"]
    fewest = request.fewest_seeds or request.seeds
    if "tried" not in journal.stored:
        within = applicable, journal.left
        piloted = functools.partial(planning.pilot_defenses, *within, undefended)
        quick = functools.partial(planning.without_pilot, *within, undefended)
        seeds = planning.affordable_seeds(piloted, request.seeds, fewest)
        tried = piloted(seeds)
        if len(tried) < min(planning.ENOUGH, len(applicable)):
            tried, seeds = [], planning.affordable_seeds(quick, request.seeds, fewest)
        journal.keep(tried=tried, seeds=seeds)
    tried, seeds = journal.stored["tried"], journal.stored.get("seeds", request.seeds)
    allowed = None
    if tried:
        journal.stage("pilot", suite.pilot(base, tried), journal.workdir / "pilot")
        pilot = store.load(journal.workdir / "pilot")
        goal = Goal(max_cost=request.max_cost, keep_gain=request.keep_gain)
        costs, allowed = planning.costs(pilot, goal)
        chosen = planning.choose(costs, allowed, journal.left, journal.times, seeds)
    else:
        chosen = planning.without_pilot(applicable, journal.left, undefended, seeds)
    left_out = [name for name in applicable if name not in chosen]
    journal.say(sentences.chosen_lines(chosen, left_out))
    grid = {name: suite.method(name, values) for name, values in chosen.items()}
    notes = [*notes, *sentences.choice_notes(chosen, left_out, request, allowed, seeds)]
    config = {**base, "seeds": seeds, "notes": tuple(notes), "grid": {suite.UNDEFENDED: {}, **grid}}
    journal.keep(config=config, left_out=left_out)
    return config


def _confirm(journal: Journal, config: Mapping[str, Any]) -> None:
    """Trains and attacks the recommended defenses, and undefended, on fresh seeds."""
    fields = fresh.fields(journal.workdir)
    if fields is None:
        journal.say(fresh.NOTHING)
        return
    journal.stage("confirmed", {**config, **fields}, journal.workdir / CONFIRMED)


def _plant(journal: Journal, config: Mapping[str, Any]) -> None:
    """Trains and attacks every defense that claims an epsilon, at all its operating points, with canaries."""
    rows = {name: row for name, row in defenses.TABLE.items() if name in config["grid"]}
    claims = [n for n, row in rows.items() if row.remarks.epsilon(row.example, {}) is not None]
    count = min(CANARIES, store.load(journal.workdir).header["data"]["train"] // 5)
    fields = {"name": f"{config['name']}: canaries", "notes": (), "seeds": 1, "known_draws": 1}
    fields |= {"canaries": count, "grid": {name: config["grid"][name] for name in claims}}
    if claims:
        journal.stage("canaries", {**config, **fields}, journal.workdir / lower_limits.FOLDER)


class Journal:
    """``audit.json``: the request, and the decisions and times of the stages so far.

    Of a stage that was killed, the time until it last wrote a file counts as spent when the audit continues.

    Raises:
      UserError: if the folder holds something else, another audit, or a damaged journal.
    """

    def __init__(
        self,
        workdir: pathlib.Path,
        request: Request,
        command: str = "",
        say: Callable[[str], None] = print,
    ) -> None:
        self.workdir, self.command, self.say = workdir, command, say
        self.path, self.request, self.grown = workdir / JOURNAL, request, False
        # decisions are added when they are made: "attacks_left_out" for all stages; "tried" and
        # "seeds" for the pilot; "config", "left_out" for DIR itself
        self.stored: dict[str, Any] = {"request": request.stored(), "times": {}, "lost": 0.0}
        if workdir.exists() and not workdir.is_dir():
            raise UserError((WORKDIR, f"={shown(workdir)} is a file"), remedy="name a folder")
        if self.path.exists():
            self._continue(self._read())
        elif (workdir / "sweep.json").exists():
            remedy = ("choose another ", WORKDIR, ". Nothing was changed")
            raise UserError(f"{workdir} holds a sweep and no audit", remedy=remedy)

    def _continue(self, stored: dict[str, Any]) -> None:
        asked, before = self.stored["request"], stored["request"]
        changed = [
            f"{name}: {before.get(name)!r} -> {value!r}"
            for name, value in asked.items()
            if before.get(name) != value
            and not (name == "data" and user_path(before["data"]) == user_path(value))
            and name not in ("budget", "confirm", "canaries", "fewest_seeds")
        ]
        if changed:
            other = ", or ask for what it was begun with. Nothing was changed"
            raise UserError(
                f"{self.workdir} holds another audit ({'; '.join(changed[:3])})",
                remedy=("choose another ", WORKDIR, other),
            )
        short = stored.get("attacks_left_out") or stored.get("tried") == []
        self.grown = asked["budget"] > before["budget"] and bool(short or "config" in stored)
        if self.grown:  # the decisions are made again, with more time
            whole = ["undefended"] * (not stored.get("attacks_left_out"))
            times = {k: v for k, v in stored["times"].items() if k in whole}
            stored = {"request": before, "times": times, "lost": 0.0}
        before |= {name: asked[name] for name in ("confirm", "canaries")}
        before["budget"] = max(asked["budget"], before["budget"])
        self.request = dataclasses.replace(self.request, budget=before["budget"])
        self.stored = stored

    def _read(self) -> dict[str, Any]:
        try:
            stored = json.loads(self.path.read_text())
            times = {name: planning.Times(**t)._asdict() for name, t in stored["times"].items()}
            request = {**stored["request"], "budget": float(stored["request"]["budget"])}
            stored = {**stored, "request": request, "times": times, "lost": float(stored["lost"])}
            if not isinstance(stored.get("attacks_left_out", []), list):
                raise TypeError("attacks_left_out is no list")
            begun = stored.pop("begun", None)
            if begun is not None:  # a stage was killed
                written = [path.stat().st_mtime for path in self.workdir.rglob("*")]
                stored["lost"] += min(max([*written, begun["at"]]) - begun["at"], DAY)
            return stored
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            remedy = ("choose another ", WORKDIR, ", or remove that file and begin anew")
            raise UserError(f"{self.path} is damaged", remedy=remedy) from error

    @property
    def times(self) -> dict[str, planning.Times]:
        """How long each finished stage took."""
        return {name: planning.Times(**t) for name, t in self.stored["times"].items()}

    @property
    def spent(self) -> float:
        """Seconds of all stages, those that were killed included."""
        return self.stored["lost"] + sum(t.train + t.attack for t in self.times.values())

    @property
    def left(self) -> float:
        """Seconds of the budget that are neither spent nor kept for ``confirm`` and ``canaries``."""
        seeds = self.request.seeds
        more = self.request.confirm + self.request.canaries  # each takes about the same time
        kept = planning.confirming(self.times, seeds) if more else 0.0
        return self.request.budget - self.spent - more * kept

    def keep(self, **values: Any) -> None:
        """Adds decisions, and writes the journal."""
        self.stored |= values
        self.workdir.mkdir(parents=True, exist_ok=True)
        store.write_text(self.path, json.dumps(self.stored, indent=1))

    def stage(
        self, name: str, values: Mapping[str, Any], workdir: pathlib.Path, may: May = anything
    ) -> None:
        """Trains and attacks one sweep, unless it is finished, and stores how long it took.

        Args:
          name: of the stage; its time is stored when it is finished for the first time.
          values: the sweep's config.
          workdir: the sweep's folder.
          may: whether a unit may still be begun.
        """
        self.say(f"{name}: {clock(self.spent)} of {clock(self.request.budget)} spent")
        timed = name in self.stored["times"]
        if not timed:
            self.keep(begun={"stage": name, "at": time.time()})
        outcome = running.finish(parse(values), workdir, self.command, self.say, may=may)
        outcome.check()
        sweep = store.load(workdir)
        times = planning.Times(
            train=outcome.training,
            attack=outcome.attacking,
            attack_compiling=outcome.compiling,
            programs=len({shard["group"] for shard in sweep.header["shards"]}),
            trials=sweep.header["trials"],
            running=sum(sweep.results["seconds"].to_pylist()),
        )
        if not timed:
            del self.stored["begun"]
            self.stored["times"][name] = times._asdict()
            self.keep()
