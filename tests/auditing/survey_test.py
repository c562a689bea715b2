"""A table looked at before anything is trained: owners, what nobody owns, and what gives labels away."""

import json
import math
import shlex

import numpy as np
import pytest

from tests.refusals import refused
from vfljax.api.arguments import Options, converted
from vfljax.api.audit import _as_argument, parties_of
from vfljax.api.commands import COMMANDS
from vfljax.api.data import of_loader
from vfljax.api.flags import spelled
from vfljax.auditing.sentences import revealing, table_notes
from vfljax.auditing.survey import RevealingColumn, Survey, above_chance, survey
from vfljax.errors import UserError, argument

ROWS = 120
PARTIES = "bank: age, job; telco: pay*"


def values(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, ROWS)
    return {
        "id": [f"c{k:04}" for k in range(ROWS)],
        "age": rng.integers(18, 90, ROWS).tolist(),
        "pay": (rng.normal(size=ROWS) + 0.5 * y).round(3).tolist(),
        "pay2": rng.normal(size=ROWS).round(3).tolist(),
        "job": [("clerk", "nurse", "none yet")[k] for k in rng.integers(0, 3, ROWS)],
        "y": ["no" if v == 0 else "yes" for v in y],
    }


def written(path, columns, delimiter=",", encoding="utf-8"):
    """The columns as a delimited file, every name and text quoted."""
    lines = [delimiter.join('"{}"'.format(name.replace('"', '""')) for name in columns)]
    for row in zip(*columns.values(), strict=True):
        lines.append(delimiter.join("" if v is None else json.dumps(v) for v in row))
    path.write_text("\n".join(lines), encoding=encoding)
    return str(path)


def surveyed(path, parties="", label="y", options=None) -> Survey:
    return survey(path, label, parties_of(parties or PARTIES), options or {})


def line_of(error: UserError) -> str:
    """The message as `vfljax audit` prints it."""
    return error.renamed(_as_argument).line(spelled(COMMANDS["audit"]))


@pytest.fixture
def path(tmp_path):
    return written(tmp_path / "t.csv", values())


def test_owners_and_what_nobody_owns(path):
    seen = surveyed(path)
    assert seen.owners == {"bank": ("age", "job"), "telco": ("pay", "pay2")}
    assert seen.unowned == ("id",)
    assert {column.name for column in seen.dataset.columns} == {"age", "job", "pay", "pay2"}
    assert seen.dataset.classes == ("no", "yes")
    assert not seen.revealing
    assert not seen.constant


def test_the_rest_is_everything_else_but_the_label(path):
    seen = surveyed(path, "bank: *; telco: pay2", options={"drop": ("id",)})
    assert seen.owners["bank"] == ("age", "pay", "job")


def test_a_glob_never_takes_the_label(tmp_path):
    table = values()
    table["pay_y"] = table.pop("y")
    seen = surveyed(written(tmp_path / "t.csv", table), label="pay_y")
    assert seen.owners["telco"] == ("pay", "pay2")


@pytest.mark.parametrize(
    ("change", "column"),
    [
        (lambda t: {"copy": t["y"]}, "copy"),
        (lambda t: {"copy": [float(v == "yes") for v in t["y"]]}, "copy"),
        (lambda t: {"copy": [None if v == "yes" else 5 for v in t["y"]]}, "copy"),
    ],
)
def test_a_copy_of_the_label_is_named(tmp_path, change, column):
    table = values()
    path = written(tmp_path / "t.csv", table | change(table))
    seen = surveyed(path, "bank: age; telco: *", options={"drop": ("id",)})
    assert seen.revealing[0].column == column
    sentence = revealing(seen.revealing[0], 2)
    assert "copy (telco) alone ranks the labels with AUC 1.00" in sentence
    assert "it all but is the label" in sentence


