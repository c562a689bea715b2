"""The answers of networks and of trees on one table, each named by the other."""

import json

from tests.report.made import BARE, PROTECTS, made
from vfljax.report import beside
from vfljax.report.first_screen import answers

SOURCES = [
    {"name": "age", "read_as": "number", "owner": 0},
    {"name": "y", "read_as": "label", "owner": None},
]


def audit(folder, trees=False, sources=SOURCES):
    judged = made(BARE, PROTECTS, workdir=str(folder))
    data = judged.sweep.header["data"] | {"sources": sources} | ({"trees": True} if trees else {})
    folder.mkdir(exist_ok=True)
    header = judged.sweep.header | {"data": data}
    return judged._replace(sweep=judged.sweep._replace(header=header))


def test_networks_and_trees_of_one_table_name_each_others_answer(tmp_path):
    networks, trees = audit(tmp_path / "a"), audit(tmp_path / "b", trees=True)
    beside.write(networks, {"": "Nothing to protect."})
    assert beside.others(networks) == []
    assert beside.others(trees) == [("Networks", "Nothing to protect. (a)")]
    (screen,) = answers(trees)
    assert ("Networks", "Nothing to protect. (a)") in screen.rows
    assert screen.words <= 120


def test_another_table_and_files_of_others_are_not_named(tmp_path):
    beside.write(audit(tmp_path / "a"), {"": "Nothing to protect."})
    other = [SOURCES[0] | {"owner": 1}, SOURCES[1]]
    assert beside.others(audit(tmp_path / "b", trees=True, sources=other)) == []
    (tmp_path / "a" / beside.FILE).write_text("{")
    assert beside.others(audit(tmp_path / "c", trees=True)) == []
    (tmp_path / "a" / beside.FILE).write_text(json.dumps([1]))
    assert beside.others(audit(tmp_path / "c", trees=True)) == []
    plain = made(BARE, PROTECTS, workdir=str(tmp_path / "d"))
    beside.write(plain, {"": "x"})
    assert not (tmp_path / "d").exists()
