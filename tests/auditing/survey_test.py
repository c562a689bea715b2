"""A table looked at before anything is trained: owners, what nobody owns, and what gives labels away."""

import json
import math
import shlex

import numpy as np
import pytest

from tests.refusals import refused
from vfljax.auditing import survey as surveying
from vfljax.auditing.request import PARTIES, Request, flag_of, options_of, parties_of
from vfljax.auditing.sentences import revealing, table_notes
from vfljax.auditing.survey import RevealingColumn, above_chance, survey
from vfljax.datasets.partition import owned_columns
from vfljax.errors import UserError

ROWS = 120


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


def asked(path, parties="bank: age, job; telco: pay*", label="y", **changes):
    fields = {"data": path, "label": label, "parties": parties_of(parties), "label_party": "bank"}
    fields["seeds"] = 3
    return Request(**{**fields, **changes})


@pytest.fixture
def path(tmp_path):
    return written(tmp_path / "t.csv", values())


def test_owners_and_what_nobody_owns(path):
    seen = survey(asked(path))
    assert seen.owners == {"bank": ("age", "job"), "telco": ("pay", "pay2")}
    assert seen.unowned == ("id",)
    assert {column.name for column in seen.dataset.columns} == {"age", "job", "pay", "pay2"}
    assert seen.dataset.classes == ("no", "yes")
    assert not seen.revealing
    assert not seen.constant


def test_the_rest_is_everything_else_but_the_label(path):
    seen = survey(asked(path, "bank: *; telco: pay2", options={"drop": ("id",)}))
    assert seen.owners["bank"] == ("age", "pay", "job")


def test_a_glob_never_takes_the_label(tmp_path):
    table = values()
    table["pay_y"] = table.pop("y")
    seen = survey(asked(written(tmp_path / "t.csv", table), label="pay_y"))
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
    seen = survey(asked(path, "bank: age; telco: *", options={"drop": ("id",)}))
    assert seen.revealing[0].column == column
    sentence = revealing(seen.revealing[0], 2)
    assert "copy (telco) alone ranks the labels with AUC 1.00" in sentence
    assert "it all but is the label" in sentence


def test_only_columns_that_tell_as_much_as_all_together_are_warned_of(tmp_path):
    path = written(tmp_path / "t.csv", values())
    seen = survey(asked(path, "bank: age; telco: *", options={"drop": ("id",)}))
    columns = (RevealingColumn("copy", "telco", 0.95), RevealingColumn("age", "bank", 0.77))
    for together, warned in ((0.955, ["copy"]), (0.97, []), (0.77, ["copy", "age"])):
        notes = table_notes(seen._replace(revealing=columns, reach={"together": together}))
        assert [n.split(" (")[0] for n in notes if "alone ranks" in n] == warned
        others = [column.column for column in columns if column.column not in warned]
        (rest,) = [n for n in notes if "tell much by themselves" in n] or [""]
        assert [name for name in ("copy", "age") if f"{name} (" in rest] == others
        assert any("--option=drop=" in n for n in notes) is bool(warned)


def test_a_telling_column_of_many_classes_is_named(tmp_path):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 5, 400)
    table = {"a": rng.normal(size=400).tolist(), "b": (y + rng.normal(0, 0.2, 400)).tolist()}
    table["y"] = [f"k{v}" for v in y]
    seen = survey(asked(written(tmp_path / "t.csv", table), "bank: a; telco: b"))
    assert [found.column for found in seen.revealing] == ["b"]
    assert "names the right one of 5 classes" in revealing(seen.revealing[0], 5)


def test_a_party_whose_columns_never_change_is_named(tmp_path):
    table = {**values(), "same": [1] * ROWS, "word": ["a"] * ROWS}
    path = written(tmp_path / "t.csv", table)
    assert survey(asked(path, "bank: age, same; telco: pay, word")).constant == ()
    seen = survey(asked(path, "bank: age; telco: same, word"))
    assert seen.constant == ("telco",)
    assert "No column of telco varies: it has nothing to attack with." in table_notes(seen)


