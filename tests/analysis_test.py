"""The analysis scripts run; the notebooks are ``notebooks_test``'s."""

import csv
import sys

import numpy as np
import pyarrow as pa
import pytest

from analysis import canaries, deviations, knowers, precision
from tests.report.made import made
from vfljax import config as config_file
from vfljax import store
from vfljax.report.epsilon_lower_bounds import Guesses, epsilon_at_least
from vfljax.report.frames import read_frames
from vfljax.store import header


def test_limits_of_canaries_are_of_the_guesses_of_each_run_at_the_level_that_is_asked():
    counts = (366, 250, 480)
    runs = [Guesses("split", "direct", 500, right) for right in counts]
    for level in canaries.LEVELS:
        of = [epsilon_at_least(500, right, level) for right in counts]
        assert canaries.bounds(runs, level) == f"{np.mean(of):.2f}, {of[2]:.2f}, 1"


def test_precisions_are_paired_by_configuration_panel_and_seed():
    def sweep(*figures):
        utilities = ({"probe": [leak] * 3, "test_utility": [u] * 3} for u, leak in figures)
        return made(*utilities, seeds=3, base=0.5)

    exact, rounded = sweep((0.9, 0.7), (0.8, 0.51)), sweep((0.88, 0.7), (0.8, 0.57))
    every = list(precision.pairs(exact, rounded))
    assert [(p.configuration, p.figure) for p in every] == [
        (name, figure)
        for name in ("undefended", "noise")
        for figure in ("accuracy", "strongest attack")
    ]
    assert [round(pair.change.mean, 9) for pair in every] == [-0.02, 0.0, 0.0, 0.06]
    assert [pair.certain for pair in every] == [True, False, False, True]
    attacks = precision.by_attack(exact, rounded, "bfloat16")
    (row,) = attacks.to_numpy().tolist()
    assert row == ["probe", "with model splitting", "0.605", "0.635", "+0.060 (noise)"]
    judgments = precision.verdicts(exact, rounded, "bfloat16")
    assert judgments["configuration"].tolist() == ["noise"]
    for column, judged in (("float32", exact), ("bfloat16", rounded)):
        assert judgments[column].tolist() == [str(judged.leading["verdict"].iloc[1])]
    text = precision.section(exact, rounded, "bfloat16", "balanced top-1")
    assert "change of the accuracy: -0.020 (undefended, with model splitting)" in text
    sweeps = dict(zip(precision.VARIANTS, (exact, rounded, exact), strict=True))
    seeds = precision.by_seed(sweeps)
    assert len(seeds) == 12
    first = {"configuration": "undefended", "federation": "split", "figure": "accuracy", "seed": 0}
    first |= {"float32": 0.9, "bfloat16": 0.88, "control": 0.9}
    assert seeds.iloc[0].to_dict() == pytest.approx(first)


def test_the_precisions_compared_differ_in_that_alone():
    configs = (config_file.resolve(precision.get_config(name)) for name in precision.VARIANTS)
    exact, rounded, control = configs
    assert [*map(str, header.differences(exact, rounded))] == [
        "name: networks in float32 -> networks in bfloat16",
        "training.precision: float32 -> bfloat16",
    ]
    (name, rate) = header.differences(exact, control)
    assert str(name) == "name: networks in float32 -> networks in control"
    assert str(rate).startswith("training.learning_rate: 0.01 -> 0.01000001")


def test_what_knowers_read_is_the_highest_leak_of_those_that_a_row_names(
    tiny_sweep, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "argv", ["knowers", str(tiny_sweep), f"--out={tmp_path}"])
    knowers.main()
    lines = (tmp_path / "tables.md").read_text().splitlines()[2:]
    cells = {line.split(" | ")[0].strip("| "): line.split(" | ")[1:] for line in lines}
    rows, trials, *_ = read_frames(store.load(tiny_sweep))
    assert len(cells) == trials["configuration"].nunique()
    of = trials.loc[trials["method"] == "noise", "trial"]
    most = rows.loc[(rows["attack"] == "direct") & rows["trial"].isin(of), "leak"].max()
    text = f"{most:.3f}".removeprefix("0")
    assert any(cell.startswith(text) for cell in cells["noise scale=.01"])


def test_deviations_are_tabulated_beside_the_honest_federation(tiny_sweep, tmp_path, monkeypatch):
    sweep = store.load(tiny_sweep)

    def deviating(table):
        """The rows without a top model as those of a malicious party."""
        rows = table.to_pylist()
        renamed = [
            {**r, "federation": r["federation"].replace("no_split", "malicious-0")} for r in rows
        ]
        return pa.Table.from_pylist(renamed, table.schema)

    sweep = sweep._replace(results=deviating(sweep.results), attacks=deviating(sweep.attacks))
    monkeypatch.setattr(store, "load", lambda workdir: sweep)
    monkeypatch.setattr(sys, "argv", ["deviations", str(tiny_sweep), f"--out={tmp_path}"])
    deviations.main()
    path = tmp_path / "deviations.csv"
    (line,) = [x for x in csv.DictReader(path.open()) if x["method"] == "undefended"]
    results = sweep.results.to_pylist()
    for kind, federation in (("honest", "split"), ("deviating", "malicious-0")):
        rows = [r for r in results if (r["method"], r["federation"]) == ("undefended", federation)]
        loss = np.mean([r["loss"][-1] for r in rows])
        assert float(line[f"{kind}_loss"]) == pytest.approx(loss, 1e-4)
    others = [{**x, "data": "other"} for x in deviations.stored_lines(path)]
    path.write_text(deviations.as_csv(others))
    deviations.main()  # lines of other sweeps are kept
    lines = deviations.stored_lines(path)
    assert len(lines) == 2 * len(others)
    assert deviations.as_csv(lines[: len(others)]) == deviations.as_csv(others)
