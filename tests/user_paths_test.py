"""Paths as users give them: a home folder, colons, and URIs, at every door of the package."""

import pathlib

import numpy as np
import pandas as pd
import pytest

import vfljax
from tests.auditing.survey_test import values, written
from tests.refusals import refused as says
from tests.stored_sweep import FIXTURE
from tests.sweeps import tiny
from vfljax import datasets, store
from vfljax.api.partitioned_table import parties_of, partitioned_table
from vfljax.config import from_file, located
from vfljax.datasets import prepared
from vfljax.datasets.wire import wire
from vfljax.errors import UserError, user_path
from vfljax.models import weights
from vfljax.store import checkpoint

CONFIG = "def get_config(variant=''):\n    return {'name': 'mine', 'notes': (variant,)}\n"
URI = "s3://bucket/x"
AUDITED = {"label": "y", "parties": "bank: a; telco: b"}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home folder, beside the current one."""
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("~/runs/x", "home/runs/x"),
        ("~", "home"),
        ("./~/x", "here/~/x"),
        ("run-12:30:05", "here/run-12:30:05"),
        (pathlib.Path("~/x"), "home/x"),
    ],
)
def test_a_path_is_absolute_and_knows_the_home_folder(home, given, meant):
    assert user_path(given) == home.parent / meant
    assert user_path(user_path(given)) == home.parent / meant


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("s3://bucket/run", "is a URI and no path"),
        ("file:///tmp/run", "is a URI and no path"),
        ("~nobody_at_all/x", "of no known user: correct it, or give ./~nobody_at_all/x"),
        ("a\0b", "has characters that no path can have here"),
        ("caf\udce9", "set the environment variable PYTHONUTF8=1"),
    ],
)
def test_what_is_no_path_is_refused_with_its_value(home, given, what):
    with pytest.raises(UserError) as refusal:
        user_path(given, "workdir")
    assert str(refusal.value).startswith(f"workdir={given!r} ")
    assert what in str(refusal.value)
    assert str(refusal.value).isprintable()


DOORS = {
    "load": lambda p: vfljax.load(p),
    "run_sweep": lambda p: vfljax.run_sweep(tiny(), p),
    "a config": lambda p: vfljax.run_sweep(p, "new"),
    "an audit": lambda p: vfljax.audit(partitioned_table("x.csv", **AUDITED), p, say=print),
    "its table": lambda p: partitioned_table(p, **AUDITED),
    "its parties": lambda p: parties_of(f"{p}.json"),
    "attack_wire": lambda p: vfljax.attack_wire("x.npz", p),
    "its wire": lambda p: vfljax.attack_wire(p, "new"),
    "the wire under a defense": lambda p: vfljax.attack_wire("x.npz", "new", after=p),
    "a plugin": lambda p: vfljax.plugins.use(f"{p}.py"),
    "a data set": lambda p: datasets.load("table", p, {"label": "y"}),
    "a test file": lambda p: datasets.load(
        "table", written(pathlib.Path("t.csv"), values()), {"label": "y", "test_file": p}
    ),
    "a second wire": lambda p: wire("x.npz", runs=(p,)),
    "a vocabulary": lambda p: datasets.load("imdb", p, {"form": "wordpiece", "vocabulary": p}),
    "pretrained weights": lambda p: weights.digest(p),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_uri_is_refused_at_every_door_before_anything_is_made(home, door):
    with says("is a URI and no path: give a path on this machine"):
        DOORS[door](URI)
    made = {path.name for path in pathlib.Path.cwd().iterdir()}
    assert made <= {"t.csv"}


def test_a_config_s_folder_may_have_colons_and_a_home(home):
    for folder in (home, pathlib.Path("at-12:30")):
        folder.mkdir(exist_ok=True)
        (folder / "c.py").write_text(CONFIG)
    for given, variant in (
        ("~/c.py", ""),
        ("~/c.py:a:b", "a:b"),
        ("at-12:30/c.py", ""),
        ("at-12:30/c.py:a", "a"),
    ):
        assert from_file(given)["notes"] == [variant]
    assert located("configs/quickstart.py:x").variant == "x"  # comes with the package
    with says("config 'at-12' is not a file"):
        located("at-12:30/d.py")


def test_a_home_folder_is_known_to_what_reads_a_table(home):
    frame = pd.DataFrame(values())
    for name in ("t.csv", "more.csv"):
        frame.to_csv(home / name, index=False)
    options = {"label": "y", "drop": ("id",), "test_file": "~/more.csv"}
    read = datasets.load("table", "~/t.csv", options)
    assert read.test is not None
    assert read.test.sum() == len(frame)
    prepared.write(read, "~/made")
    assert datasets.load("prepared", "~/made", {}).name == "t.csv"
    assert not list(pathlib.Path.cwd().iterdir())


def test_a_sweep_is_stored_and_read_in_a_folder_of_any_name(home):
    workdir = pathlib.Path("run-12:30 a%20b#?")  # relative, as nothing but the store sees it
    tree, rows = {"w": np.arange(6.0).reshape(2, 3)}, [{"trial": k} for k in range(2)]
    with store.leading(workdir):
        store.write_shard(workdir, "0-a", rows, tree, {"epochs": np.zeros((2, 1), np.int32)})
    path = workdir / "shards" / "0-a"
    assert store.read_results(workdir, ["0-a"]).to_pylist() == rows
    np.testing.assert_array_equal(checkpoint.load_member(path / "checkpoint", 1)["w"], [3, 4, 5])
    assert [p.name for p in pathlib.Path.cwd().iterdir()] == [workdir.name]


@pytest.mark.parametrize("name", ["runs[1]", "C:\\runs\\x"])
def test_a_name_that_no_checkpoint_can_have_is_refused_before_the_work(home, name):
    with says("in its path, where no checkpoint can be written"), store.leading(pathlib.Path(name)):
        pass
    assert not list(pathlib.Path.cwd().iterdir())


def test_a_stored_sweep_is_loaded_from_the_home_folder(home):
    (home / "sweep").symlink_to(FIXTURE)
    assert vfljax.load("~/sweep").workdir == home / "sweep"
