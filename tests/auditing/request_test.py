"""What an audit may be asked, and the one line that refuses what it may not."""

import json
import math

import pytest

from tests.refusals import refused
from vfljax.auditing.request import Request, options_of, parties_of, seconds_of

PARTIES = {"bank": ("age", "limit"), "telco": ("pay*",)}


def request(**changes):
    fields = {"data": "t.csv", "label": "y", "parties": PARTIES, "label_party": "bank"}
    return Request(**{**fields, **changes})


def test_the_parties_without_labels_attack_each_alone():
    asked = request(parties={**PARTIES, "shop": ("buys",)})
    assert asked.passive == ("telco", "shop") == asked.attacking
    assert request(attackers=("telco",)).attacking == ("telco",)


def test_a_request_is_json_and_back():
    stored = request(max_leak=0.6).stored()
    assert json.loads(json.dumps(stored)) == stored
    assert stored["max_leak"] == 0.6
    assert request().stored()["max_leak"] is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data": ""}, "--data is needed"),
        ({"label": ""}, "--label is needed"),
        ({"parties": {"bank": ("age",)}}, "names 1 party: give two or more"),
        ({"parties": {}}, "names 0 party"),
        ({"parties": {"bank": ("age",), "telco": ()}}, "--parties gives 'telco' no columns"),
        ({"label_party": "bnak"}, "did you mean 'bank'"),
        ({"attackers": ("telko",)}, "did you mean 'telco'"),
        ({"attackers": ("bank",)}, "'bank', who has the labels"),
        ({"attackers": ("telco", "telco")}, "names a party twice"),
        ({"federation": "splt"}, "did you mean 'split'"),
        ({"known": -1}, "--known=-1"),
        ({"seeds": 0}, "--seeds=0"),
        ({"budget": 5.0}, "--budget=5s"),
        ({"budget": math.inf}, "no time that an audit can keep"),
        ({"budget": math.nan}, "no time that an audit can keep"),
        ({"max_leak": 1.5}, "--max_leak=1.5: give a number from 0 to 1"),
        ({"max_cost": -0.1}, "--max_cost=-0.1"),
        ({"max_cost": math.nan}, "--max_cost=nan"),
    ],
)
def test_a_request_that_nobody_can_mean_is_refused(changes, says):
    with refused(says):
        request(**changes)


def test_a_label_party_may_own_nothing_but_the_labels():
    assert request(parties={"bank": (), "telco": ("*",)}).passive == ("telco",)


@pytest.mark.parametrize(
    ("text", "parties"),
    [
        ("bank: a, b; telco: c", {"bank": ("a", "b"), "telco": ("c",)}),
        (" bank:a,b ;; telco : *;", {"bank": ("a", "b"), "telco": ("*",)}),
        ("bank:; telco: ü, x y", {"bank": (), "telco": ("ü", "x y")}),
        ("a: b:c; d: e", {"a": ("b:c",), "d": ("e",)}),
    ],
)
def test_parties_on_one_line(text, parties):
    assert parties_of(text) == parties


def test_awkward_names_come_from_a_file(tmp_path):
    path = tmp_path / "p.JSON"
    path.write_text('\ufeff{"a;b": ["x,y", "z:w"], "c": []}', encoding="utf-8")
    assert parties_of(str(path)) == {"a;b": ("x,y", "z:w"), "c": ()}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "--parties is needed"),
        ("  ", "--parties is needed"),
        ("bank", "'bank' has no colon"),
        ("bank: a; bank: b", "'bank' twice"),
        (": a; b: c", "--parties: the party's name='' is blank"),
        ("a\x1b: c; d: e", "cannot be printed"),
        ("missing.json", "is missing"),
        ("a: A, b: B", "part them by semicolons"),
        ('{"a": ["A"]}', "write that to a file"),
    ],
)
def test_parties_that_cannot_be_meant(text, says):
    with refused(says):
        parties_of(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON"),
        ("[]", "give an object"),
        ("{}", "give an object"),
        ("3", "give an object"),
        ('["a"]', "give an object"),
        ('{"a": "b"}', "must have a list"),
        ('{"a": [1]}', "must have a list"),
        ('{"a": ["b"], "a": ["c"]}', "'a' twice"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_files_of_parties_that_cannot_be_meant(tmp_path, text, says):
    path = tmp_path / "p.json"
    path.write_text(text)
    with refused(says):
        parties_of(str(path))


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", 600), ("90s", 90), ("90", 90), ("1.5h", 5400), (" 2 min ", 120)]
)
def test_budgets(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-5m", "1e3", "10 parsecs", "10m10s", "nan"])
def test_budgets_that_are_no_time(text):
    with refused("is no time"):
        seconds_of(text)


def test_options_of_the_loader():
    texts = ["drop=ID,x*", "max_categories=9", 'options={"sep": ";"}']
    assert options_of(texts) == {"drop": ("ID", "x*"), "max_categories": 9, "options": {"sep": ";"}}


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["drop"], "must be name=value"),
        (["label=y"], "--label"),
        (["drop=a", "drop=b"], "given twice"),
        (["dorp=a"], "did you mean 'drop'"),
    ],
)
def test_options_that_are_none(texts, says):
    with refused(says):
        options_of(texts)
