"""The arguments of an audit, and the one line that refuses what cannot be meant."""

import math

import numpy as np
import pytest

from tests.auditing.survey_test import PARTIES, values, written
from tests.refusals import refused
from vfljax.api.audit import _attackers, audit, parties_of, seconds_of
from vfljax.auditing import run
from vfljax.errors import UserError

OWNERS = {"bank": ("age", "limit"), "telco": ("pay*",), "shop": ("buys",)}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"table": None}, "table is needed"),
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
        ({"max_leak": 1.5}, "max_leak=1.5"),
        ({"max_cost": -0.1}, "max_cost=-0.1"),
        ({"keep_gain": math.nan}, "keep_gain=nan"),
        ({"option": {"label": "y"}}, "option names a label"),
        ({"option": {"drop": "zz*"}}, "column in drop= 'zz*'"),
        ({"workdir": "t.csv"}, "is a file"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_named(tmp_path, monkeypatch, changes, says):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "t.csv", values())
    given = {"table": "t.csv", "label": "y", "parties": PARTIES, "workdir": "w"}
    with refused(says):
        audit(**{**given, **changes}, say=lambda line: None)
    assert not (tmp_path / "w" / "sweep.json").exists()


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


def test_the_goal_is_what_the_user_asks_for(tmp_path, monkeypatch):
    asked = {}

    def config_of(request, *others):
        asked.update(request.goal)
        raise UserError("enough")

    monkeypatch.setattr(run, "config_of", config_of)
    goal = {"max_leak": 0.6, "max_cost": 0.1, "keep_gain": 0.8}
    with pytest.raises(UserError, match="enough"):
        audit("own.csv", "y", "a: x; b: z", tmp_path, **goal)
    assert asked == goal
