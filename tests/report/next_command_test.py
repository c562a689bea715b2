"""The command that goes on: what it is about, how it is spelled, and what it takes."""

import pathlib
import shlex

import pytest

from tests.report.made import BARE, COMMAND, NAN, PROTECTS, made, row, the
from vfljax import store
from vfljax.api.commands import COMMANDS
from vfljax.plugins.described import OF_RECORDING
from vfljax.report import first_screen, looks, next_command
from vfljax.report.decision import Answer, Reason
from vfljax.report.looks import Progress
from vfljax.report.next_command import more_seeds, settle
from vfljax.sweep.grid import parse

STORED = pathlib.Path(__file__).parents[1] / "fixtures" / "stored_sweep"
WIDE = [0.95, 0.6, 0.95, 0.65, 0.9]
GONE = Progress(frozenset(), frozenset({"x"}), frozenset())


@pytest.mark.parametrize(
    ("points", "values", "command"),
    [
        ((BARE, PROTECTS), {}, "vfljax sweep --workdir=runs/x --confirm"),
        ((BARE, {"probe/mean": WIDE}), {}, "vfljax sweep --workdir=runs/x --decide"),
        ((BARE, PROTECTS), {"every_family": False}, "vfljax sweep --workdir=runs/x --decide"),
        (({"test_utility": 0.9},), {}, "vfljax attack --workdir=runs/x"),
    ],
)
def test_commands_that_settle_what_is_open_are_for_what_they_are_about(points, values, command):
    (of,) = the(made(*points, **values)).settle
    assert of.command == command
    flags = {*COMMANDS[command.split()[1]].flags}
    words = shlex.split(of.command)[2:]
    assert {word.split("=")[0].strip("-") for word in words} <= flags


def test_commands_are_spelled_as_the_user_spelled_his():
    module = "python -m launch.sweep --config=configs/x.py --workdir=runs/x"
    (of,) = the(made(BARE, PROTECTS, command=module)).settle
    assert of.command == "python -m launch.sweep --workdir=runs/x --confirm"
    assert "7 fresh seeds (14 trials, about 1 min)" in of.why
    judged = made(BARE, PROTECTS, command=module)
    lacks = judged._replace(sweep=judged.sweep._replace(unfinished=("an attack was not run",)))
    (of,) = settle(lacks, "split", judged.decisions["split"])
    assert "first (seeds, attacks or the baseline remain" in of.why
    (of,) = the(made(BARE, PROTECTS, command="vfljax.run_sweep")).settle
    assert of.command == 'vfljax.run_sweep(None, "runs/x", confirm=True)'


def test_commands_name_the_plugins_of_attacks_that_were_run_later():
    """Without them nothing of the sweep is trained or attacked."""
    rows = {f"{name}:row": {"plugin": name} for name in ("mine", "theirs", OF_RECORDING)}
    for command, again in (
        ("vfljax sweep --config=x.py --plugin=a/mine.py", "vfljax sweep --workdir=runs/x"),
        ("vfljax audit --data=t.csv --plugin=a/mine.py", "vfljax audit --data=t.csv"),
    ):
        judged = made(BARE, PROTECTS, command=command)
        header = judged.sweep.header | {"attacks": {"guess": {"plugins": rows}}}
        judged = judged._replace(sweep=judged.sweep._replace(header=header))
        of = judged.decisions["split"]._replace(answer=Answer.OPEN, reason=Reason.UNFINISHED)
        (suggested,) = settle(judged, "split", of) if "audit" in command else the(judged).settle
        assert suggested.command.startswith(f"{again} --plugin=a/mine.py --plugin=theirs --")


