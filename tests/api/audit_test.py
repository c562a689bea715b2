"""The arguments of an audit, and the one line that refuses what cannot be meant."""

import functools
import math

import numpy as np
import pytest

from tests.auditing.survey_test import PARTIES, values, written
from tests.refusals import refused
from vfljax.api import commands
from vfljax.api.audit import _attackers, audit, audit_trees, seconds_of
from vfljax.api.commands import COMMANDS
from vfljax.api.flags import parsed, taken
from vfljax.api.partitioned_table import parties_of, partitioned_table
from vfljax.config import Goal
from vfljax.errors import UserError

OWNERS = {"bank": ("age", "limit"), "telco": ("pay*",), "shop": ("buys",)}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data": None}, "data is needed"),
        ({"label": ""}, "label is empty"),
        ({"label": "pa"}, "column in label 'pa'"),
        ({"parties": ["age", "pay"]}, "parties is of type list"),
        ({"parties": {"bank": ["age"]}}, "parties names 1 party"),
        ({"parties": {"bank": "age", "telco": ["pay"]}}, "no list of columns of 'bank'"),
        ({"parties": {"bank": ["age"], "telco": []}}, "parties gives 'telco' no columns"),
        ({"label_party": "bnak"}, "did you mean 'bank'"),
        ({"attackers": ["telko"]}, "did you mean 'telco'"),
        ({"attackers": "bank"}, "attackers names 'bank', who has the labels"),
        ({"federation": "splt"}, "did you mean 'split'"),
        ({"known": -1}, "known=-1"),
        ({"seeds": 0}, "seeds=0"),
        ({"budget": "soon"}, "budget='soon'"),
        ({"goal": Goal(max_leak=1.5)}, "max_leak=1.5: give a number from 0 to 1"),
        ({"goal": {"max_leak": 0.5}}, "goal is of type dict"),
        ({"option": {"label": "y"}}, "option names a label"),
        ({"option": {"drop": "zz*"}}, "column in drop= 'zz*'"),
        ({"workdir": "t.csv"}, "is a file"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_named(tmp_path, monkeypatch, changes, says):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "t.csv", values())
    given = {"data": "t.csv", "label": "y", "parties": PARTIES, "workdir": "w", **changes}
    with refused(says):
        table = partitioned_table(**taken(partitioned_table, given))
        audit(table, **given, say=lambda line: None)
    assert not (tmp_path / "w" / "sweep.json").exists()


@pytest.mark.parametrize("audits", [audit, audit_trees])
@pytest.mark.parametrize(
    ("goal", "says"),
    [(Goal(max_leak=1.5), "max_leak=1.5"), (Goal(keep_gain="x"), "keep_gain='x'")],  # type: ignore
)
def test_a_goal_is_checked_before_anything_is_trained(audits, goal, says, tmp_path, monkeypatch):
    def trained(*given, **others):
        raise AssertionError("something is trained")

    monkeypatch.setattr("vfljax.auditing.run.config_of", trained)
    monkeypatch.setattr("vfljax.auditing.trees.audit", trained)
    table = partitioned_table("t.csv", "y", PARTIES)
    with refused(f"{says}: give a number from 0 to 1"):
        audits(table, tmp_path / "w", goal=goal)


@pytest.mark.parametrize("audits", [audit, audit_trees])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"label": "y"}, "give partitioned_table=vfljax.partitioned_table(label=...)"),
        ({"max_leak": 0.5}, "give goal=vfljax.config.Goal(max_leak=...)"),
        ({"federatoin": "both"}, "unknown argument"),
    ],
)
def test_arguments_of_the_records_of_an_audit_are_sent_to_what_makes_them(audits, given, says):
    with refused(audits.__name__, says):
        audits("mine.csv", **given, workdir="w")


@pytest.mark.parametrize(
    ("given", "who"), [((), ("telco", "shop")), (("shop", "telco", "shop"), ("shop", "telco"))]
)
def test_the_parties_without_labels_attack_unless_some_are_named(given, who):
    assert _attackers(given, OWNERS, "bank") == who


