"""An audit, stage by stage: look, undefended, pilot, audit; each stage is a sweep like any other.

    DIR/undefended/   the undefended federation under the whole suite: what leaks, and what attacks cost
    DIR/pilot/        every defense at every strength of its row, one seed, no attack: what defenses cost
    DIR/              undefended and every defense around the strength at which it begins to cost more than
                      was allowed, on all seeds, under the whole suite: the audit's own sweep and report
    DIR/config.py     the config of that sweep, for ``launch.sweep``
    DIR/audit.json    what was asked, what was decided, and how long each stage took

Strengths are chosen by what they cost, never by what leaks: the audit's figures are on attacks that chose
nothing. How many strengths and defenses fit is decided from the measured times of the first two stages. The
same call again continues one that was killed, at any moment.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import pprint
import time
from collections.abc import Callable, Mapping
from typing import Any

from vfljax import store
from vfljax.attacking.run import attack_sweep
from vfljax.auditing import planning, sentences, suite
from vfljax.auditing.request import WORKDIR, Request
from vfljax.auditing.survey import Look, look
from vfljax.errors import UserError
from vfljax.sweep import programs, serving
from vfljax.sweep.experiment import parse
from vfljax.sweep.plan import Plan, make_plan
from vfljax.sweep.progress import clock
from vfljax.sweep.train import train_sweep

JOURNAL = "audit.json"
FRAME = "table.parquet"  # what ``vfljax.audit`` writes a data frame to
DAY = 86_400.0  # seconds
CONFIG = '''"""{title}

    python -m launch.sweep --config={path} --workdir=NEW_DIR
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
    """Run the audit, or what is left of it; returns ``workdir``, which then holds a finished sweep.

    ``attacks`` is the suite and ``defenses`` are those to try (None: all that apply).
    """
    journal = Journal(workdir, request)
    seen = look(request)
    base = suite.config(request, seen, attacks)
    plan = make_plan(parse(base))  # what cannot be meant is refused before anything is written
    serving.check(plan)
    good, refused = suite.applicable(base, suite.shape_of(plan), defenses)
    say(sentences.preamble(request, seen, base, len(good)))
    if journal.grown:
        for folder in _set_aside(workdir):
            say(f"a larger budget: what was audited before is kept in {folder}")
    journal.open()
    _stage(journal, "undefended", base, workdir / "undefended", command, say)
    final = journal.decided
    if final is None:
        final = _decide(journal, base, good, refused, seen, workdir, command, say)
        journal.decide(final)
    _write_config(workdir, final)
    _stage(journal, "audit", final, workdir, command, say)
    store.export(workdir)
    say(sentences.ending(final, journal.spent, request.budget))
    return workdir


def _set_aside(workdir: pathlib.Path) -> list[pathlib.Path]:
    """Move the pilot and the audit's own sweep into a folder of their own; the undefended stage stays."""
    number = 1 + sum(1 for path in workdir.glob("earlier-*") if path.is_dir())
    folder = workdir / f"earlier-{number}"
    names = [
        path
        for path in sorted(workdir.iterdir())
        if path.name not in (JOURNAL, FRAME, "undefended") and not path.name.startswith("earlier-")
    ]
    if not names:
        return []
    folder.mkdir()
    for path in names:
        path.rename(folder / path.name)
    return [folder]


def _decide(
    journal: Journal,
    base: dict[str, Any],
    good: list[str],
    refused: Mapping[str, str],
    seen: Look,
    workdir: pathlib.Path,
    command: str,
    say: Say,
) -> dict[str, Any]:
    """The config of the last stage: which strengths of which defenses there is time for."""
    request, undefended = journal.request, journal.times["undefended"]
    tried = journal.tried
    if tried is None:
        left = request.budget - journal.spent
        tried = planning.pilot_defenses(good, left, undefended, request.seeds)
        journal.try_these(tried)
    notes = sentences.notes_of(seen, refused)
    pilot: dict[str, list[planning.Cost]] = {}
    if tried:
        arms = {name: suite.arm(name, planning.values_of(name)) for name in tried}
        values = {
            **base,
            "name": f"{base['name']}: pilot",
            "seeds": 1,
            "federations": [f for f in base["federations"] if f != "malicious"],
            "grid": {suite.UNDEFENDED: {}, **arms},
            "attacks": {},
        }
        _stage(journal, "pilot", values, workdir / "pilot", command, say)
        pilot = planning.costs(store.load(workdir / "pilot"))
    chosen, without = planning.choose(
        pilot,
        request.max_cost,
        request.budget - journal.spent,
        journal.times,
        request.seeds,
    )
    left_out = [*[name for name in good if name not in tried], *without]
    strengths = {name: list(values) for name, values in chosen.items()}
    say(sentences.chosen(strengths, left_out))
    notes += sentences.notes_on(strengths, left_out, request)
    return {
        **base,
        "notes": tuple(notes),
        "grid": {
            suite.UNDEFENDED: {},
            **{name: suite.arm(name, values) for name, values in chosen.items()},
        },
    }


