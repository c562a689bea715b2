"""Entry points on a stored sweep that is damaged or not finished: what they say, and that it helps."""

import re
import shutil

from tests.sweeps import attack_units, comparable, flip
from vfljax import store
from vfljax.report import page
from vfljax.scheduling import running


def last_shard(workdir):
    return sorted((workdir / "shards").iterdir())[-1]


def test_verify_lists_what_is_sound_damaged_and_not_there_yet_and_changes_nothing(launch, workdir):
    before = {path: path.stat().st_mtime_ns for path in workdir.rglob("*")}
    done = launch("verify", f"--workdir={workdir}")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(rf"^sound +shards/{re.escape(last_shard(workdir).name)}$", done.stdout, re.M)
    assert re.search(r"^\d+ sound$", done.stdout, re.MULTILINE)
    assert {path: path.stat().st_mtime_ns for path in workdir.rglob("*")} == before
    gone, *_, damaged = sorted((workdir / "shards").iterdir())
    shutil.rmtree(gone)
    done = launch("verify", f"--workdir={workdir}")
    assert done.returncode == 0
    assert re.search(rf"^not there yet +shards/{re.escape(gone.name)}$", done.stdout, re.M)
    assert "not finished: 1 of 2 shards are not trained" in done.stdout
    flip(damaged / "results.parquet")
    done = launch("verify", f"--workdir={workdir}")
    assert done.returncode == 2
    why = "results.parquet does not match its checksum"
    assert re.search(rf"^damaged +shards/{re.escape(damaged.name)} \({why}\)$", done.stdout, re.M)
    assert done.stderr.startswith(f"error: {workdir} is damaged in 1 of ")
    assert f"`vfljax sweep --workdir={workdir}`" in done.stderr
    assert done.stderr.count("\n") == 1


def test_verify_checks_the_sweep_of_fresh_seeds_too(launch, workdir, tiny_sweep):
    confirmed = shutil.copytree(tiny_sweep, workdir / "confirmed")
    done = launch("verify", f"--workdir={workdir}")
    assert done.returncode == 0
    assert f"\n{confirmed}:\n" in done.stdout
    flip(last_shard(confirmed) / "results.parquet")
    done = launch("verify", f"--workdir={workdir}")
    assert done.returncode == 2
    assert f"`vfljax sweep --workdir={confirmed}`" in done.stderr


def test_a_lost_header_is_one_line_wherever_it_is_read(refused, workdir):
    for record in ("sweep.json", "sweep.copy.json"):
        flip(workdir / record)
    for name in ("verify", "report", "attack", "sweep"):
        line = refused(name, f"--workdir={workdir}")
        assert line.startswith(f"error: {workdir / 'sweep.json'} is damaged (")
        assert line.endswith("restore it, or start in a new workdir.\n")


def test_what_is_not_finished_is_refused_unless_asked_for(launch, refused, workdir, monkeypatch):
    shutil.rmtree(last_shard(workdir))
    for name in ("report", "attack"):
        line = refused(name, f"--workdir={workdir}")
        assert f"{workdir} is not finished: 1 of 2 shards are not trained" in line
        assert f"`vfljax sweep --workdir={workdir}` goes on with it" in line
    monkeypatch.setattr(page, "present", lambda *_, verbose: "the report")
    done = launch("report", f"--workdir={workdir}", "--unfinished")
    assert (done.returncode, done.stdout) == (0, "the report\n")


def test_the_printed_remedy_helps_and_needs_no_config(
    launch, refused, workdir, tiny_sweep, monkeypatch
):
    monkeypatch.setattr(running, "report", lambda folder, verbose=False: "")
    damaged = attack_units(workdir, "direct/most_negative")[0]
    (file,) = (workdir / damaged).glob("*.parquet")
    flip(file)
    line = refused("sweep", f"--workdir={workdir}")
    assert f"{workdir / damaged} is damaged (" in line
    printed = re.search(r"delete it, and `vfljax (\w+) (.*)`", line)
    assert printed is not None
    name, arguments = printed.groups()
    shutil.rmtree(workdir / damaged)
    done = launch(name, *arguments.split())
    assert done.returncode == 0, done.stderr
    mended, whole = store.load(workdir), store.load(tiny_sweep)
    assert mended.unfinished == ()
    assert comparable(mended.attacks) == comparable(whole.attacks)