def test_only_columns_that_predict_as_well_as_all_together_are_warned_of(tmp_path):
    path = written(tmp_path / "t.csv", values())
    seen = surveyed(path, "bank: age; telco: *", options={"drop": ("id",)})
    columns = (RevealingColumn("copy", "telco", 0.95), RevealingColumn("age", "bank", 0.77))
    for together, warned in ((0.955, ["copy"]), (0.97, []), (0.77, ["copy", "age"])):
        notes = table_notes(seen._replace(revealing=columns, reach={"together": together}))
        assert [n.split(" (")[0] for n in notes if "alone ranks" in n] == warned
        others = [column.column for column in columns if column.column not in warned]
        (rest,) = [n for n in notes if "well by themselves" in n] or [""]
        assert [name for name in ("copy", "age") if f"{name} (" in rest] == others
        dropped = [n.partition("--option=drop=")[2] for n in notes if "--option=drop=" in n]
        assert dropped == [",".join(["id", *warned])] * bool(warned)


def test_a_telling_column_of_many_classes_is_named(tmp_path):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 5, 400)
    table = {"a": rng.normal(size=400).tolist(), "b": (y + rng.normal(0, 0.2, 400)).tolist()}
    table["y"] = [f"k{v}" for v in y]
    seen = surveyed(written(tmp_path / "t.csv", table), "bank: a; telco: b")
    assert [found.column for found in seen.revealing] == ["b"]
    assert "names the right one of 5 classes" in revealing(seen.revealing[0], 5)


def test_a_party_whose_columns_never_change_is_named(tmp_path):
    table = {**values(), "same": [1] * ROWS, "word": ["a"] * ROWS}
    path = written(tmp_path / "t.csv", table)
    assert surveyed(path, "bank: age, same; telco: pay, word").constant == ()
    seen = surveyed(path, "bank: age; telco: same, word")
    assert seen.constant == ("telco",)
    assert "No column of telco varies: it has nothing to attack with." in table_notes(seen)


def test_chance_in_few_rows_is_not_telling(tmp_path):
    table = {name: column[:10] for name, column in values().items()}
    table["y"] = ["yes"] * 3 + ["no"] * 7
    table["pay"] = [3.0, 2.9, 2.8, 1, 2, 0, 1, 0, 2, 1]
    assert not surveyed(written(tmp_path / "t.csv", table), "bank: age; telco: pay").revealing


def test_what_parties_reach_is_unknown_where_a_class_has_fewer_rows_than_there_are_folds(tmp_path):
    table = values()
    reach = surveyed(written(tmp_path / "t.csv", table)).reach
    assert list(reach) == ["bank", "telco", "together"]
    table["y"][:2] = ["rare"] * 2
    assert surveyed(written(tmp_path / "t.csv", table)).reach == {}


@pytest.mark.parametrize("count", [1, 19])
def test_a_column_of_few_numbers_is_left_out_of_boosting_and_named(tmp_path, path, count):
    note = [float(k) if k < count else None for k in range(ROWS)]
    parties = "bank: age, job; telco: pay*, note"
    seen = surveyed(written(tmp_path / "n.csv", values() | {"note": note}), parties)
    assert seen.sparse == ("note",)
    assert seen.reach == surveyed(path).reach
    assert "Gradient boosting leaves out columns of few numbers: note." in table_notes(seen)
    assert "note" in seen.owners["telco"]


def test_a_file_without_a_header_is_suspected(tmp_path):
    (tmp_path / "t.csv").write_text("age,1.5,y\n5,2.5,no\n6,3.5,yes\n")
    with pytest.raises(UserError) as error:
        surveyed(str(tmp_path / "t.csv"), "bank: a; telco: b", label="z")
    assert '--options={"header": null}' in line_of(error.value)


