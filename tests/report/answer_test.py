"""The first screen: the decision, what it rests on, and the command that would settle what is open."""

import pathlib
import shlex

import pandas as pd
import pytest

from tests.report.made import BARE, FACTS, NAN, PROTECTS, made
from vfljax import defenses, store
from vfljax.api.commands import COMMANDS
from vfljax.config import Goal
from vfljax.report import terminal
from vfljax.report.answer import answers
from vfljax.report.settle import more_seeds
from vfljax.sweep.grid import parse

STORED = pathlib.Path(__file__).parents[1] / "fixtures" / "stored_sweep"
SMALL = [0.6, 0.75, 0.62, 0.7, 0.61]
WIDE = [0.95, 0.6, 0.95, 0.65, 0.9]
UNCLEAR_COST = {"probe/mean": 0.6, "test_utility": [0.8, 0.9, 0.95, 0.8, 0.9]}
UNKNOWING = {"norm": 0.95}, {"norm": 0.6, "test_utility": 0.88}


def the(judged):
    (answer,) = answers(judged)
    return answer


@pytest.mark.parametrize(
    ("points", "values", "action"),
    [
        ((BARE, PROTECTS), {"knobs": {"noise.scale": [NAN, 0.1]}}, "Switch on noise at scale=.1."),
        (
            (BARE | {"test_utility": [0.802, 0.797, 0.806, 0.801, 0.804]}, PROTECTS),
            {},
            "Do not federate: it gains nothing.",
        ),
        (
            (BARE | {"test_utility": 0.802}, PROTECTS),  # little is gained, but more than nothing
            {},
            "Switch on noise.",
        ),
        (({"probe/mean": 0.61}, PROTECTS), {}, "Nothing to protect from what was tried: no de"),
        (({"probe/mean": 0.61, "norm": [NAN] * 5}, PROTECTS), {}, "Switch on noise."),
        (({"probe/mean": SMALL}, BARE), {}, "Undecided: whether more leaks than without the"),
        ((BARE, PROTECTS), {"seeds": 1}, "Undecided: 1 seed allows no verdict."),
        ((BARE,), {}, "Undecided: no defense was tried."),
        ((BARE, {"probe/mean": WIDE}), {}, "Undecided: whether noise helps is open."),
        (UNKNOWING, {}, "Undecided: whether noise helps is open."),
        ((BARE, BARE), {}, "Do not federate yet: noise does not meet the goal."),
        (({"test_utility": 0.9},), {}, "Undecided: nothing was attacked."),
        (({"probe/mean": NAN, "test_utility": NAN},), {}, "Undecided: lower the learning rate."),
    ],
)
def test_a_case_for_each_decision(points, values, action):
    assert the(made(*points, **values)).action.startswith(action)


def test_what_protects_says_what_it_rests_on():
    answer = the(made(BARE, PROTECTS))
    assert "telco can read the labels" in answer.reads
    assert "1 attack of 1 family reads .95" in answer.reads
    assert "probe/mean leads on 5 of 5 seeds" in answer.reads
    assert "Without the federation the same party reads .60" in answer.reads
    assert "keeps 80 % of that gain (asked: 50 %" in answer.costs
    assert f"1 of {len(defenses.TABLE)} defenses" in answer.coverage
    assert "5 seeds" in answer.coverage


def test_an_attack_that_reads_no_more_than_the_baseline_is_no_leader():
    answer = the(made({"probe/mean": 0.58}, PROTECTS))
    assert "no attack reads more than can be read without the federation" in answer.reads
    assert "local-only" not in " ".join(answer.sentences)


def test_each_reason_for_which_a_point_that_leaks_less_is_not_recommended():
    lost = {"test_utility": 0.82, "validation_utility": 0.82}
    cases = {
        "costs too much": ({"probe/mean": 0.6, "test_utility": 0.82}, {}),
        "lost on validation rows": ({"probe/mean": 0.6, **lost}, {}),
        "no attack that knows it was run": ({"norm": 0.6}, {}),
        "the most that is accepted": (PROTECTS, {"max_leak": 0.55}),
    }
    for reason, (point, goal) in cases.items():
        bare = {name: 0.95 for name in point if "utility" not in name}
        answer = the(made(bare, point, facts=FACTS._replace(goal=Goal(**goal))))
        assert reason in answer.instead[0], reason


def test_of_two_defenses_the_one_that_may_help_no_more_has_its_reason():
    noise = {"probe/mean": 0.85, "test_utility": [0.84, 0.87, 0.84, 0.88, 0.86]}
    wide = {"probe/mean": [0.5, 1.0, 1.0, 0.5, 1.0], "test_utility": 0.874}
    answer = the(made(BARE, noise, wide, defenses=("noise", "max_norm")))
    assert answer.action.startswith("Switch on noise")
    (why,) = answer.instead
    assert why == (
        "max_norm (leaks .84, keeps 74 %): the limits are too wide to say whether less leaks than "
        "undefended."
    )
    assert "the best of 2 operating points" in answer.sure


