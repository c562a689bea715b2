"""The command that would settle what is open on a panel: for what it is about, and it works as it stands."""

from __future__ import annotations

import math
import pathlib
import shlex
from typing import NamedTuple

from vfljax import store
from vfljax.errors import short_path
from vfljax.plugins.described import OF_RECORDING
from vfljax.report.decision import CANDIDATES, EARLY, LOOKS, Answer, Decided, Reason
from vfljax.report.fresh import MOST, SEEDS, first_seed, seeds_for
from vfljax.report.judged_sweep import STAGE2, Judged
from vfljax.report.looks import progress, seeds_at_last_look
from vfljax.report.not_run import reached
from vfljax.report.words import count


class Suggestion(NamedTuple):
    """A command, and what it would settle."""

    why: str
    command: str


def settle(judged: Judged, panel: str, decided: Decided) -> tuple[Suggestion, ...]:
    """Returns the command that goes on from a decision; () where there is none."""
    reason = decided.reason
    if decided.answer is Answer.OPEN and (on := _goes_on(judged, panel, decided)):
        return (on,)
    if _recorded(judged):  # more runs must be recorded, unless this library grows them
        return _of_trees(judged, decided) if judged.grown else ()
    if judged.experiment.reproduces and reason in (Reason.NOT_ASKED, Reason.FAMILIES, Reason.NEXT):
        return ()  # a paper's settings are not decided on
    if decided.answer is Answer.SWITCH_ON and decided.point and not decided.fresh:
        return (_on_fresh_seeds(judged, panel, f"{decided.point['label']} alone again", SEEDS),)
    if decided.answer is not Answer.OPEN:
        return ()
    if reason is Reason.FEW_SEEDS:
        more = more_seeds(judged)
        return (Suggestion(f"{_more(judged)} seeds would allow limits", more),) if more else ()
    if reason is Reason.FAMILIES and decided.stage2:
        return (Suggestion("This tries them", on_sweep(judged, "decide")),)
    if reason in (Reason.NOT_ASKED, Reason.FAMILIES):
        points = 1 + CANDIDATES
        # attacks that were not tried, and compiling them, are in no measured speed
        takes = _takes(judged, panel, points * LOOKS[0], "at least")
        what = f"This sets {LOOKS[0]} to {LOOKS[-1]} seeds aside to decide, under all attacks"
        return (Suggestion(what + takes, on_sweep(judged, "decide")),)
    if reason is Reason.NEXT:
        takes = _takes(judged, panel, CANDIDATES * LOOKS[0])
        return (
            Suggestion(
                "The same goes on with the next candidates" + takes, on_sweep(judged, "decide")
            ),
        )
    if reason is Reason.LIMITS and decided.leading and not decided.fresh:
        what = f"{decided.leading['label']} alone"
        return (_on_fresh_seeds(judged, panel, what, seeds_for(decided)),)
    return ()


def _on_fresh_seeds(judged: Judged, panel: str, what: str, seeds: int) -> Suggestion:
    """Returns the command that judges a point on so many fresh seeds; on those of another point, beside which
    undefended was judged already, if there are any. It makes first what the sweep lacks."""
    points = 2
    if judged.confirmed is not None:
        seeds, points = judged.confirmed.experiment.seeds, 1
    what = f"This judges {what} on {count(seeds, 'fresh seed')}" + _takes(
        judged, panel, points * seeds
    )
    if judged.sweep.unfinished:
        what += (
            f", or what leads once the sweep is finished, which comes first ({remaining(judged)})"
        )
    return Suggestion(what, on_sweep(judged, "confirm"))


def _goes_on(judged: Judged, panel: str, decided: Decided) -> Suggestion | None:
    """Returns the command that makes what is left of a sweep, or of the seeds that were set aside for a panel;
    None where nothing is left."""
    reason, own = decided.reason, judged.sweep.workdir / STAGE2 / panel
    if reason is Reason.CUT_OFF:
        return _looked_on(judged, panel)
    if reason is Reason.FAILED and progress(own).failed:  # it makes what the sweep lacks too
        same = _command(judged) if _audit(judged) else on_sweep(judged, "decide")
        return Suggestion("The same tries again what failed", same)
    if reason in (*EARLY, Reason.FAILED) and judged.sweep.unfinished:
        return continued(judged)
    return continued(judged) if reason is Reason.UNFINISHED else None


def _of_trees(judged: Judged, decided: Decided) -> tuple[Suggestion, ...]:
    """Returns the command that goes on from a decision on an audit of trees; () where there is none."""
    undecided = decided.answer is Answer.OPEN and not decided.stage2
    if undecided and decided.reason in (Reason.NOT_ASKED, Reason.FAMILIES):
        given, what = _command(judged), "This sets seeds aside to decide"
        if given.startswith("vfljax."):  # a call from Python, whose arguments are not known
            return ()
        words = [*_without(shlex.split(given), "nodecide"), "--decide"]
        return (Suggestion(what, shlex.join(words)),)
    return ()


