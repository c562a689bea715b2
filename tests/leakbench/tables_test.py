"""The stored tables of LeakBench are those of its entries, and a release is kept for good."""

import io
import json

import msgspec
import pandas as pd
import pytest

from analysis.leakbench import tables
from analysis.leakbench.autoleak import autoleak
from tests.leakbench.ranking_test import EVERY
from vfljax.errors import UserError


def test_the_stored_table_is_that_of_the_entries():
    remedy = "python -m analysis.leakbench.tables"
    there = tables.BOARDS_CSV.read_text() if tables.BOARDS_CSV.exists() else ""
    assert there == tables.text(tables.stored()), remedy


def test_without_results_of_the_version_there_is_no_table(tmp_path):
    bare = [msgspec.structs.replace(entry, results={}) for entry in EVERY]
    assert tables.text(bare) == ""
    with pytest.raises(UserError, match=f"no entry has results of AutoLeak {autoleak().version}"):
        tables.release(bare, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_a_row_has_what_its_score_has():
    table = pd.read_csv(io.StringIO(tables.text(EVERY)), dtype={"autoleak": str})
    assert len(table) == 7 * 12
    best = table[(table["entry"] == "best") & (table["outcome"] == "scored")].squeeze()
    assert (best["rank"], best["leak"], best["autoleak"]) == (1, 0.7, autoleak().version)
    assert pd.isna(best["verified"])
    assert json.loads(best["by_seed"]) == pytest.approx([0.66, 0.68, 0.7, 0.72, 0.74])


def test_a_release_is_not_written_twice(tmp_path):
    folder = tables.release(EVERY, tmp_path)
    assert (folder / "boards.csv").read_text() == tables.text(EVERY)
    with pytest.raises(UserError, match="kept for good"):
        tables.release(EVERY[:2], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [autoleak().version]


def test_a_release_has_scores_of_its_version_alone():
    folders = [path for path in tables.RELEASES.iterdir() if path.is_dir()]
    for folder in folders:
        table = pd.read_csv(folder / "boards.csv", dtype={"autoleak": str})
        assert {*table["autoleak"]} == {folder.name}
        assert json.loads((folder / "autoleak.json").read_text())["version"] == folder.name
    assert folders


def test_what_moved_is_listed_with_its_strength_and_counted():
    before = pd.read_csv(io.StringIO(tables.text(EVERY)))
    now = before.copy()
    scored = now.index[now["outcome"] == "scored"][:3]
    now.loc[scored, "leak"] += [0.03, -0.1, 0.01]
    now.loc[scored[1], "knobs"] = '{"noise.scale": 7.0}'
    table = tables.moved(before, now)
    assert table["moved"].tolist() == pytest.approx([0.03, -0.1])
    assert table["strength"].tolist() == ["same", "another"]
    assert tables.counted(table)["size"].sum() == 2
