"""The library's public functions, as a notebook calls them."""

import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import vfljax
from tests.sweeps import tiny
from vfljax.api.forms import AXES
from vfljax.attack_runs.view import attack_input, common_data, view_of
from vfljax.auditing import survey
from vfljax.config import ordered
from vfljax.errors import UserError
from vfljax.scheduling import running
from vfljax.scheduling.work import Outcome
from vfljax.store import loading
from vfljax.sweep.grid import parse
from vfljax.types import Agreed

QUIET = {"say": lambda line: None}


@pytest.fixture(scope="module")
def sweep(tiny_sweep):
    return vfljax.load(tiny_sweep)


def test_a_finished_sweep_goes_on_with_more_attacks(workdir, monkeypatch):
    reported = []
    monkeypatch.setattr(
        running, "report", lambda folder, verbose=False: reported.append(folder) or ""
    )
    sweep = vfljax.run_sweep(tiny(), workdir, **QUIET)
    sweep.require_finished()
    done = sweep.run_attacks({"direct": {"epoch": "mean"}}, **QUIET)
    labels = [{*of.attacks["label"].to_pylist()} for of in (sweep, done)]
    assert labels[1] - labels[0] == {"direct/mean"}
    assert done.results.equals(sweep.results)
    assert any(line.startswith("norm: ") for line in done.not_attacked())
    done.report()
    assert reported == [workdir] * 3


def test_a_frame_holds_what_the_tables_hold(sweep):
    sweep = sweep._replace(attacks=sweep.attacks.filter(pc.field("trial") > 0))
    frame = sweep.frame()  # also of the trial without attacks
    attacked = set(sweep.attacks["trial"].to_pylist())
    assert len(frame) == sweep.attacks.num_rows + sweep.results.num_rows - len(attacked)
    assert frame.columns.is_unique
    row = sweep.attacks.to_pylist()[-1]
    (same,) = frame[
        (frame["label"] == row["label"])
        & (frame["trial"] == row["trial"])
        & (frame["seed"] == row["seed"])
    ].to_dict("records")
    assert same["leak"] == row["leak"]
    trained = sweep.results.to_pylist()[row["trial"]]
    assert same["test_accuracy"] == trained["test_accuracy"]
    assert same["noise.scale"] == trained["noise.scale"] or math.isnan(same["noise.scale"])


def test_a_config_may_be_a_mapping_its_records_or_a_file(tmp_path, monkeypatch):
    trained = []
    monkeypatch.setattr(
        running, "finish", lambda experiment, *_: trained.append(experiment) or Outcome({})
    )
    monkeypatch.setattr(running, "report", lambda folder, verbose=False: "")
    monkeypatch.setattr("vfljax.api.loading.load", lambda folder: folder)
    config, file = tiny(seeds=4), tmp_path / "mine.py"
    file.write_text(f"def get_config():\n    return {config!r}\n")
    for form in (config, ordered(config), parse(config), file, str(file)):
        assert vfljax.run_sweep(form, str(tmp_path / "w"), **QUIET) == tmp_path / "w"
    assert {experiment.seeds for experiment in trained} == {4}
    assert len({str(experiment.grid) for experiment in trained}) == 1


def test_an_arrow_table_with_nan_is_the_same_table_again(tmp_path):
    (tmp_path / "sweep.json").touch()  # an audit that has begun keeps its frame
    for last in (math.nan, math.nan, 1.0):
        table = pa.table({"a": pa.array([1.5, float("nan"), last]), "y": [0, 1, 0]})
        if last == 1.0:
            with pytest.raises(UserError, match="another frame"):
                survey.written_frame(table, tmp_path)
        else:
            assert survey.written_frame(table, tmp_path).exists()


def test_labeled_arrays_of_nothing_are_empty_and_without_the_extra_say_what_to_install(
    sweep, monkeypatch
):
    pytest.importorskip("xarray")
    none = sweep._replace(results=loading.NO_ROWS, attacks=loading.NO_ROWS).to_xarray()
    assert dict(none.sizes) == dict.fromkeys(AXES, 0)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(UserError, match=r"needs xarray: pip install 'vfljax\[analysis\]'"):
        sweep.to_xarray()


def test_the_plan_of_a_stored_sweep_has_the_data_that_attacks_by_hand_need(sweep):
    plan, row = sweep.plan, sweep.trial(0).row
    common = common_data(plan.table, sweep.splits(), parties=(0,))
    given = attack_input(sweep.workdir, row, "by hand", {}, attackers=(0,))
    view = view_of(jax.tree.map(jnp.asarray, given), common, Agreed(64))
    np.testing.assert_array_equal(view.gradients, sweep.trial(0).exchange()["party0_gradients"])
    assert view.features[0].shape == (320, 8, 4)
    assert plan.groups[0].spec.bottoms[0].out == 4


def test_records_are_of_the_rows_that_the_leading_attack_was_scored_on(sweep):
    records, splits = sweep.records(), sweep.splits()
    assert len(records)
    assert not records.duplicated(["configuration", "panel", "row"]).any()
    trained = np.bincount(splits["train"].ravel(), minlength=len(splits["labels"]))
    assert (records["runs"] <= trained[records["row"].astype(int)]).all()
    assert (records["read"] <= records["runs"]).all()
    assert records["read"].any()