def continued(judged: Judged) -> Suggestion:
    """Returns the command of a sweep that is not finished; of an audit with a budget in which what remains is
    likely to be done, a third of which is kept to decide."""
    command, minutes = _command(judged), _minutes_left(judged)
    if not _audit(judged) or math.isnan(minutes):
        return Suggestion(f"{remaining(judged)}: the same command goes on", command)
    budget = _budget(minutes)
    return Suggestion(
        f"{remaining(judged)}: the same command with {budget}", _again(judged, budget)
    )


def _looked_on(judged: Judged, panel: str) -> Suggestion:
    """Returns the command that takes the looks which are left at seeds that were set aside for a panel. Points
    that joined later have more of them."""
    folder = judged.sweep.workdir / STAGE2 / panel
    header = store.header_of(folder)
    assert header is not None
    taken = seeds_at_last_look(folder, header)
    left = [header["config"]["seeds"] - taken[name] for name in header["config"]["grid"]]
    what = f"The same goes on at up to {count(max(left), 'further seed')}"
    what += _takes(judged, panel, sum(left))
    if not _audit(judged):
        return Suggestion(what, on_sweep(judged, "decide"))
    _, minutes = _effort(judged, panel, sum(left))
    return Suggestion(what, _again(judged, _budget(0 if math.isnan(minutes) else minutes)))


def _audit(judged: Judged) -> bool:
    """Returns whether an audit made a sweep, which has a budget."""
    return bool({"audit", "launch.audit"} & {*shlex.split(judged.sweep.header["command"])})


def _budget(minutes: float) -> str:
    """Returns the budget of an audit in which something is likely to be done, a third of it being kept to
    decide."""
    return f"--budget={5 * math.ceil(1.5 * max(minutes, 1) / 5)}m"


def _again(judged: Judged, budget: str) -> str:
    """Returns the command of an audit with another budget."""
    words = shlex.split(_command(judged))
    return shlex.join([*_without(words, "budget"), budget])


def _without(words: list[str], flag: str) -> list[str]:
    """Returns the words of a command without a flag and its value."""
    out, skip = [], False
    for word in words:
        if not skip and not word.startswith(f"--{flag}="):
            out.append(word)
        skip = word == f"--{flag}"
    return [word for word in out if word != f"--{flag}"]


def seconds_of_a_trial(judged: Judged) -> float:
    """Returns the seconds of training and attacking one trial, as measured in a sweep; NaN if nothing was."""
    return _seconds_of_training(judged) + sum(_seconds_of_attacks(judged).values())


def _seconds_of_training(judged: Judged) -> float:
    """Returns the mean seconds of training a trial; NaN if none was trained."""
    trained = [x for x in judged.sweep.results["seconds"].to_pylist() if x is not None]
    return sum(trained) / len(trained) if trained else math.nan


def _seconds_of_attacks(judged: Judged) -> dict[str, float]:
    """Returns the seconds of each attack variant on a trial, of one that was not run yet the mean of others."""
    run = {
        variant: of
        for variant, of in judged.attacks.items()
        if of["status"] != "skipped" and variant != store.LOCAL_ONLY_VARIANT
    }
    measured = {v: of["seconds"] / of["trials"] for v, of in run.items() if of["trials"]}
    typical = sum(measured.values()) / max(len(measured), 1)
    return {variant: measured.get(variant, typical) for variant in run}


def _takes(judged: Judged, panel: str, each: int, about: str = "about") -> str:
    """Returns how many trials a command makes, and about how many minutes that takes, as text.

    Args:
      judged: the sweep.
      panel: of the federations.
      each: trials of one federation.
      about: what is said of the minutes.
    """
    trials, minutes = _effort(judged, panel, each)
    time = "" if math.isnan(minutes) else f", {about} {max(1, math.ceil(minutes))} min"
    return f" ({count(trials, 'trial')}{time})"


def _effort(judged: Judged, panel: str, each: int) -> tuple[int, float]:
    """Returns how many trials a panel has, of which each federation has some, and about how many minutes they
    take; NaN if nothing was trained."""
    of = judged.stage2.get(panel, judged)
    federations = of.trials.loc[of.trials["panel"] == panel, "federation"].nunique()
    trials = each * federations
    return trials, trials * seconds_of_a_trial(of) / 60


def remaining(judged: Judged) -> str:
    """Returns how many operating points of a sweep are not trained yet, and about how many minutes all trials
    that are left take, by what the others took."""
    of = reached(judged)
    planned, left = int(of["planned"].sum()), int((of["planned"] - of["trained"]).sum())
    minutes = _minutes_left(judged)
    about = (
        "" if math.isnan(minutes) or not minutes else f", about {max(1, math.ceil(minutes))} min"
    )
    what = (
        f"{left} of {count(planned, 'point')} remain"
        if left
        else "seeds, attacks or the baseline remain"
    )
    return what + about


