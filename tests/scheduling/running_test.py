"""What commands do with the folder of a sweep before and after it is trained."""

import re

import pytest

from tests.refusals import refused
from tests.sweeps import TINY, attack_units, tiny
from vfljax import store
from vfljax.scheduling import running
from vfljax.sweep.grid import parse


def test_a_dry_run_counts_what_is_left_and_writes_nothing(tiny_sweep, tmp_path):
    text = running.counted(parse(TINY), tmp_path / "w")
    assert text.startswith("24 trials in 2 programs on 2 cpu devices, 2 shards to train: about ")
    assert re.search(r"^kdk\+noise +\d+ +\d+ +1 +1$", text, re.MULTILINE)
    assert re.search(r"^passive +1 +runs$", text, re.MULTILINE)
    assert re.search(r"^norm +1 +defined for two classes", text, re.MULTILINE)
    assert not (tmp_path / "w").exists()
    before = {path: path.stat().st_mtime_ns for path in tiny_sweep.rglob("*")}
    text = running.counted(parse(TINY), tiny_sweep)
    assert "0 shards to train: all of them are stored" in text
    with refused("holds another sweep (training.epochs: 3 -> 4)"):
        running.counted(parse(tiny(**{"training.epochs": 4})), tiny_sweep)
    assert {path: path.stat().st_mtime_ns for path in tiny_sweep.rglob("*")} == before


def test_an_attack_that_is_dropped_is_gone_with_its_progress(workdir, capsys):
    (unit,) = attack_units(workdir, "passive")
    store.write_partial_rows(workdir, unit, [{"trial": 1}])
    with refused("unknown attack 'direkt': did you mean 'direct'?", f"stored in {workdir}."):
        running.drop_attacks(workdir, ["norm", "direkt"])
    running.drop_attacks(workdir, ["passive", "direct/most_negative"])
    assert capsys.readouterr().out == "dropped: passive, direct/most_negative\n"
    labels = {*store.load(workdir).attacks["label"].to_pylist()}
    assert labels == {"direct/first_negative"}
    assert not (workdir / unit).exists()
    assert not (workdir / "partial" / unit).exists()
    assert "passive" not in (workdir / "attacks.csv").read_text()


def test_a_drop_that_is_killed_leaves_no_row_that_is_read(workdir, monkeypatch):
    """The header goes first: what is left of the folders is named by no plan."""

    def kill(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(running.shutil, "rmtree", kill)
    with pytest.raises(KeyboardInterrupt):
        running.drop_attacks(workdir, ["direct"])
    assert {*store.load(workdir).attacks["label"].to_pylist()} == {"passive"}
