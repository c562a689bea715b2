"""What would settle what is open on a panel: commands that work as they stand."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from vfljax import defenses
from vfljax.errors import short_path
from vfljax.report.costs import Cost
from vfljax.report.decision import Panel, Row, is_open
from vfljax.report.judged import Judged
from vfljax.report.limits import FEWEST_SEEDS, MOST_SEEDS, Limits, deciding_seeds, of_row, projected
from vfljax.report.points import members_of
from vfljax.report.verdicts import EXCESS, Verdict
from vfljax.report.words import listed

SEEDS = 5
"""The seeds that are proposed if a sweep has too few for any verdict."""

NAMED = 4  # configurations in one sentence at most


class Command(NamedTuple):
    """A command, and what it would settle."""

    why: str
    command: str


def settle(p: Panel) -> Iterator[Command]:
    """Yields what is open with the command that would settle it."""
    if p.bare is None:
        return
    if p.best is not None and p.fresh is None and not _of_recordings(p.judged):
        why = f"This judges {p.best['label']} again, on {FEWEST_SEEDS} seeds on which nothing was chosen"
        yield Command(why, _confirming(p.judged))
    seeds, what = _open_seeds(p)
    if seeds:
        command = more_seeds(p.judged, seeds)
        if command:
            yield Command(f"{seeds} seeds would decide {what} if means and spreads stay", command)
    elif what:
        yield Command(
            f"{MOST_SEEDS} seeds are not likely to decide {what}: try other strengths or attacks",
            on_sweep(p.judged, "report"),
        )
    unknown = [
        v for v in p.rows if not v["known_by"] and Verdict(v["verdict"]).helps and v["chosen"]
    ]
    names = {
        knower.attack
        for v in unknown
        for name in members_of(v["defenses"])
        for knower in defenses.TABLE[name].known_by.get(v["panel"], ())[:1]
        if knower.attack  # of a recording there may be none
    }
    if names:
        why = f"This attacks {listed([v['label'] for v in unknown], NAMED)} by who knows it"
        yield Command(why, f"{on_sweep(p.judged, 'attack')} --attacks={','.join(sorted(names))}")


def _open_seeds(p: Panel) -> tuple[int, str]:
    """Returns the fewest seeds that would decide what is open, 0 if none do, and what that is; "" for none."""
    assert p.bare is not None
    if p.seeds < FEWEST_SEEDS:
        return SEEDS, "the verdicts"
    if p.best is not None:
        if p.best["cost"] != Cost.UNCLEAR:
            return 0, ""
        return _whole(p.best["cost_seeds"]), f"what {p.best['label']} costs"
    if p.bare["undefended_e_lower"] <= EXCESS:
        more = np.arange(FEWEST_SEEDS, MOST_SEEDS + 1)
        found = Limits(*map(np.array, (p.bare["seeds"], *of_row(p.bare, "undefended_e"))))
        lower, upper = projected(found, more)
        decided = ((lower > EXCESS) | (upper < EXCESS)) & (more > p.bare["seeds"])
        return _whole(float(deciding_seeds(decided, more))), "whether there is anything to protect"
    undecided = [v for v in p.rows if is_open(v, p.facts) and v["known_by"]]
    if not undecided:
        return 0, ""
    needed = {v["label"]: _needed(v) for v in undecided}
    label = min(needed, key=lambda name: needed[name] or math.inf)
    return needed[label], f"whether {label} helps" if needed[label] else "whether a defense helps"


def _needed(v: Row) -> int:
    """Returns the seeds that would decide a point's verdict and cost; 0 if none do."""
    still_open = v["verdict"] in (Verdict.CANNOT_SAY, Verdict.UNCLEAR)
    needed = [v["verdict_seeds"]] * still_open + [v["cost_seeds"]] * (v["cost"] == Cost.UNCLEAR)
    return 0 if any(map(math.isnan, needed)) else _whole(max(needed, default=math.nan))


def _whole(seeds: float) -> int:
    return 0 if math.isnan(seeds) else int(seeds)


def more_seeds(judged: Judged, seeds: int) -> str:
    """Returns the command that trains the same sweep with more seeds, in a folder of its own; "" for a recorded
    exchange, of which more runs are needed.

    The stored command is repeated if it names a config. An audit has written one of its own sweep. From
    Python, the config is read from the stored sweep.
    """
    sweep = judged.sweep
    if _of_recordings(judged):
        return ""
    folder, given = str(short_path(sweep.workdir)), _flags(sweep.header["command"])
    target = f"{folder}-{seeds}-seeds"
    config, changes = given.get("config", ""), []
    if (sweep.workdir / "config.py").exists():
        config = f"{folder}/config.py"
    elif not config:
        changed = f'{{**vfljax.load("{folder}").config, "seeds": {seeds}}}'
        return f'vfljax.run_sweep({changed}, "{target}")'
    else:
        fields = [name for name in given if name.startswith("config.") and name != "config.seeds"]
        changes = [f"--{name}={given[name]}" for name in fields]
    words = [f"--config={config}", *changes, f"--config.seeds={seeds}", f"--workdir={target}"]
    return shlex.join(["vfljax", "sweep", *words, *_plugins(given)])


def _of_recordings(judged: Judged) -> bool:
    """Returns whether nothing can be trained, because the federation is recorded."""
    return judged.experiment.data.name == "wire"


def _confirming(judged: Judged) -> str:
    """Returns the command that judges what is recommended on fresh seeds. An audit whose budget is spent is
    asked again, because ``vfljax sweep`` would first train what it has not reached, without a budget."""
    command = judged.sweep.header["command"]
    if judged.sweep.unfinished and "parties" in _flags(command):
        return f"{command} --confirm"
    return f"{on_sweep(judged, 'sweep')} --confirm"


def on_sweep(judged: Judged, command: str) -> str:
    """Returns a command on the stored sweep."""
    workdir = f"--workdir={short_path(judged.sweep.workdir)}"
    plugins = _plugins(_flags(judged.sweep.header["command"]))
    return shlex.join(["vfljax", command, workdir, *plugins])


def _plugins(given: dict[str, str]) -> list[str]:
    return [f"--plugin={given['plugin']}"] if "plugin" in given else []


def _flags(command: str) -> dict[str, str]:
    """Returns the flags of a command line, by their names without dashes."""
    words = shlex.split(command)
    flags = {}
    for place, word in enumerate(words):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            after = words[place + 1] if place + 1 < len(words) else ""
            flags[name] = value if equals else "" if after.startswith("--") else after
    return flags