def test_each_panel_has_an_answer_and_terms_are_explained_on_the_first_alone():
    judged = made(BARE, PROTECTS)
    other = judged.verdicts.assign(panel="no_split", recommended=False)
    both = judged._replace(
        verdicts=pd.concat([judged.verdicts, other], ignore_index=True),
        rows=pd.concat([judged.rows, judged.rows.assign(panel="no_split")], ignore_index=True),
    )
    first, second = answers(both)
    assert first.title.startswith("With model splitting")
    assert ["A leak is an AUC" in of.reads for of in (first, second)] == [True, False]


def test_fresh_seeds_confirm_or_contradict():
    judged = made(BARE, PROTECTS)
    point = judged.leading[judged.leading["recommended"]]
    good, bad = (
        the(judged._replace(confirmed=point.assign(confirms=confirms, seeds=3)))
        for confirms in (True, False)
    )
    assert (good.action, bad.action) == (
        "Switch on noise.",
        "Undecided: fresh seeds do not confirm noise.",
    )
    assert "3 fresh seeds confirm it" in good.sure
    assert "3 fresh seeds do not confirm it" in bad.sure
    assert not bad.settle


def test_without_undefended_nothing_is_compared():
    judged = made(BARE, PROTECTS)
    kept = judged.verdicts[~judged.verdicts["undefended"]].assign(recommended=False)
    answer = the(judged._replace(verdicts=kept))
    assert answer.action.startswith("Undecided: without undefended nothing shows")
    assert answer.reads.startswith("With noise, telco")


def test_what_is_open_comes_with_the_seeds_that_would_decide_it():
    (command,) = the(made(BARE, {"probe/mean": WIDE})).settle
    words = shlex.split(command.command)
    assert words[:3] == ["vfljax", "sweep", "--config=configs/x.py"]
    seeds = int(words[-2].removeprefix("--config.seeds="))
    assert f"{seeds} seeds would decide whether noise helps" in command.why
    assert words[-1] == f"--workdir=runs/x-{seeds}-seeds"  # a stored sweep has its number of seeds
    assert "--config.data.dir=D" in words
    assert "--config.seeds=3" not in words  # of the command that is repeated
    flags = {*COMMANDS["sweep"].flags}
    assert {word.split("=")[0].strip("-").split(".")[0] for word in words[2:]} <= flags


@pytest.mark.parametrize(
    ("points", "values", "command"),
    [
        ((BARE, PROTECTS), {}, "vfljax sweep --workdir=runs/x --confirm"),
        (UNKNOWING, {}, "vfljax attack --workdir=runs/x --attacks="),
        (({"test_utility": 0.9},), {}, "vfljax attack --workdir=runs/x"),
    ],
)
def test_other_commands_that_settle_what_is_open(points, values, command):
    assert the(made(*points, **values)).settle[0].command.startswith(command)


def test_an_audit_whose_budget_is_spent_confirms_within_a_budget():
    command = "vfljax audit --data=t.csv --parties='a: x; b: y' --workdir=w"
    judged = made(BARE, PROTECTS, command=command)
    assert the(judged).settle[0].command == "vfljax sweep --workdir=runs/x --confirm"
    left = judged.sweep._replace(unfinished=("2 of 9 shards are not trained",))
    (confirm,) = the(judged._replace(sweep=left)).settle
    assert confirm.command == f"{command} --confirm"


def test_commands_of_sweeps_from_python_and_of_audits(tmp_path):
    judged = made(BARE, command="vfljax.run_sweep", workdir="runs/a b")
    assert more_seeds(judged, 9) == (
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


def test_a_terminal_shows_answers_and_verdicts_within_its_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    judged = made(BARE, UNCLEAR_COST, knobs={"noise.scale": [NAN, 0.1]})
    text = terminal.first_lines(judged)
    assert text.startswith("Switch on noise at scale=.1.")
    assert "cost unclear" in text
    commands = {command.command for command in the(judged).settle}
    assert len(commands) == 2  # fresh seeds, and more of them to know the cost
    lines = [line for line in text.splitlines() if line.strip() not in commands]
    assert max(map(len, lines)) <= 80


def test_a_table_for_a_terminal_drops_columns_and_cuts_cells(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    table = pd.DataFrame({"configuration": ["kdk epsilon=.3 k=2"], "long": ["x" * 30], "b": ["y"]})
    assert "long" not in terminal.fitted(table, ("long",))
    cut = terminal.fitted(table)
    assert max(map(len, cut.splitlines())) <= 30
    assert all(word in cut for word in ("kdk", "k=2", "…"))
