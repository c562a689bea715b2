"""Entry points on a stored sweep that is damaged or not finished: what they say, and that it helps."""

import re
import shutil

import pytest

from tests.sweeps import comparable, flip
from vfljax import store


def last_shard(workdir):
    return sorted((workdir / "shards").iterdir())[-1]


def test_verify_says_that_a_sweep_is_sound_and_changes_nothing(launch, workdir):
    before = {path: path.stat().st_mtime_ns for path in workdir.rglob("*")}
    done = launch("verify", f"--workdir={workdir}")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"sound          shards/{last_shard(workdir).name}\n" in done.stdout
    assert re.search(r"^\d+ sound$", done.stdout, re.MULTILINE)
    assert {path: path.stat().st_mtime_ns for path in workdir.rglob("*")} == before


def test_verify_lists_damage_and_what_is_not_there_yet(launch, workdir):
    gone, *_, damaged = sorted((workdir / "shards").iterdir())
    shutil.rmtree(gone)
    done = launch("verify", f"--workdir={workdir}")
    assert done.returncode == 0
    assert f"not there yet  shards/{gone.name}\n" in done.stdout
    assert "not finished: 1 of 4 shards are not trained" in done.stdout
    flip(damaged / "results.parquet")
    done = launch("verify", f"--workdir={workdir}")
    assert done.returncode == 2
    why = "results.parquet does not match its checksum"
    assert f"damaged        shards/{damaged.name} ({why})\n" in done.stdout
    assert done.stderr.startswith(f"error: {workdir} is damaged in 1 of ")
    assert f"`vfljax sweep --workdir={workdir} --mend`" in done.stderr
    assert done.stderr.count("\n") == 1


def test_verify_checks_the_sweep_of_fresh_seeds_too(launch, workdir, tiny_sweep):
    confirmed = shutil.copytree(tiny_sweep, workdir / "confirmed")
    done = launch("verify", f"--workdir={workdir}")
    assert done.returncode == 0
    assert f"\n{confirmed}:\n" in done.stdout
    flip(last_shard(confirmed) / "results.parquet")
    done = launch("verify", f"--workdir={workdir}")
    assert done.returncode == 2
    assert f"`vfljax sweep --workdir={confirmed} --mend`" in done.stderr


@pytest.mark.parametrize("name", ["verify", "report", "attack", "sweep"])
def test_a_lost_header_is_one_line_wherever_it_is_read(refused, workdir, name):
    for record in ("sweep.json", "sweep.copy.json"):
        flip(workdir / record)
    line = refused(name, f"--workdir={workdir}")
    assert line.startswith(f"error: {workdir / 'sweep.json'} is damaged (")
    assert line.endswith("restore it, or start in a new workdir.\n")


@pytest.mark.slow
def test_damaged_teachers_of_a_missing_shard_are_mended_by_the_printed_command(
    launch, refused, workdir, tiny_sweep
):
    shutil.rmtree(last_shard(workdir))
    (teachers,) = (workdir / "shared").glob("teachers-*")
    flip(teachers / "arrays.npz")
    line = refused("sweep", f"--workdir={workdir}")
    assert f"{teachers} is damaged (" in line
    name, arguments = re.search(r"`vfljax (\w+) (.*)`", line).groups()
    done = launch(name, *arguments.split())
    assert done.returncode == 0, done.stderr
    assert (
        f"set aside: shared/{teachers.name} (arrays.npz does not match its checksum)" in done.stdout
    )
    mended, whole = store.load(workdir), store.load(tiny_sweep)
    assert mended.unfinished == ()
    assert comparable(mended.results) == comparable(whole.results)
    assert comparable(mended.attacks) == comparable(whole.attacks)
    assert (workdir / "damaged" / f"shared_{teachers.name}.0").is_dir()


def test_what_is_not_finished_is_refused_unless_asked_for(launch, refused, workdir, tiny_sweep):
    shutil.rmtree(last_shard(workdir))
    for name in ("report", "attack"):
        line = refused(name, f"--workdir={workdir}")
        assert f"{workdir} is not finished: 1 of 4 shards are not trained" in line
        assert f"`vfljax sweep --workdir={workdir}` goes on with it" in line
    for name in ("report", "attack"):
        done = launch(name, f"--workdir={workdir}", "--unfinished")
        assert done.returncode == 0, done.stderr
        assert "all tables and figures: " in done.stdout
    done = launch("sweep", f"--workdir={workdir}")  # goes on without its config file
    assert done.returncode == 0, done.stderr
    assert comparable(store.load(workdir).results) == comparable(store.load(tiny_sweep).results)


def test_a_sweep_goes_on_without_a_config_only_where_there_is_one(refused, tmp_path):
    line = refused("sweep", f"--workdir={tmp_path / 'new'}", "--mend")
    assert "holds no sweep: give a --config" in line
    assert not (tmp_path / "new").exists()
