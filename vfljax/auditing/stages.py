"""The stages of an audit: undefended, pilot, audit. Each is a sweep like any other.

    DIR/undefended/   the undefended federation under all attacks: what leaks, and how long attacks take
    DIR/pilot/        every defense at every operating point of its row, one seed, no attack: what it costs
    DIR/              undefended and every defense around the operating point at which it begins to cost more
                      than was allowed, on all seeds, under all attacks: the audit's own sweep and report
    DIR/config.py     the config of that sweep, for ``vfljax sweep``
    DIR/audit.json    what was asked, what was decided, and how long each stage took

Operating points are chosen by cost and never by leak, so the audit's figures are of attacks that chose
nothing. The same call again continues an audit that was killed at any moment.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import pprint
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from vfljax import store
from vfljax.attacking.run import attack_sweep
from vfljax.auditing import planning, sentences, suite
from vfljax.auditing.request import WORKDIR, Request
from vfljax.auditing.survey import survey
from vfljax.errors import UserError
from vfljax.sweep import programs, serving
from vfljax.sweep.experiment import parse
from vfljax.sweep.plan import make_plan
from vfljax.sweep.progress import clock
from vfljax.sweep.records import Goal
from vfljax.sweep.train import train_sweep
from vfljax.types import MALICIOUS

JOURNAL = "audit.json"
FRAME = "table.parquet"  # what ``vfljax.audit`` writes a data frame to
DAY = 86_400.0  # seconds
CONFIG = '''"""{title}

    vfljax sweep --config={path} --workdir=NEW_DIR
"""

from vfljax.config import ordered


def get_config():
    return ordered(
{body}
    )
'''

Say = Callable[[str], None]


def audit(
    request: Request,
    workdir: pathlib.Path,
    command: str,
    say: Say = print,
    attacks: Mapping[str, Mapping[str, Any]] = suite.ATTACKS,
    defenses: tuple[str, ...] | None = None,
) -> pathlib.Path:
    """Runs the audit, or what is left of it.

    Args:
      request: what is asked.
      workdir: the audit's folder; it holds a finished sweep afterwards.
      command: the command line, for the headers of the sweeps.
      say: is given each line of progress.
      attacks: the suite, options by name.
      defenses: those to try; None for all that apply.

    Returns:
      ``workdir``.

    Raises:
      UserError: for what cannot be audited; nothing has been written then.
    """
    journal = Journal(workdir, request)
    table = survey(request)
    base = suite.config(request, table, attacks)
    plan = make_plan(parse(base))  # what nobody can mean is refused before anything is written
    serving.check(plan)
    applicable, refused = suite.applicable(base, suite.shape_of(plan), defenses)
    say(sentences.preamble(request, table, base, len(applicable)))
    if journal.grown and (folder := _set_aside(workdir)):
        say(f"a larger budget: what was audited before is kept in {folder}")
    journal.save()
    run = Stages(journal, workdir, command, say)
    run.stage("undefended", base, workdir / "undefended")
    config = journal.config
    if config is None:
        notes = [*sentences.table_notes(table), *sentences.refused_note(refused)]
        config, left_out = _decision(run, base, applicable, notes)
        journal.decide(config, left_out)
    _write_config(workdir, config)
    run.stage("audit", config, workdir)
    store.export(workdir)
    audited = len(config["grid"]) - 1
    say(sentences.ending(audited, journal.left_out, journal.spent, request.budget))
    return workdir


def _set_aside(workdir: pathlib.Path) -> pathlib.Path | None:
    """Moves the pilot and the audit's own sweep into a folder of their own, if there are any."""
    kept = {JOURNAL, FRAME, "undefended", *(path.name for path in workdir.glob("earlier-*"))}
    paths = [path for path in sorted(workdir.iterdir()) if path.name not in kept]
    if not paths:
        return None
    folder = workdir / f"earlier-{1 + len(list(workdir.glob('earlier-*')))}"
    folder.mkdir()
    for path in paths:
        path.rename(folder / path.name)
    return folder