def test_chance_in_few_rows_is_not_telling(tmp_path):
    table = {name: column[:10] for name, column in values().items()}
    table["y"] = ["yes"] * 3 + ["no"] * 7
    table["pay"] = [3.0, 2.9, 2.8, 1, 2, 0, 1, 0, 2, 1]
    assert not survey(asked(written(tmp_path / "t.csv", table), "bank: age; telco: pay")).revealing


def test_what_parties_reach_is_unknown_where_a_class_has_fewer_rows_than_there_are_folds(tmp_path):
    table = values()
    reach = survey(asked(written(tmp_path / "t.csv", table))).reach
    assert list(reach) == ["bank", "telco", "together"]
    table["y"][:2] = ["rare"] * 2
    assert survey(asked(written(tmp_path / "t.csv", table))).reach == {}


@pytest.mark.parametrize("count", [1, 19])
def test_a_column_of_few_numbers_is_left_out_of_boosting_and_named(tmp_path, path, count):
    note = [float(k) if k < count else None for k in range(ROWS)]
    parties = "bank: age, job; telco: pay*, note"
    seen = survey(asked(written(tmp_path / "n.csv", values() | {"note": note}), parties))
    assert seen.sparse == ("note",)
    assert seen.reach == survey(asked(path)).reach
    assert "Gradient boosting leaves out columns of few numbers: note." in table_notes(seen)
    assert "note" in seen.owners["telco"]