def test_the_remedy_drops_all_telling_columns_at_once(tmp_path):
    table = values()
    table |= {"copy of y": table["y"], "again": table["y"]}
    path = written(tmp_path / "t.csv", table)
    notes = table_notes(surveyed(path, "bank: age; telco: pay, copy of y, again"))
    (remedy,) = (note for note in notes if note.startswith("To leave"))
    flag = shlex.split(remedy.partition(": ")[2])[0].removeprefix("--option=")
    options = of_loader("table", converted(Options, [flag], argument("option")))
    assert not surveyed(path, "bank: age; telco: pay*", options=options).revealing


def test_names_as_people_have_them(tmp_path):
    odd = ["=1+1", "<b>x</b>", "two\nlines", " spaced ", "a;b"]
    table = {**values(), **{name: list(range(ROWS)) for name in odd}}
    file = tmp_path / "p.json"
    file.write_text(json.dumps({"bank": ["age", "=1+1", "two\nlines", "spaced"], "telco": ["*"]}))
    seen = surveyed(written(tmp_path / "t.csv", table), str(file), options={"drop": "id"})
    assert seen.owners["bank"] == ("age", "=1+1", "two lines", "spaced")
    assert {"<b>x</b>", "a;b"} <= set(seen.owners["telco"])


@pytest.mark.parametrize(
    ("parties", "label", "says"),
    [
        ("bank: age; telco: pay", "z", "column in label 'z'"),
        ("bank: age; telco: pay", "Y", "choose from id"),
        ("bank: age; telco: pya", "y", "did you mean 'pay'"),
        ("bank: age; telco: zz*", "y", "column of telco in parties 'zz*'"),
        ("bank: age, y; telco: pay", "y", "names 'y', which is the label"),
        ("bank: age, pay; telco: pay*", "y", "claimed by bank and telco"),
        ("bank: *; telco: *", "y", "both ask for the rest"),
        ("bank: age, job, id, pay*; telco: *", "y", "nothing is left for telco"),
        ("bank: age; telco: id", "y", "column 'id'"),
    ],
)
def test_parties_that_the_table_cannot_serve(path, parties, label, says):
    with refused(says):
        surveyed(path, parties, label)


@pytest.mark.parametrize("times", [1, 10])
def test_no_column_is_blamed_for_copies_of_rows(times, tmp_path):
    random = np.random.default_rng(2)
    columns = {name: random.normal(size=60).tolist() * times for name in ("age", "job", "pay")}
    y = random.permutation(np.arange(60) % 2).tolist() * times
    seen = surveyed(written(tmp_path / "t.csv", {**columns, "y": y}))
    assert not seen.revealing
    assert max(seen.reach.values()) < 0.8


def test_what_is_dropped_has_no_owner(path):
    with pytest.raises(UserError, match="'job', which is dropped or names groups"):
        surveyed(path, options={"drop": ("job",)})
    with pytest.raises(UserError, match="'job', which is dropped or names groups"):
        surveyed(path, options={"groups": "job"})
    seen = surveyed(path, "bank: age; telco: pay*", options={"groups": "job"})
    assert seen.dataset.groups is not None
    assert "job" not in seen.unowned


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"y": [None, *["no", "yes"] * 60][:ROWS]}, "drop_unlabeled"),
        ({"pay": [f"1,{k % 10}" for k in range(ROWS)]}, "mixes notations"),
        ({"pay": ["never" if k % 3 else str(k) for k in range(ROWS)]}, "na_values"),
    ],
)
def test_tables_that_can_be_read_in_two_ways_are_refused_with_the_flag(tmp_path, change, says):
    path = written(tmp_path / "t.csv", {**values(), **change})
    with pytest.raises(UserError) as error:
        surveyed(path)
    line = line_of(error.value)
    assert says in line
    assert "config." not in line
    assert "\n" not in line


def test_advantage_is_the_way_from_chance_to_certainty():
    assert above_chance(0.5, 2) == 0
    assert above_chance(1.0, 2) == 1
    assert above_chance(0.1, 10) == pytest.approx(0)
    assert above_chance(math.nan, 2) == 0
