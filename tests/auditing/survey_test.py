"""A table looked at before anything is trained: owners, what nobody owns, and what gives labels away."""

import json
import math
import shlex

import numpy as np
import pytest

from tests.refusals import refused
from vfljax.api.arguments import naming_arguments
from vfljax.api.audit import FIELDS
from vfljax.api.commands import COMMANDS
from vfljax.api.flags import spelled
from vfljax.api.partitioned_table import parties_of
from vfljax.auditing.sentences import known_note, revealing, table_notes
from vfljax.auditing.survey import PartitionedTable, RevealingColumn, Survey, above_chance, survey
from vfljax.errors import UserError

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


def surveyed(path, parties="", label="y", options=None, label_party="bank") -> Survey:
    owners = parties_of(parties or PARTIES)
    return survey(PartitionedTable(path, label, owners, label_party, options or {}))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return written(tmp_path_factory.mktemp("table") / "t.csv", values())


@pytest.fixture(scope="module")
def plain(path):
    """The survey of a table of which there is nothing to say."""
    return surveyed(path)


def test_owners_and_what_nobody_owns(plain):
    assert plain.owners == {"bank": ("age", "job"), "telco": ("pay", "pay2")}
    assert plain.unowned == ("id",)
    assert {column.name for column in plain.dataset.columns} == {"age", "job", "pay", "pay2"}
    assert plain.dataset.classes == ("no", "yes")
    assert not plain.revealing
    assert not plain.constant
    assert list(plain.reach) == ["bank", "telco", "together"]


def test_the_rest_is_everything_else_and_no_glob_takes_the_label(tmp_path):
    table = values()
    table["pay_y"] = table.pop("y")
    path = written(tmp_path / "t.csv", table)
    seen = surveyed(path, "bank: *; telco: pay?*", "pay_y", options={"drop": ("id",)})
    assert seen.owners == {"bank": ("age", "pay", "job"), "telco": ("pay2",)}


@pytest.mark.parametrize(
    "copy",
    [
        lambda y: [float(v == "yes") for v in y],
        lambda y: [None if v == "yes" else 5 for v in y],  # that a value is missing tells too
    ],
)
def test_a_copy_of_the_label_is_named(tmp_path, copy):
    table = values()
    path = written(tmp_path / "t.csv", table | {"copy": copy(table["y"])})
    seen = surveyed(path, "bank: age; telco: *", options={"drop": ("id",)})
    assert seen.revealing[0].column == "copy"
    sentence = revealing(seen.revealing[0], 2)
    assert "copy (telco) alone ranks the labels with AUC 1.00" in sentence
    assert "it all but is the label" in sentence


def test_of_labels_that_are_numbers_a_copy_is_named_by_its_concordance(tmp_path):
    table = values()
    table["y"] = np.random.default_rng(1).normal(size=ROWS).round(3).tolist()
    path = written(tmp_path / "t.csv", table | {"copy": [-y for y in table["y"]]})
    seen = surveyed(path, "bank: age; telco: *", options={"drop": ("id",), "task": "regression"})
    assert [column.column for column in seen.revealing] == ["copy"]
    assert seen.revealing[0].leak > 0.8  # of a tree of few leaves


def test_only_columns_that_predict_as_well_as_all_together_are_warned_of(plain):
    """The remedy drops all of them, and what is dropped already."""
    columns = (RevealingColumn("a copy", "telco", 0.95), RevealingColumn("age", "bank", 0.77))
    plain = plain._replace(options={**plain.options, "drop": ("old", *plain.unowned)})
    for together, warned in ((0.955, ["a copy"]), (0.97, []), (0.77, ["a copy", "age"])):
        notes = table_notes(plain._replace(revealing=columns, reach={"together": together}))
        assert [n.split(" (")[0] for n in notes if "alone ranks" in n] == warned
        others = [column.column for column in columns if column.column not in warned]
        (rest,) = [n for n in notes if "well by themselves" in n] or [""]
        assert [name for name in ("a copy", "age") if f"{name} (" in rest] == others
        dropped = [shlex.split(n.partition(": ")[2])[0] for n in notes if n.startswith("To leave")]
        assert dropped == [f"--option=drop={','.join(['old', *warned])}"] * bool(warned)


def test_a_telling_column_of_many_classes_is_named(tmp_path):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 5, 200)
    table = {"a": rng.normal(size=200).tolist(), "b": (y + rng.normal(0, 0.2, 200)).tolist()}
    table["y"] = [f"k{v}" for v in y]
    seen = surveyed(written(tmp_path / "t.csv", table), "bank: a; telco: b")
    assert [found.column for found in seen.revealing] == ["b"]
    assert "names the right one of 5 classes" in revealing(seen.revealing[0], 5)