def test_a_column_whose_numbers_are_all_in_rows_that_are_not_judged_is_left_out(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(surveying, "ROWS", 60)
    judged = np.random.default_rng(0).choice(ROWS, 60, replace=False)
    note = [None if k in judged else 1.0 * k for k in range(ROWS)]
    path = written(tmp_path / "n.csv", values() | {"note": note})
    seen = survey(asked(path, "bank: age, job; telco: note"))
    assert seen.sparse == ("note",)
    assert set(seen.reach) == {"bank", "together"}


def test_a_file_without_a_header_is_suspected(tmp_path):
    (tmp_path / "t.csv").write_text("age,1.5,y\n5,2.5,no\n6,3.5,yes\n")
    with pytest.raises(UserError) as error:
        survey(asked(str(tmp_path / "t.csv"), "bank: a; telco: b", label="z"))
    assert '--options={"header": null}' in error.value.line(flag_of)


def test_the_remedy_drops_all_telling_columns_at_once(tmp_path):
    table = values()
    table |= {"copy of y": table["y"], "again": table["y"]}
    path = written(tmp_path / "t.csv", table)
    notes = table_notes(survey(asked(path, "bank: age; telco: pay, copy of y, again")))
    (remedy,) = (note for note in notes if note.startswith("To leave"))
    flag = shlex.split(remedy.partition(": ")[2])[0].removeprefix("--option=")
    request = asked(path, "bank: age; telco: pay*", options=options_of([flag]))
    assert not survey(request).revealing


@pytest.mark.parametrize(
    ("delimiter", "encoding", "options"),
    [
        (";", "utf-8", {}),
        ("\t", "utf-8-sig", {}),
        (",", "utf-16", {}),
        (",", "latin-1", {"options": {"encoding": "latin-1"}}),
    ],
)
def test_files_as_people_have_them(tmp_path, delimiter, encoding, options):
    table = {"größe" if name == "age" else name: v for name, v in values().items()}
    path = written(tmp_path / "t.csv", table, delimiter, encoding)
    seen = survey(asked(path, "bank: größe, job; telco: pay*", options=options))
    assert seen.owners["bank"] == ("größe", "job")


def test_names_as_people_have_them(tmp_path):
    odd = ["=1+1", "<b>x</b>", "two\nlines", " spaced ", "a;b"]
    table = {**values(), **{name: list(range(ROWS)) for name in odd}}
    file = tmp_path / "p.json"
    file.write_text(json.dumps({"bank": ["age", "=1+1", "two\nlines", "spaced"], "telco": ["*"]}))
    seen = survey(asked(written(tmp_path / "t.csv", table), str(file), options={"drop": "id"}))
    assert seen.owners["bank"] == ("age", "=1+1", "two lines", "spaced")
    assert {"<b>x</b>", "a;b"} <= set(seen.owners["telco"])


@pytest.mark.parametrize(
    ("parties", "label", "says"),
    [
        ("bank: age; telco: pay", "z", "column in --label 'z'"),
        ("bank: age; telco: pay", "Y", "choose from id"),
        ("bank: age; telco: pya", "y", "did you mean 'pay'"),
        ("bank: age; telco: zz*", "y", "column of telco in --parties 'zz*'"),
        ("bank: age, y; telco: pay", "y", "names 'y', which is the label"),
        ("bank: age, pay; telco: pay*", "y", "claimed by bank and telco"),
        ("bank: *; telco: *", "y", "both ask for the rest"),
        ("bank: age, job, id, pay*; telco: *", "y", "nothing is left for telco"),
        ("bank: age; telco: id", "y", "column 'id'"),
    ],
)
def test_parties_that_the_table_cannot_serve(path, parties, label, says):
    with refused(says):
        survey(asked(path, parties, label))


@pytest.mark.parametrize("times", [1, 10])
def test_no_column_is_blamed_for_copies_of_rows(times, tmp_path):
    random = np.random.default_rng(2)
    columns = {name: random.normal(size=60).tolist() * times for name in ("age", "job", "pay")}
    y = random.permutation(np.arange(60) % 2).tolist() * times
    seen = survey(asked(written(tmp_path / "t.csv", {**columns, "y": y})))
    assert not seen.revealing
    assert max(seen.reach.values()) < 0.8


def test_what_is_dropped_has_no_owner(path):
    with pytest.raises(UserError, match="'job', which is dropped or names groups"):
        survey(asked(path, options={"drop": ("job",)}))
    with pytest.raises(UserError, match="'job', which is dropped or names groups"):
        survey(asked(path, options={"groups": "job"}))
    seen = survey(asked(path, "bank: age; telco: pay*", options={"groups": "job"}))
    assert seen.dataset.groups is not None
    assert "job" not in seen.unowned


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"y": ["no"] * ROWS}, "y"),
        ({"y": [None, *["no", "yes"] * 60][:ROWS]}, "drop_unlabeled"),
        ({"y": ["No", "no", *["yes"] * 118]}, "alike"),
        ({"y": np.linspace(0.1, 1.9, ROWS).tolist()}, "y"),
        ({"pay": [f"1,{k % 10}" for k in range(ROWS)]}, "mixes notations"),
        ({"pay": [f"{k}%" for k in range(ROWS)]}, "plain numbers"),
        ({"pay": [f"x{k}" for k in range(ROWS)]}, "categorical"),
        ({"pay": ["never" if k % 3 else str(k) for k in range(ROWS)]}, "na_values"),
    ],
)
def test_tables_that_can_be_read_in_two_ways_are_refused_with_the_flag(tmp_path, change, says):
    path = written(tmp_path / "t.csv", {**values(), **change})
    with pytest.raises(UserError) as error:
        survey(asked(path))
    line = error.value.line(flag_of)
    assert says in line
    assert "config." not in line
    assert "\n" not in line


def test_a_table_that_is_none(tmp_path):
    for name, content in (("e.csv", ""), ("h.csv", "age,pay,y\n"), ("z.csv", "PK\x03\x04")):
        (tmp_path / name).write_text(content)
        with refused():
            survey(asked(str(tmp_path / name), "bank: age; telco: pay"))
    with refused("is missing"):
        survey(asked(str(tmp_path / "absent.csv"), "bank: age; telco: pay"))


def test_one_message_names_some_of_many_columns():
    names = [f"column {k}" for k in range(5000)]
    with pytest.raises(UserError) as error:
        owned_columns(names, {"a": ("column 7x",), "b": ("column 1",)}, PARTIES)
    assert len(str(error.value)) < 600


def test_advantage_is_the_way_from_chance_to_certainty():
    assert above_chance(0.5, 2) == 0
    assert above_chance(1.0, 2) == 1
    assert above_chance(0.1, 10) == pytest.approx(0)
    assert above_chance(math.nan, 2) == 0