def test_another_point_is_judged_on_the_fresh_seeds_that_there_are():
    """Undefended is trained on them, and they stay as many as they are."""
    wide = {"probe/mean": WIDE}
    again = made(BARE, PROTECTS, config={"seeds": 7})
    judged = made(BARE, wide)._replace(confirmed=again)
    of = judged.decisions["split"]
    leading = {**of.leading, "verdict_seeds": 20.0}
    limits = of._replace(reason=Reason.LIMITS, leading=leading, stage2=True)
    (suggested,) = settle(judged, "split", limits)
    assert suggested.why == "This judges noise alone on 7 fresh seeds (7 trials, about 1 min)"
    (first,) = settle(judged._replace(confirmed=None), "split", limits)
    assert "on 20 fresh seeds (40 trials" in first.why
    chosen = made(BARE, PROTECTS)._replace(confirmed=again)
    (suggested,) = settle(chosen, "split", chosen.decisions["split"])
    assert "noise alone again on 7 fresh seeds (7 trials" in suggested.why


def test_an_audit_whose_budget_is_spent_goes_on_with_its_own_command(monkeypatch):
    command = "vfljax audit --data=t.csv --parties='a: x; b: y' --workdir=w"
    given = "vfljax audit --budget 1m --data=t.csv --parties='a: x; b: y' --workdir=w"
    judged = made(BARE, {"probe/mean": WIDE}, command=given)
    decided = judged.decisions["split"]._replace(reason=Reason.UNFINISHED)
    planned = judged.sweep.header | {"trials": 34}
    left = judged._replace(
        decisions={"split": decided},
        sweep=judged.sweep._replace(header=planned),
        experiment=parse({"grid": {"undefended": {}, "noise": {"noise": {"scale": (0.1, 1.0)}}}}),
    )
    screen = the(left)
    (of,) = screen.settle
    assert shlex.split(of.command) == shlex.split(f"{command} --budget=5m")
    # 24 trials at one second, and as many seconds of the attack's as there are
    what = "Open: {}, and 1 of 3 points remain, about 1 min."
    assert screen.answer == what.format("the sweep is not finished")
    # also where some of it failed, unless nothing waits beside that
    waits = GONE._replace(waiting=frozenset({"y"}))
    for state, words in ((waits, "the sweep is not finished"), (GONE, "parts failed")):
        monkeypatch.setattr(first_screen, "progress", lambda folder, state=state: state)
        assert the(left).answer == what.format(words)
    answer = the(left).answer
    # of two seeds that a stage which is not complete leaves, more seeds are not what lacks
    decided = decided._replace(reason=Reason.FEW_SEEDS)
    sweep = left.sweep._replace(unfinished=("2 of 10 shards are not trained",))
    screen = the(left._replace(decisions={"split": decided}, sweep=sweep))
    assert (screen.answer, screen.settle) == (answer, (of,))


@pytest.mark.parametrize("looked", [{}, {"undefended": 12, "noise": 4}])
def test_a_look_that_was_cut_off_goes_on_with_the_command_that_began_it(monkeypatch, looked):
    """Before the first look, and before the second at a point that joined after undefended had three."""
    grid = {"undefended": {}, "noise": {}}
    header, looked = {"config": {"seeds": 12, "grid": grid}}, dict.fromkeys(grid, 0) | looked
    seeds, trials = min(looked.values()), 24 - sum(looked.values())
    audit = "vfljax audit --data=t.csv --parties='a: x; b: y' --workdir=w"
    for command, expected in (
        (COMMAND, "vfljax sweep --workdir=runs/x --decide"),
        (f"{audit} --budget=1m", f"{audit} --budget=5m"),
    ):
        judged = made(BARE, {"probe/mean": WIDE}, command=command)
        own = {"split": made(BARE, PROTECTS)} if seeds else {}
        of = judged.decisions["split"]._replace(reason=Reason.CUT_OFF, stage2=seeds > 0)
        with monkeypatch.context() as patch:
            patch.setattr(next_command.store, "header_of", lambda folder: header)
            for module in (looks, next_command):
                patch.setattr(module, "seeds_at_last_look", lambda *_: looked)
            cut_off = judged._replace(decisions={"split": of}, stage2=own)
            patch.setattr(next_command, "progress", lambda folder: GONE)
            failed = of._replace(reason=Reason.FAILED)
            screen = the(cut_off)
            failed = the(cut_off._replace(decisions={"split": failed}))
        assert screen.answer == (
            f"Open: only {seeds} of the seeds that were set aside to decide were looked at so far."
        )
        assert failed.answer.startswith("Open: parts of the sweep failed")
        (suggested,) = failed.settle
        assert suggested.why == "The same tries again what failed"
        again = command if "audit" in command else expected
        assert suggested.command == again
        (suggested,) = screen.settle
        assert f"at up to {12 - seeds} further seeds ({trials} trials" in suggested.why
        assert shlex.split(suggested.command) == shlex.split(expected)


