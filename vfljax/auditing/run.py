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

import json
import pathlib
import pprint
import time
from collections.abc import Callable, Mapping
from typing import Any

from vfljax import store
from vfljax.attacking.run import attack_sweep
from vfljax.auditing import planning, suite
from vfljax.auditing.request import Request
from vfljax.auditing.table import Look, look
from vfljax.errors import UserError
from vfljax.sweep import grid, lanes
from vfljax.sweep.experiment import parse
from vfljax.sweep.plan import Plan
from vfljax.sweep.progress import clock
from vfljax.sweep.train import train_sweep

JOURNAL = "audit.json"
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
    say(described(request, seen))
    base = suite.config(request, seen, attacks)
    parse(
        {**base, "attacks": base["attacks"]}
    )  # what nobody can mean is refused before anything is written
    journal.open()
    plan = _stage(
        journal, "undefended", {**base, "notes": ()}, workdir / "undefended", command, say
    )
    shape = grid.DataShape(
        plan.dataset.num_classes,
        len(plan.splits[0].train),
        tuple(block.input for block in plan.blocks),
    )
    good, refused = suite.applicable(base, shape, defenses)
    final = journal.decided("config")
    if final is None:
        final = _decide(journal, base, good, refused, seen, workdir, command, say)
        journal.decide("config", final)
    _write_config(workdir, final)
    _stage(journal, "audit", final, workdir, command, say)
    store.export(workdir)
    return workdir


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
    left = request.budget - journal.spent
    tried = planning.pilot_defenses(good, left, undefended)
    notes = [*planning.notes_of(seen, refused)]
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
    say(planning.described(strengths, left_out))
    notes += planning.notes_on(strengths, left_out, request)
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
    began = time.monotonic()
    say(f"{name}: {clock(journal.spent)} of {clock(journal.request.budget)} spent")
    plan = train_sweep(parse(values), workdir, command, say)
    trained, compiled = time.monotonic(), lanes.compile_seconds()
    if values["attacks"]:
        attack_sweep(plan, workdir, say=say)
    done = time.monotonic()
    journal.took(
        name,
        planning.Times(
            train=trained - began,
            attack=done - trained,
            attack_compiling=lanes.compile_seconds() - compiled,
            lanes=sum(shard.block for shard in plan.shards),
            programs=len(plan.groups),
            settings=sum(len(group.settings) for group in plan.groups),
        ),
    )
    return plan


class Journal:
    """``audit.json``: the request, the decisions and the times of the stages, as far as there are any."""

    def __init__(self, workdir: pathlib.Path, request: Request) -> None:
        self.path, self.request = workdir / JOURNAL, request
        self._said: dict[str, Any] = {"request": request.stored(), "times": {}, "decided": {}}
        if not self.path.exists():
            if (workdir / "sweep.json").exists():
                raise UserError(
                    f"{workdir} holds a sweep and no audit: choose another --workdir. Nothing was changed."
                )
            return
        try:
            said = json.loads(self.path.read_text())
            times = {k: planning.Times(**v) for k, v in said["times"].items()}
            changed = [
                f"{name}: {said['request'].get(name)!r} -> {value!r}"
                for name, value in self._said["request"].items()
                if said["request"].get(name) != value
            ]
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UserError(
                f"{self.path} is damaged ({' '.join(str(error).split())[:120]}): choose another --workdir, "
                "or remove that file and begin anew."
            ) from error
        if changed:
            raise UserError(
                f"{workdir} holds another audit ({'; '.join(changed[:3])}): choose another --workdir, or ask "
                "for what it was begun with. Nothing was changed."
            )
        self._said = {**said, "times": {k: v._asdict() for k, v in times.items()}}

    @property
    def times(self) -> dict[str, planning.Times]:
        """Of each finished stage, by its name."""
        return {name: planning.Times(**one) for name, one in self._said["times"].items()}

    @property
    def spent(self) -> float:
        """Seconds of all finished stages."""
        return sum(one.train + one.attack for one in self.times.values())

    def decided(self, name: str) -> Any:
        """A decision, None where it was not made."""
        return self._said["decided"].get(name)

    def open(self) -> None:
        """Write the request down."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(self.path, json.dumps(self._said, indent=1))

    def decide(self, name: str, value: Any) -> None:
        """Write a decision down."""
        self._said["decided"][name] = json.loads(json.dumps(value))
        self.open()

    def took(self, name: str, times: planning.Times) -> None:
        """Write down how long a stage took; a stage that was found finished keeps its time."""
        if name not in self._said["times"]:
            self._said["times"][name] = times._asdict()
            self.open()


def _write_config(workdir: pathlib.Path, values: Mapping[str, Any]) -> None:
    """The config of the last stage as a file for ``launch.sweep``; it holds literals only."""
    body = pprint.pformat(dict(values), width=92, sort_dicts=False)
    indented = "\n".join("        " + line for line in body.splitlines())
    path = workdir / "config.py"
    title = "What an audit trained and attacked; the same tables come from:"
    store.write_text(path, CONFIG.format(title=title, path=path.name, body=indented))


def described(request: Request, seen: Look) -> str:
    """What was seen, and what is going to be done, for a terminal."""
    dataset = seen.dataset
    counts = ", ".join(
        f"{name} {count:,} ({count / len(dataset.labels):.1%})"
        for name, count in planning.class_counts(dataset)[:6]
    )
    lines = [
        f"{dataset.name}: {len(dataset.labels):,} rows, {dataset.num_classes} classes: {counts}"
        + (", ..." if dataset.num_classes > 6 else ""),
        *(
            f"  {party}: {len(some)} columns"
            + (", and the labels" if party == request.label_party else "")
            for party, some in seen.owners.items()
        ),
        f"  attackers: {', '.join(request.attacking)}; federation: {request.federation}",
        *(f"  {note}" for note in planning.table_notes(seen)),
        *(f"  note: {note}" for note in dataset.notes),
        f"The audit trains and attacks the undefended federation, tries {len(planning.every())} defenses in a "
        f"pilot, and audits those that apply on {request.seeds} seeds, in about "
        f"{clock(request.budget)} (--budget).",
    ]
    return "\n".join(lines)