def test_a_party_whose_columns_never_change_is_named(tmp_path):
    table = {**values(), "same": [1] * ROWS, "word": ["a"] * ROWS}
    path = written(tmp_path / "t.csv", table)
    seen = surveyed(path, "bank: age; telco: same, word")
    assert seen.constant == ("telco",)
    assert "No column of telco varies: it has nothing to attack with." in table_notes(seen)


def test_fewer_known_labels_than_by_default_are_explained_by_the_rarest_class(plain):
    labels = np.repeat([0, 1], (110, 10))
    dataset = plain.dataset._replace(labels=labels.astype(np.int32))
    assert known_note(dataset, 40) == []
    (note,) = known_note(dataset, 6)
    assert note.startswith("Attackers know 6 labels and not 40: of class yes, which has 10 rows")


def test_chance_in_few_rows_is_not_telling(tmp_path):
    table = {name: column[:10] for name, column in values().items()}
    table["y"] = ["yes"] * 3 + ["no"] * 7
    table["pay"] = [3.0, 2.9, 2.8, 1, 2, 0, 1, 0, 2, 1]
    assert not surveyed(written(tmp_path / "t.csv", table), "bank: age; telco: pay").revealing


def test_what_parties_reach_is_unknown_where_a_class_has_fewer_rows_than_there_are_folds(tmp_path):
    table = values()
    table["y"][:2] = ["rare"] * 2
    assert surveyed(written(tmp_path / "t.csv", table)).reach == {}


def test_columns_reach_as_much_in_the_other_direction(path, monkeypatch):
    def reversed_chances(model, x, y, **rest):
        return np.stack([y, 1 - y], axis=1)

    monkeypatch.setattr("vfljax.auditing.survey.cross_val_predict", reversed_chances)
    assert {*surveyed(path).reach.values()} == {1.0}


def test_a_column_of_few_numbers_is_left_out_of_boosting_and_named(tmp_path, plain):
    note = [float(k) if k < 19 else None for k in range(ROWS)]
    parties = "bank: age, job; telco: pay*, note"
    seen = surveyed(written(tmp_path / "n.csv", values() | {"note": note}), parties)
    assert seen.sparse == ("note",)
    assert seen.reach == plain.reach
    assert "Gradient boosting leaves out columns of few numbers: note." in table_notes(seen)
    assert "note" in seen.owners["telco"]


def test_faults_of_a_table_are_refused_with_the_flag_that_mends_them(tmp_path):
    (tmp_path / "t.csv").write_text("age,1.5,y\n5,2.5,no\n6,3.5,yes\n")
    unlabeled = values() | {"y": [None, *["no", "yes"] * 60][:ROWS]}
    for path, label, says in (
        (str(tmp_path / "t.csv"), "z", '--options={"header": null}'),
        (written(tmp_path / "u.csv", unlabeled), "y", "--option=drop_unlabeled"),
    ):
        with pytest.raises(UserError) as error, naming_arguments(FIELDS):
            surveyed(path, "bank: age; telco: *", label=label)
        line = error.value.line(spelled(COMMANDS["audit"]))
        assert says in line
        assert "config." not in line


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


def test_no_column_is_blamed_for_copies_of_rows(tmp_path):
    random = np.random.default_rng(2)
    columns = {name: random.normal(size=60).tolist() * 10 for name in ("age", "job", "pay")}
    y = random.permutation(np.arange(60) % 2).tolist() * 10
    seen = surveyed(written(tmp_path / "t.csv", {**columns, "y": y}))
    assert not seen.revealing
    assert max(seen.reach.values()) < 0.8


def test_what_is_dropped_has_no_owner(path):
    for options in ({"drop": ("job",)}, {"groups": "job"}):
        with refused("'job', which is dropped or names groups"):
            surveyed(path, options=options)
    seen = surveyed(path, "bank: age; telco: pay*", options={"groups": "job"})
    assert seen.dataset.groups is not None
    assert "job" not in seen.unowned


def test_advantage_is_the_way_from_chance_to_certainty():
    assert above_chance(0.5, 2) == 0
    assert above_chance(1.0, 2) == 1
    assert above_chance(0.1, 10) == pytest.approx(0)
    assert above_chance(math.nan, 2) == 0