def test_commands_of_sweeps_from_python_and_of_audits(tmp_path):
    judged = made(BARE, command="vfljax.run_sweep", workdir="runs/a b")
    # behind the twelve of a decision, and thirty of --confirm
    assert more_seeds(judged) == (
        'vfljax.run_sweep({**vfljax.load("runs/a b").config, "seeds": 6, "first_seed": 45}, '
        '"runs/a b-6-seeds")'
    )
    assert parse({**store.load(STORED).config, "seeds": 6}).seeds == 6
    (tmp_path / "config.py").touch()  # an audit writes the config of its own sweep
    audit = made(BARE, command="vfljax audit --data=t.csv", workdir=str(tmp_path))
    fresh = "--config.seeds=6 --config.first_seed="
    assert f"--config={tmp_path}/config.py {fresh}" in more_seeds(audit)
    again = more_seeds(made(BARE, command=f"{COMMAND} --config.first_seed=1"))
    assert again.count("first_seed") == 1
    plugin = made(BARE, command="vfljax sweep --config 'a b.py' --plugin b.py --plugin mine.py")
    words = shlex.split(more_seeds(plugin))
    assert "--config=a b.py" in words
    assert words[-2:] == ["--plugin=b.py", "--plugin=mine.py"]
    assert more_seeds(made(BARE, config={"data": {"name": "wire"}})) == ""


@pytest.mark.parametrize(
    ("command", "budget"),
    [
        ("vfljax audit --data=t.csv --trees --workdir=w", " --budget=5m"),
        ("vfljax attack --wire=a.npz,b.npz --workdir=w", ""),
    ],
)
def test_what_was_recorded_goes_on_with_its_own_command(command, budget):
    judged = made(BARE, {"probe/mean": WIDE}, command=command, config={"data": {"name": "wire"}})
    of = judged.decisions["split"]
    unfinished = judged._replace(sweep=judged.sweep._replace(unfinished=("an attack was not run",)))
    for reason in (Reason.UNFINISHED, Reason.FAILED, Reason.FEW_SEEDS):
        (suggested,) = settle(unfinished, "split", of._replace(reason=reason))
        assert suggested.command == command + budget
    few, bare = (of._replace(reason=r) for r in (Reason.FEW_SEEDS, Reason.NO_DEFENSE))
    assert settle(judged, "split", few) == ()
    for decided, says in ((few, "Record more runs"), (bare, "name their files with --after")):
        assert says in row(the(judged._replace(decisions={"split": decided})), "Next")


def test_minutes_that_are_left_count_attacks_of_what_is_trained():
    """Ten trials are trained, at a second each; one attack took 5 of them 300 s, the other is not run."""
    leaks = {"probe/mean": WIDE, "norm": NAN}
    run = {"seconds": 300.0, "trials": 5}
    unrun = {"seconds": 0, "trials": 0}
    judged = made(BARE | {"norm": NAN}, leaks)
    entries = {"probe/mean": judged.attacks["probe/mean"] | run}
    judged = judged._replace(attacks=entries | {"norm": judged.attacks["norm"] | unrun})
    # ten trials of an attack that is taken to cost what the other does, 60 s
    assert next_command.remaining(judged) == "seeds, attacks or the baseline remain, about 10 min"
    header = judged.sweep.header | {"trials": 20}
    more = judged._replace(sweep=judged.sweep._replace(header=header))
    # and ten others that are trained and attacked twice: 10 s and 1,200 s
    assert next_command.remaining(more).endswith("about 31 min")
