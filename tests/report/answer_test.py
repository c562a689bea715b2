"""The first screen: the decision, what it rests on, and the command that would settle what is open."""

import math
import pathlib
import shlex

import pandas as pd
import pytest

from tests.report.made import FACTS, made
from vfljax import store
from vfljax.api.commands import COMMANDS
from vfljax.config import Goal
from vfljax.report import terminal
from vfljax.report.answer import answers
from vfljax.report.settle import more_seeds
from vfljax.report.verdicts import Verdict
from vfljax.sweep.grid import parse

NAN = math.nan
STORED = pathlib.Path(__file__).parents[1] / "fixtures" / "stored_sweep"
BARE = {"probe/mean": 0.95}
PROTECTS = {"probe/mean": 0.6, "test_utility": 0.88}
WIDE = [0.95, 0.6, 0.95, 0.65, 0.9]
NOT_KEPT = {"test_utility": 0.82, "validation_utility": 0.82}


def the(judged):
    (answer,) = answers(judged)
    return answer


def recommended(judged):
    return [*judged.leading.loc[judged.leading["recommended"], "label"]]


def test_what_protects_and_keeps_the_gain_is_to_be_switched_on():
    judged = made(BARE, PROTECTS, knobs={"noise.scale": [NAN, 0.1]})
    answer = the(judged)
    assert answer.action == "Switch on noise at scale=.1."
    assert "telco can read the labels" in answer.reads
    assert "1 attack of 1 family reads .95" in answer.reads
    assert "probe/mean leads on 5 of 5 seeds" in answer.reads
    assert "Without the federation the same party reads .60" in answer.reads
    assert "one row of the class defaulted and one of the class repaid" in answer.reads
    assert "keeps 80 % of that gain (asked: 50 %" in answer.costs
    assert "1 of 20 defenses" in answer.coverage
    assert "5 seeds" in answer.coverage
    (confirm,) = answer.settle
    assert confirm.command == "vfljax sweep --workdir=runs/x --confirm"
    assert "confirm" in {*COMMANDS["sweep"].flags}


def test_an_audit_whose_budget_is_spent_confirms_within_a_budget():
    command = "vfljax audit --data=t.csv --parties='a: x; b: y' --workdir=w"
    judged = made(BARE, PROTECTS, command=command)
    left = judged.sweep._replace(unfinished=("2 of 9 shards are not trained",))
    (confirm,) = the(judged._replace(sweep=left)).settle
    assert confirm.command == f"{command} --confirm"


def test_a_point_whose_limits_are_too_wide_to_help_is_not_recommended():
    worse = {"probe/mean": 0.85, "test_utility": [0.84, 0.87, 0.84, 0.88, 0.86]}
    better = {"probe/mean": 0.82, "test_utility": 0.874}
    defenses = ("noise", "max_norm")
    both = made(BARE, worse, better, defenses=defenses)
    assert recommended(both) == ["max_norm"]
    # the limits of its leak are too wide to say that it helps
    wide = better | {"probe/mean": [0.5, 1.0, 1.0, 0.5, 1.0]}
    judged = made(BARE, worse, wide, defenses=defenses)
    assert judged.leading.set_index("label").loc["max_norm", "verdict"] == Verdict.CANNOT_SAY
    assert recommended(judged) == ["noise"]
    (why,) = the(judged).instead
    assert why == (
        "max_norm (leaks .84, keeps 74 %): the limits are too wide to say whether less leaks than "
        "undefended."
    )


def test_a_federation_that_gains_nothing_is_not_to_be_run():
    gains = {"test_utility": [0.802, 0.797, 0.806, 0.801, 0.804]}
    answer = the(made({**BARE, **gains}, PROTECTS))
    assert answer.action == "Do not federate: it gains nothing."
    assert "a gain of +0.2 points" in answer.costs
    assert not answer.settle
    shown = the(made({**BARE, "test_utility": 0.802}, PROTECTS))
    assert shown.action != answer.action  # little, but more than nothing


def test_where_nothing_leaks_no_defense_is_needed():
    answer = the(made({"probe/mean": 0.61}, PROTECTS))
    assert answer.action == "Nothing to protect from what was tried: no defense is needed."
    assert not answer.instead + answer.settle


def test_an_attack_that_reads_no_more_than_the_baseline_is_no_leader():
    answer = the(made({"probe/mean": 0.58}, PROTECTS))
    assert "no attack reads more than can be read without the federation" in answer.reads
    assert "local-only" not in " ".join(answer.sentences)


def test_what_is_open_comes_with_the_seeds_that_would_decide_it():
    answer = the(made(BARE, {"probe/mean": WIDE}))
    assert answer.action == "Undecided: whether noise helps is open."
    (command,) = answer.settle
    words = shlex.split(command.command)
    assert words[:3] == ["vfljax", "sweep", "--config=configs/x.py"]
    seeds = int(words[-2].removeprefix("--config.seeds="))
    assert f"{seeds} seeds would decide whether noise helps" in command.why
    assert words[-1] == f"--workdir=runs/x-{seeds}-seeds"  # a stored sweep has its number of seeds
    assert "--config.data.dir=D" in words
    flags = {*COMMANDS["sweep"].flags}
    assert {word.split("=")[0].strip("-").split(".")[0] for word in words[2:]} <= flags