@pytest.mark.parametrize(
    ("text", "parties"),
    [
        (" bank:a,b ;; telco : *;", {"bank": ("a", "b"), "telco": ("*",)}),
        ("bank:; telco: ü, x y", {"bank": (), "telco": ("ü", "x y")}),
        ("a: b:c; d: e", {"a": ("b:c",), "d": ("e",)}),
        ({"bank": np.array([0, 1]), "telco": ("a",)}, {"bank": ("0", "1"), "telco": ("a",)}),
    ],
)
def test_parties_as_a_text_or_a_mapping(text, parties):
    assert parties_of(text) == parties


def test_awkward_names_of_parties_come_from_a_file(tmp_path):
    path = tmp_path / "p.JSON"
    path.write_text('\ufeff{"a;b": ["x,y", "z:w"], "c": []}', encoding="utf-8")
    assert parties_of(str(path)) == {"a;b": ("x,y", "z:w"), "c": ()}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "parties=''"),
        ("bank", "'bank' has no colon"),
        ("bank: a; bank: b", "'bank' twice"),
        ("a\x1b: c; d: e", "cannot be printed"),
        ("a: A, b: B", "parted by semicolons"),
    ],
)
def test_parties_that_cannot_be_meant(text, says):
    with refused(says):
        parties_of(text)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '["a"]', '{"a": [null], "c": []}', '{"a": ["b"], "a": ["c"]}']
)
def test_files_of_parties_that_cannot_be_meant(tmp_path, text):
    path = tmp_path / "p.json"
    path.write_text(text)
    with refused("parties"):
        parties_of(str(path))


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [
        *(("90s", 90), ("10 min", 600), ("1h30m", 5400), ("600", 600), (np.int64(5), 5)),
        *((0, math.inf), ("0", math.inf), (None, math.inf)),
    ],
)
def test_budgets(budget, seconds):
    assert seconds_of(budget) == seconds


@pytest.mark.parametrize("budget", ["", "-5m", "10 parsecs", "1h30", "nan", -5])
def test_budgets_that_are_no_time(budget):
    with refused("budget"):
        seconds_of(budget)


OF_NETWORKS = ("--federation=split", "--noconfirm", "--nocanaries", "--first_seed=0")


# what the other audit alone has may be given, if it is the default
@pytest.mark.parametrize(
    ("words", "called"),
    [
        (("--told=own", "--noplain"), "audited"),
        (("--trees", "--told=all", *OF_NETWORKS), "audit_trees"),
    ],
)
def test_flags_of_the_command_reach_the_function_that_audits(words, called, monkeypatch):
    asked = {}

    @functools.wraps(getattr(commands, called))
    def stopped(partitioned_table, **others):
        asked.update(others, table=partitioned_table)
        raise UserError("enough")

    monkeypatch.setattr(commands, called, stopped)
    goal = ("--max_leak=0.6", "--max_cost=0.1", "--keep_gain=0.8")
    table = ("--data=own.csv", "--label=y", "--parties=a: x; b: z", "--option=drop=w")
    given = parsed(COMMANDS["audit"], [*words, *goal, *table, "--workdir=w", "--known=9"])
    with pytest.raises(UserError, match="enough"):
        commands.audit(**given)
    assert asked["goal"] == Goal(max_leak=0.6, max_cost=0.1, keep_gain=0.8)
    assert asked["known"] == 9
    of = asked["table"]
    assert (of.label, of.label_party, of.options) == ("y", "a", {"drop": ("w",)})
    assert dict(of.parties) == {"a": ("x",), "b": ("z",)}
    assert asked.get("told") == ("all" if called == "audit_trees" else None)
    assert "federation" not in asked


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--plain"], "plain is of trees: leave it out, or give trees"),
        (["--trees", "--confirm"], "confirm is of networks: leave it out, or leave trees out"),
        (["--max_leak=1.5"], "max_leak=1.5"),
        (["--max_cost=-0.1"], "max_cost=-0.1"),
        (["--keep_gain=nan"], "keep_gain=nan"),
        ([], "data is needed"),
    ],
)
def test_flags_that_cannot_be_meant(words, says):
    with refused(says):
        commands.audit(**parsed(COMMANDS["audit"], words))