def _minutes_left(judged: Judged) -> float:
    """Returns about how many minutes it takes to train and attack all trials that are left, and to attack those
    that are trained, by what was measured; NaN if nothing was trained."""
    trained = judged.sweep.results.num_rows
    untrained = judged.sweep.header["trials"] - trained
    rows = judged.rows[judged.rows["role"] != "rejected"]
    waits = rows["leak"].isna() & (rows["settled_by"] == "")
    seconds = untrained * _seconds_of_training(judged)
    for variant, each in _seconds_of_attacks(judged).items():
        of = rows["variant"] == variant
        attacked, waiting = (rows.loc[mask, "trial"].nunique() for mask in (of, of & waits))
        seconds += each * (waiting + untrained * attacked / max(trained, 1))
    return seconds / 60


def _more(judged: Judged) -> int:
    """Returns how many seeds a sweep is to explore in place of its own: one number for all that is advised, so
    that no two commands train the same seeds."""
    return max(5, 2 * judged.experiment.seeds)


def more_seeds(judged: Judged) -> str:
    """Returns the command that trains the same sweep on more seeds, in a folder of its own; "" for a recorded
    exchange, of which more runs are needed. The seeds are fresh, so that its decision owes nothing to looks
    that were taken, or are taken by then.

    The stored command is repeated if it names a config. An audit has written one of its own sweep. From
    Python, the config is read from the stored sweep.
    """
    sweep = judged.sweep
    if _recorded(judged):
        return ""
    folder, given = str(short_path(sweep.workdir)), dict(_pairs(sweep.header["command"]))
    seeds, first = _more(judged), first_seed(judged) + MOST
    target = f"{folder}-{seeds}-seeds"
    config, changes = given.get("config", ""), []
    if (sweep.workdir / "config.py").exists():
        config = f"{folder}/config.py"
    elif not config:
        fresh = f'"seeds": {seeds}, "first_seed": {first}'
        changed = f'{{**vfljax.load("{folder}").config, {fresh}}}'
        return f'vfljax.run_sweep({changed}, "{target}")'
    else:
        own = ("config.seeds", "config.first_seed")
        fields = [name for name in given if name.startswith("config.") and name not in own]
        changes = [f"--{name}={given[name]}" for name in fields]
    changes += [f"--config.seeds={seeds}", f"--config.first_seed={first}"]
    words = [f"--config={config}", *changes, f"--workdir={target}"]
    plugins = _plugins(sweep.header["command"])
    return shlex.join([*_program(judged, "sweep"), *words, *plugins])


def _recorded(judged: Judged) -> bool:
    """Returns whether nothing can be trained, because the federation is recorded."""
    return judged.experiment.data.name == "wire"


def _program(judged: Judged, command: str) -> list[str]:
    """Returns the words that start a command, as the user started the one that made the sweep."""
    words = shlex.split(judged.sweep.header["command"])
    module = "-m" in words and words[words.index("-m") + 1].startswith("launch.")
    return ["python", "-m", f"launch.{command}"] if module else ["vfljax", command]


def on_sweep(judged: Judged, what: str) -> str:
    """Returns a command on the stored sweep: to "attack" or "report" it, or to "decide" or "confirm"."""
    folder, given = short_path(judged.sweep.workdir), _command(judged)
    plugins = _plugins(given)
    if what in ("decide", "confirm"):
        if given.startswith("vfljax.run_sweep"):
            return f'vfljax.run_sweep(None, "{folder}", {what}=True)'
        words = [f"--workdir={folder}", *plugins, f"--{what}"]
        return shlex.join([*_program(judged, "sweep"), *words])
    return shlex.join([*_program(judged, what), f"--workdir={folder}", *plugins])


def _command(judged: Judged) -> str:
    """Returns the command of a sweep, with the plugins of attacks that were run later: without them nothing of
    the sweep is trained or attacked."""
    given = judged.sweep.header["command"]
    if given.startswith("vfljax."):  # a call from Python, in which plugins are no flags
        return given
    named = [of for name, value in _pairs(given) if name == "plugin" for of in value.split(",")]
    needed = {row["plugin"] for row in judged.sweep.plugins.values()} - {OF_RECORDING}
    later = sorted(needed - {pathlib.PurePath(of).stem for of in named})
    return (
        shlex.join([*shlex.split(given), *(f"--plugin={of}" for of in later)]) if later else given
    )


def _plugins(command: str) -> list[str]:
    """Returns the flags of a command that name plugins."""
    return [f"--plugin={value}" for name, value in _pairs(command) if name == "plugin"]


def _pairs(command: str) -> list[tuple[str, str]]:
    """Returns the flags of a command line, by their names without dashes, in their order."""
    words = shlex.split(command)
    flags = []
    for place, word in enumerate(words):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            after = words[place + 1] if place + 1 < len(words) else ""
            flags.append((name, value if equals else "" if after.startswith("--") else after))
    return flags