def test_commands_of_sweeps_from_python_and_of_audits(tmp_path):
    judged = made(BARE, command="vfljax.run_sweep", workdir="runs/a b")
    command = more_seeds(judged, 9)
    assert command == (
        'vfljax.run_sweep({**vfljax.load("runs/a b").config, "seeds": 9}, "runs/a b-9-seeds")'
    )
    assert parse({**store.load(STORED).config, "seeds": 9}).seeds == 9
    (tmp_path / "config.py").touch()  # an audit writes the config of its own sweep
    audit = made(BARE, command="vfljax audit --data=t.csv", workdir=str(tmp_path))
    assert f"--config={tmp_path}/config.py --config.seeds=9" in more_seeds(audit, 9)
    plugin = made(BARE, command="vfljax sweep --config 'a b.py' --plugin mine.py --workdir=w")
    words = shlex.split(more_seeds(plugin, 9))
    assert "--config=a b.py" in words
    assert words[-1] == "--plugin=mine.py"
    assert more_seeds(made(BARE, config={"data": {"name": "wire"}}), 9) == ""


def test_with_too_few_seeds_nothing_is_decided():
    answer = the(made(BARE, PROTECTS, seeds=1))
    assert answer.action == "Undecided: 1 seed allows no verdict."
    assert "--config.seeds=5" in answer.settle[0].command


def test_without_a_defense_that_does_what_is_asked_there_is_no_recommendation():
    leaks = made(BARE, {"probe/mean": 0.95}, {"probe/mean": 0.94}, defenses=("noise", "max_norm"))
    answer = the(leaks)
    assert answer.action == "Do not federate yet: none of 2 defenses meets the goal."
    one = the(made(BARE, {"probe/mean": 0.95}))
    assert one.action == "Do not federate yet: noise does not meet the goal."
    assert the(made(BARE)).action == "Undecided: no defense was tried."


def test_each_reason_for_which_a_point_that_leaks_less_is_not_recommended():
    cases = {
        "costs too much": ({"probe/mean": 0.6, "test_utility": 0.82}, {}),
        "lost on validation rows": ({"probe/mean": 0.6, **NOT_KEPT}, {}),
        "no attack that knows it was run": ({"norm": 0.6}, {}),
        "the most that is accepted": (PROTECTS, {"max_leak": 0.55}),
    }
    for reason, (point, goal) in cases.items():
        bare = {name: 0.95 for name in point if "/" in name or name == "norm"}
        answer = the(made(bare, point, facts=FACTS._replace(goal=Goal(**goal))))
        assert not answer.action.startswith("Switch on")
        assert reason in answer.instead[0], reason


def test_a_defense_that_nobody_who_knows_it_attacked_comes_with_the_command():
    answer = the(made({"norm": 0.95}, {"norm": 0.6, "test_utility": 0.88}))
    assert answer.action == "Undecided: whether noise helps is open."
    (command,) = answer.settle
    assert command.command.startswith("vfljax attack --workdir=runs/x --attacks=")


def test_fresh_seeds_confirm_or_contradict():
    judged = made(BARE, PROTECTS)
    point = judged.leading[judged.leading["recommended"]]
    good = judged._replace(confirmed=point.assign(confirms=True, seeds=3))
    bad = judged._replace(confirmed=point.assign(confirms=False, seeds=3))
    assert the(good).action == "Switch on noise."
    assert "3 fresh seeds confirm it" in the(good).sure
    assert "flatters" not in the(good).sure
    assert the(bad).action == "Undecided: fresh seeds do not confirm noise."
    assert not the(good).settle


def test_without_any_figure_of_an_attack():
    answer = the(made({"test_utility": 0.9}))
    assert answer.action == "Undecided: nothing was attacked."
    assert answer.settle[0].command == "vfljax attack --workdir=runs/x"
    lost = the(made({"probe/mean": NAN, "test_utility": NAN}))
    assert lost.action == "Undecided: lower the learning rate."
    assert "All 5 trials diverged" in lost.reads


def test_without_undefended_nothing_is_compared():
    judged = made(BARE, PROTECTS)
    kept = judged.verdicts[~judged.verdicts["undefended"]].assign(recommended=False)
    answer = the(judged._replace(verdicts=kept))
    assert answer.action.startswith("Undecided: without undefended nothing shows")
    assert answer.reads.startswith("With noise, telco")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("cost", ["kept", "cost unclear"])
def test_a_terminal_shows_answers_and_verdicts_within_its_width(cost, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    point = PROTECTS | ({"test_utility": [0.8, 0.9, 0.95, 0.8, 0.9]} if cost != "kept" else {})
    judged = made(BARE, point, knobs={"noise.scale": [NAN, 0.1]})
    text = terminal.first_lines(judged)
    assert text.startswith("Switch on noise at scale=.1.")
    assert cost in text
    commands = {command.command for command in the(judged).settle}
    lines = [line for line in text.splitlines() if line.strip() not in commands]
    assert max(map(len, lines)) <= width
    assert len(commands) == 1 + (cost != "kept")


def test_a_table_for_a_terminal_drops_columns_and_cuts_cells(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    table = pd.DataFrame({"configuration": ["kdk epsilon=.3 k=2"], "long": ["x" * 30], "b": ["y"]})
    assert "long" not in terminal.fitted(table, ("long",))
    monkeypatch.setenv("COLUMNS", "40")
    cut = terminal.fitted(table)
    assert "kdk" in cut
    assert "k=2" in cut
    assert max(map(len, cut.splitlines())) <= 40
    assert "…" in cut


def test_terms_are_explained_on_the_first_panel_alone():
    judged = made(BARE, PROTECTS)
    other = judged.verdicts.assign(panel="no_split", recommended=False)
    both = judged._replace(
        verdicts=pd.concat([judged.verdicts, other], ignore_index=True),
        rows=pd.concat([judged.rows, judged.rows.assign(panel="no_split")], ignore_index=True),
    )
    first, second = answers(both)
    assert first.title.startswith("With model splitting (a top model")
    assert "A leak is an AUC" in first.reads
    assert "A leak is an AUC" not in second.reads
    assert len(second.sure) < len(first.sure)