def _stage(
    journal: Journal,
    name: str,
    values: Mapping[str, Any],
    workdir: pathlib.Path,
    command: str,
    say: Say,
) -> Plan:
    """Train and attack one sweep, unless it is there; how long it took is written down."""
    say(f"{name}: {clock(journal.spent)} of {clock(journal.request.budget)} spent")
    journal.begin(name)
    began = time.monotonic()
    plan = train_sweep(parse(values), workdir, command, say)
    trained, compiled = time.monotonic(), programs.compile_seconds()
    if values["attacks"]:
        attack_sweep(plan, workdir, say=say)
    done = time.monotonic()
    journal.took(
        name,
        planning.Times(
            train=trained - began,
            attack=done - trained,
            attack_compiling=programs.compile_seconds() - compiled,
            programs=len(plan.groups),
            settings=sum(len(group.trials) for group in plan.groups),
            running=sum(store.load(workdir).results["seconds"].to_pylist()),
        ),
    )
    return plan


class Journal:
    """``audit.json``: the request, the decision and the times of the stages, as far as there are any.

    A stage that was killed has a beginning and no time: what it had spent until it last wrote a file is
    counted when it is gone on with.
    """

    def __init__(self, workdir: pathlib.Path, request: Request) -> None:
        self.path, self.request, self.grown = workdir / JOURNAL, request, False
        self._said: dict[str, Any] = {"request": request.stored(), "times": {}, "lost": 0.0}
        if workdir.exists() and not workdir.is_dir():
            raise UserError((WORKDIR, f"={workdir} is a file"), remedy="name a folder")
        if not self.path.exists():
            if (workdir / "sweep.json").exists():
                remedy = ("choose another ", WORKDIR, ". Nothing was changed")
                raise UserError(f"{workdir} holds a sweep and no audit", remedy=remedy)
            return
        said = self._read()
        changed = [
            f"{name}: {said['request'].get(name)!r} -> {value!r}"
            for name, value in self._said["request"].items()
            if said["request"].get(name) != value and name != "budget"
        ]
        if changed:
            raise UserError(
                f"{workdir} holds another audit ({'; '.join(changed[:3])})",
                remedy=(
                    *("choose another ", WORKDIR),
                    ", or ask for what it was begun with. Nothing was changed",
                ),
            )
        self.grown = request.budget > said["request"]["budget"] and "config" in said
        if self.grown:  # the decisions are made again, with more time
            said = {k: v for k, v in said.items() if k not in ("config", "tried")}
            said["times"] = {k: v for k, v in said["times"].items() if k == "undefended"}
            said["lost"] = 0.0
        budget = max(request.budget, said["request"]["budget"])
        said["request"]["budget"] = budget
        self.request = dataclasses.replace(request, budget=budget)
        self._said = said

    def _read(self) -> dict[str, Any]:
        try:
            said = json.loads(self.path.read_text())
            times = {k: planning.Times(**v)._asdict() for k, v in said["times"].items()}
            said = {**said, "times": times, "lost": float(said["lost"])}
            said["request"] = {**said["request"], "budget": float(said["request"]["budget"])}
            begun = said.pop("begun", None)
            if begun is not None:  # killed on its way
                last = max(_last_written(self.path.parent), begun["at"])
                said["lost"] += min(last - begun["at"], DAY)
            return said
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UserError(
                f"{self.path} is damaged",
                remedy=("choose another ", WORKDIR, ", or remove that file and begin anew"),
            ) from error

    @property
    def times(self) -> dict[str, planning.Times]:
        """Of each finished stage, by its name."""
        return {name: planning.Times(**one) for name, one in self._said["times"].items()}

    @property
    def spent(self) -> float:
        """Seconds of all stages, those that were killed included."""
        return self._said["lost"] + sum(one.train + one.attack for one in self.times.values())

    @property
    def decided(self) -> Any:
        """The config of the last stage, None where it was not decided."""
        return self._said.get("config")

    @property
    def tried(self) -> list[str] | None:
        """The defenses of the pilot, None where they were not chosen."""
        return self._said.get("tried")

    def try_these(self, names: list[str]) -> None:
        """Write the defenses of the pilot down."""
        self._said["tried"] = names
        self.open()

    def open(self) -> None:
        """Write down what is known."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(self.path, json.dumps(self._said, indent=1))

    def decide(self, config: Any) -> None:
        """Write the config of the last stage down."""
        self._said["config"] = json.loads(json.dumps(config))
        self.open()

    def begin(self, name: str) -> None:
        """Write down that a stage begins now, unless it has ended before."""
        if name not in self._said["times"]:
            self._said["begun"] = {"stage": name, "at": time.time()}
            self.open()

    def took(self, name: str, times: planning.Times) -> None:
        """Write down how long a stage took; a stage that was found finished keeps its time."""
        self._said.pop("begun", None)
        if name not in self._said["times"]:
            self._said["times"][name] = times._asdict()
            self.open()


def _last_written(folder: pathlib.Path) -> float:
    """When anything in the folder was last written, in seconds since 1970."""
    return max((path.stat().st_mtime for path in folder.rglob("*")), default=0.0)


def _write_config(workdir: pathlib.Path, values: Mapping[str, Any]) -> None:
    """The config of the last stage as a file for ``launch.sweep``; it holds literals only."""
    body = pprint.pformat(dict(values), width=92, sort_dicts=False)
    indented = "\n".join("        " + line for line in body.splitlines())
    path = workdir / "config.py"
    title = "What an audit trained and attacked; the same tables come from:"
    store.write_text(path, CONFIG.format(title=title, path=path.name, body=indented))