class Stages(NamedTuple):
    """What all stages of one audit share."""

    journal: Journal
    workdir: pathlib.Path
    command: str
    say: Say

    def stage(self, name: str, values: Mapping[str, Any], workdir: pathlib.Path) -> None:
        """Trains and attacks one sweep, unless it is finished, and writes down how long it took."""
        journal = self.journal
        self.say(f"{name}: {clock(journal.spent)} of {clock(journal.request.budget)} spent")
        journal.begin(name)
        began = time.monotonic()
        plan = train_sweep(parse(values), workdir, self.command, self.say)
        trained, compiled = time.monotonic(), programs.compile_seconds()
        if values["attacks"]:
            attack_sweep(plan, workdir, say=self.say)
        times = planning.Times(
            train=trained - began,
            attack=time.monotonic() - trained,
            attack_compiling=programs.compile_seconds() - compiled,
            programs=len(plan.groups),
            trials=sum(len(group.trials) for group in plan.groups),
            running=sum(store.load(workdir).results["seconds"].to_pylist()),
        )
        journal.finish(name, times)


def _decision(
    run: Stages, base: dict[str, Any], applicable: list[str], notes: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """The config of the last stage, and the defenses that there is no time for."""
    journal = run.journal
    request, undefended = journal.request, journal.times["undefended"]
    if journal.tried is None:
        left = request.budget - journal.spent
        journal.try_defenses(planning.pilot_defenses(applicable, left, undefended, request.seeds))
    tried = journal.tried or []
    costs: dict[str, list[planning.Cost]] = {}
    if tried:
        methods = {name: suite.method(name, planning.values_of(name)) for name in tried}
        values = {
            **base,
            "name": f"{base['name']}: pilot",
            "seeds": 1,
            "federations": [f for f in base["federations"] if f != MALICIOUS],
            "grid": {suite.UNDEFENDED: {}, **methods},
            "attacks": {},
        }
        run.stage("pilot", values, run.workdir / "pilot")
        costs = planning.costs(store.load(run.workdir / "pilot"))
    pilot = store.load(run.workdir / "pilot") if tried else None
    allowed = planning.allowed(pilot, Goal(max_cost=request.max_cost, keep_gain=request.keep_gain))
    left = request.budget - journal.spent
    chosen, without = planning.choose(costs, allowed, left, journal.times, request.seeds)
    left_out = [*(name for name in applicable if name not in tried), *without]
    run.say(sentences.chosen_lines(chosen, left_out))
    grid = {name: suite.method(name, values) for name, values in chosen.items()}
    notes = [*notes, *sentences.choice_notes(chosen, left_out, request, allowed)]
    return {**base, "notes": tuple(notes), "grid": {suite.UNDEFENDED: {}, **grid}}, left_out


class Journal:
    """``audit.json``: the request, the decisions and the times of the stages, as far as there are any.

    A stage that was killed has a beginning and no time: what it had spent until it last wrote a file is
    counted when the audit is continued.

    Raises:
      UserError: if the folder holds something else, another audit, or a damaged journal.
    """

    def __init__(self, workdir: pathlib.Path, request: Request) -> None:
        self.path, self.request, self.grown = workdir / JOURNAL, request, False
        self._stored: dict[str, Any] = {"request": request.stored(), "times": {}, "lost": 0.0}
        if workdir.exists() and not workdir.is_dir():
            raise UserError((WORKDIR, f"={workdir} is a file"), remedy="name a folder")
        if self.path.exists():
            self._continue(self._read())
        elif (workdir / "sweep.json").exists():
            remedy = ("choose another ", WORKDIR, ". Nothing was changed")
            raise UserError(f"{workdir} holds a sweep and no audit", remedy=remedy)

    def _continue(self, stored: dict[str, Any]) -> None:
        asked, before = self._stored["request"], stored["request"]
        changed = [
            f"{name}: {before.get(name)!r} -> {value!r}"
            for name, value in asked.items()
            if before.get(name) != value and name != "budget"
        ]
        if changed:
            other = ", or ask for what it was begun with. Nothing was changed"
            raise UserError(
                f"{self.path.parent} holds another audit ({'; '.join(changed[:3])})",
                remedy=("choose another ", WORKDIR, other),
            )
        self.grown = asked["budget"] > before["budget"] and "config" in stored
        if self.grown:  # the decisions are made again, with more time
            times = {k: v for k, v in stored["times"].items() if k == "undefended"}
            stored = {"request": before, "times": times, "lost": 0.0}
        before["budget"] = max(asked["budget"], before["budget"])
        self.request = dataclasses.replace(self.request, budget=before["budget"])
        self._stored = stored

    def _read(self) -> dict[str, Any]:
        try:
            stored = json.loads(self.path.read_text())
            times = {name: planning.Times(**t)._asdict() for name, t in stored["times"].items()}
            request = {**stored["request"], "budget": float(stored["request"]["budget"])}
            stored = {**stored, "request": request, "times": times, "lost": float(stored["lost"])}
            begun = stored.pop("begun", None)
            if begun is not None:  # a stage was killed
                last = max(_last_written(self.path.parent), begun["at"])
                stored["lost"] += min(last - begun["at"], DAY)
            return stored
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            remedy = ("choose another ", WORKDIR, ", or remove that file and begin anew")
            raise UserError(f"{self.path} is damaged", remedy=remedy) from error

    @property
    def times(self) -> dict[str, planning.Times]:
        """How long each finished stage took."""
        return {name: planning.Times(**t) for name, t in self._stored["times"].items()}

    @property
    def spent(self) -> float:
        """Seconds of all stages, those that were killed included."""
        return self._stored["lost"] + sum(t.train + t.attack for t in self.times.values())

    @property
    def config(self) -> Any:
        """The config of the last stage; None if it was not decided."""
        return self._stored.get("config")

    @property
    def left_out(self) -> list[str]:
        """The defenses that there was no time for."""
        return self._stored.get("left_out", [])

    @property
    def tried(self) -> list[str] | None:
        """The defenses of the pilot; None if they were not chosen."""
        return self._stored.get("tried")

    def save(self) -> None:
        """Writes the journal."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(self.path, json.dumps(self._stored, indent=1))

    def try_defenses(self, names: list[str]) -> None:
        """Stores the defenses of the pilot."""
        self._stored["tried"] = names
        self.save()

    def decide(self, config: Any, left_out: list[str]) -> None:
        """Stores the config of the last stage, and the defenses that it has no time for."""
        self._stored |= {"config": json.loads(json.dumps(config)), "left_out": left_out}
        self.save()

    def begin(self, name: str) -> None:
        """Stores that a stage begins now, unless it has ended before."""
        if name not in self._stored["times"]:
            self._stored["begun"] = {"stage": name, "at": time.time()}
            self.save()

    def finish(self, name: str, times: planning.Times) -> None:
        """Stores how long a stage took; a stage that was finished before keeps its time."""
        self._stored.pop("begun", None)
        if name not in self._stored["times"]:
            self._stored["times"][name] = times._asdict()
            self.save()


def _last_written(folder: pathlib.Path) -> float:
    """When anything in the folder was last written, in seconds since 1970."""
    return max((path.stat().st_mtime for path in folder.rglob("*")), default=0.0)


def _write_config(workdir: pathlib.Path, values: Mapping[str, Any]) -> None:
    """The config of the last stage as a file for ``vfljax sweep``; it holds literals only."""
    body = pprint.pformat(dict(values), width=92, sort_dicts=False)
    indented = "\n".join("        " + line for line in body.splitlines())
    path = workdir / "config.py"
    title = "What an audit trained and attacked; the same tables come from:"
    store.write_text(path, CONFIG.format(title=title, path=path.name, body=indented))
