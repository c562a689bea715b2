"""Misuses of the Python API, written without looking at its code: each is one line that says what to do."""

import functools
import pathlib
import shutil
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import vfljax
from tests.auditing.survey_test import values
from tests.stored_sweep import FIXTURE
from tests.sweeps import tiny
from vfljax.errors import UserError

QUIET: dict[str, Any] = {"say": lambda line: None}
NOISE = {"noise": {"noise": {"scale": 0.1}}}
PARTIES = {"bank": ["age", "job"], "telco": ["pay*"]}


def audit(folder: pathlib.Path, **changes: Any) -> Any:
    asked = {"table": pd.DataFrame(values()), "label": "y", "parties": PARTIES}
    return vfljax.audit(**{**asked, "workdir": folder / "audit", **QUIET, **changes})


def run(folder: pathlib.Path, config: Any = None, **fields: Any) -> Any:
    config = tiny(**fields) if config is None else config
    return vfljax.run_sweep(config, folder / "new", **QUIET)


@functools.cache
def sweep() -> Any:
    return vfljax.load(FIXTURE)


MISUSES: dict[str, Callable[[pathlib.Path], Any]] = {
    # loading
    "a folder that is missing": lambda w: vfljax.load(w / "nowhere"),
    "a folder without a sweep": lambda w: vfljax.load(w),
    "a file": lambda w: vfljax.load(__file__),
    "a sweep for a path": lambda w: vfljax.load(sweep()),
    "a shard's folder": lambda w: vfljax.load(FIXTURE / "shards" / "00000-kdk"),
    # running
    "swapped arguments": lambda w: vfljax.run_sweep(str(w), tiny()),
    "no workdir": lambda w: vfljax.run_sweep(tiny()),
    "a frame for a config": lambda w: run(w, config=pd.DataFrame({"a": [1]})),
    "a config file that is missing": lambda w: run(w, config="nothing.py"),
    "a config file that is a folder": lambda w: run(w, config=w),
    "a defense without a method": lambda w: run(w, grid={"noise": {"scale": 0.1}}),
    "the folder of another sweep": lambda w: vfljax.run_sweep(
        tiny(), shutil.copytree(FIXTURE, w / "audit"), **QUIET
    ),
    # auditing
    "a frame without the label": lambda w: audit(w, table=pd.DataFrame(values()).drop(columns="y")),
    "an array for a frame": lambda w: audit(w, table=np.zeros((10, 3))),
    "a table that is missing": lambda w: audit(w, table="mine.csv"),
    "an empty frame": lambda w: audit(w, table=pd.DataFrame()),
    "no parties": lambda w: audit(w, parties=None),
    "parties as a list": lambda w: audit(w, parties=["age", "pay"]),
    "a party's columns as a number": lambda w: audit(w, parties={"bank": 3, "telco": ["pay"]}),
    "an unknown column": lambda w: audit(w, parties={"bank": ["wage"], "telco": ["pay"]}),
    "an unknown label party": lambda w: audit(w, label_party="shop"),
    "a budget as a word": lambda w: audit(w, budget="soon"),
    "a negative budget": lambda w: audit(w, budget=-5),
    "negative seeds": lambda w: audit(w, seeds=-1),
    "a max_leak above 1": lambda w: audit(w, max_leak=40),
    "the label party as an attacker": lambda w: audit(w, attackers=["bank"]),
    "an unknown option of the table": lambda w: audit(w, options={"separator": ";"}),
    # a stored sweep
    "an unknown trial": lambda w: sweep().trial(99),
    "a trial by its name": lambda w: sweep().trial("noise"),
    "a part of the weights": lambda w: sweep().trial(0).weights()["bottom"],
    "a party that there is not": lambda w: sweep().trial(0).weights()["bottoms"][7],
    "a part of the exchange": lambda w: sweep().trial(0).exchange()["gradients"],
    "an attack that was not run": lambda w: sweep().attack("spectral"),
    "no attack": lambda w: sweep().attack(),
    "an attack's option": lambda w: sweep().attack("direct", rul="most_negative"),
    "an attack's value": lambda w: sweep().attack("direct", rule=["most_negative"]),
    "an unknown figure": lambda w: sweep().figure("frontiers"),
    "a figure by number": lambda w: sweep().figure(1),
    "labeled arrays of an unknown method": lambda w: sweep().to_xarray("nosie"),
    "new attacks that there are not": lambda w: sweep().run_attacks(["dirct"], **QUIET),
    "new attacks of a number": lambda w: sweep().run_attacks(3, **QUIET),
    "new attacks of an unfinished sweep": lambda w: sweep().run_attacks("direct", **QUIET),
    "one sweep compared": lambda w: vfljax.compare(sweep()),
    "a path compared": lambda w: vfljax.compare(sweep(), str(FIXTURE)),
    "frames compared": lambda w: vfljax.compare(sweep().leaks(), sweep().leaks()),
    # the package
    "a name that vfljax does not have": lambda w: vfljax.plugins.use(w / "none.py"),
    "a plugin that is no path": lambda w: vfljax.plugins.use(4),
    "a contract of no row": lambda w: vfljax.testing.check("mine:nothing"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_a_misuse_is_one_line_that_says_what_to_do(name, tmp_path):
    with pytest.raises((UserError, TypeError, KeyError)) as refused:
        MISUSES[name](tmp_path)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600
    if not isinstance(refused.value, UserError):  # Python itself refuses the call
        frames = traceback.extract_tb(refused.value.__traceback__)
        assert frames[-1].filename == __file__
    # a frame is a file before it can be surveyed; the next call may give another
    assert {path.name for path in tmp_path.iterdir()} <= {"audit"}
