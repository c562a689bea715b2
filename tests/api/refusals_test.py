"""Command lines and calls that cannot be meant: each is one line that names what is wrong."""

import functools
import shutil

import numpy as np
import pandas as pd
import pytest

import vfljax
from tests.auditing.survey_test import values
from tests.refusals import refused as one_line
from tests.stored_sweep import FIXTURE
from tests.sweeps import tiny

QUICK, W, TABLE = "--config=configs/quickstart.py", "--workdir={w}", "--dataset=table"

REFUSED = [
    ("sweep", [W], "holds no sweep: give a --config, for example configs/quickstart.py"),
    ("sweep", [QUICK, W, "--config.training.epoch=3"], "did you mean 'training.epochs'"),
    ("sweep", [QUICK, W, "--config.data.options.lable=y"], "has no field 'lable' for"),
    ("sweep", ["--config=nowhere.py", W], "nowhere.py"),
    ("sweep", [QUICK, W, "--launcher=ssh"], "unknown launcher 'ssh'"),
    ("sweep", [QUICK, W, "--jobs=2"], "inline uses all"),
    ("sweep", [QUICK, W, "--dry_run", "--confirm"], "leave --confirm out"),
    ("sweep", [QUICK, W, "--config.seeds=100000"], "beyond the limit of 10,000: choose"),
    ("sweep", [QUICK, W, "--config.seeds=100000000000", "--beyond_limits"], "to 2,147,483,647"),
    ("sweep", [QUICK, W, "--config.\x1b[2J=1"], r"\x1b[2J"),
    ("sweep", [QUICK, W, "--fail_verdict=nothing"], "unknown verdict of --fail_verdict 'nothing'"),
    ("sweep", ["--profile=tests"], "--profile='tests' cannot be written"),
    ("attack", ["--workdir=nowhere"], "nowhere holds no sweep"),
    ("attack", ["--known=5"], "--known is of a recorded exchange"),
    ("attack", ["--wire=a.npz", "--drop=norm"], "--drop is of a stored sweep"),
    ("attack", ["--drop=norm", "--attacks=mean", W], "leave --attacks out"),
    ("attack", ["--wire=a.npz,", W], "a.npz is missing"),
    ("attack", ["--wire=a.npz", W, "--after_utility=0.5"], "give --after"),
    ("reproduce", [], "give --table"),
    ("reproduce", ["--table=gafm/9"], "unknown --table 'gafm/9': did you mean"),
    ("reproduce", ["--table=gafm/2", "--dataset=mnist"], "data set of gafm/2"),
    (
        "reproduce",
        ["--table=gafm/2", "--dataset=spambase", "--variant=maxmin"],
        "variant of gafm/2",
    ),
    ("reproduce", ["--table=gafm/2", "--data_dir=nowhere", W], "is missing"),
    ("data", ["--dataset=digit"], "did you mean 'digits'"),
    ("data", ["--dataset=digits", "--option=x=1"], "unknown option of the data set digits 'x'"),
    ("data", [TABLE, "--option=label=y"], "--data_dir is empty: give the table's file"),
    ("data", ["--dataset=digits", "--passive=100000000"], "--passive=100000000 is beyond"),
    ("data", [TABLE, f"--data_dir={300 * 'x'}", "--option=label=y"], "File name too long"),
    ("data", ["--dataset=digits", f"--prepare={300 * 'x'}"], "File name too long"),
    ("data", ["--option=label=y"], "--option is of no data set: give --dataset=NAME"),
    ("data", [QUICK, "--dataset=digits"], "--dataset is given beside --config"),
]


@pytest.mark.parametrize(("command", "words", "line"), REFUSED)
def test_a_command_line_that_cannot_be_meant_is_one_line(refused, tmp_path, command, words, line):
    assert line in refused(command, *(word.replace("{w}", str(tmp_path / "w")) for word in words))
    assert not [*tmp_path.iterdir()]


CONFIGS = [
    ("def get_config():\n    return 1 / 0\n", ", line 2: ZeroDivisionError: division by zero"),
    ("def get_config(:\n    pass\n", ", line 1: SyntaxError: invalid syntax"),
    ("raise Exception('a\\nb \\x1b[31m')\n", r", line 1: Exception: a b \x1b[31m"),
    ("import sys\nsys.exit(0)\n", ", line 2: SystemExit: 0\n"),
    (
        "from vfljax.errors import UserError\ndef get_config():\n"
        "    try:\n        int('x')\n    except ValueError:\n"
        "        raise UserError('give a number')\n",
        ", line 6: give a number",
    ),
    ("def get_config():\n    pass\n", ": get_config() returned NoneType"),
]


@pytest.mark.parametrize(("source", "says"), CONFIGS)
def test_what_a_config_file_raises_is_one_line_with_its_place(refused, tmp_path, source, says):
    path = tmp_path / "bad.py"
    path.write_text(source)
    line = refused("sweep", f"--config={path}", f"--workdir={tmp_path / 'w'}")
    assert f"{path}{says}" in line


PARTIES = {"bank": ["age", "job"], "telco": ["pay*"]}
QUIET = {"say": lambda line: None}


def audit(folder, data=None, parties=PARTIES):
    table = vfljax.partitioned_table(pd.DataFrame(values()) if data is None else data, "y", parties)
    return vfljax.audit(table, folder / "audit", **QUIET)


@functools.cache
def sweep():
    return vfljax.load(FIXTURE)


MISUSES = [
    ("nowhere", lambda w: vfljax.load(w / "nowhere")),
    ("holds no sweep", lambda w: vfljax.load(w)),
    ("workdir is of type Sweep", lambda w: vfljax.load(sweep())),
    ("config is of type DataFrame", lambda w: vfljax.run_sweep(pd.DataFrame(), w / "new")),
    (
        "another --workdir",
        lambda w: vfljax.run_sweep(tiny(), shutil.copytree(FIXTURE, w / "audit"), **QUIET),
    ),
    ("label 'y'", lambda w: audit(w, pd.DataFrame(values()).drop(columns="y"))),
    ("DataFrame", lambda w: audit(w, np.zeros((10, 3)))),
    ("0 columns", lambda w: audit(w, pd.DataFrame())),
    ("give what vfljax.partitioned_table", lambda w: vfljax.audit("t.csv", w, **QUIET)),
    ("'wage'", lambda w: audit(w, parties={"bank": ["wage"], "telco": ["pay"]})),
    ("99", lambda w: sweep().trial(99)),
    ("'bottom'", lambda w: sweep().trial(0).weights()["bottom"]),
    ("'gradients'", lambda w: sweep().trial(0).exchange()["gradients"]),
    ("most_negative", lambda w: sweep().attack_rows("direct", rule=["most_negative"])),
    ("'frontiers'", lambda w: sweep().figure("frontiers")),
    ("'nosie'", lambda w: sweep().to_xarray("nosie")),
    ("not finished", lambda w: sweep().run_attacks("direct", **QUIET)),
    ("mine:nothing", lambda w: vfljax.testing.check("mine:nothing")),
]


@pytest.mark.parametrize(("says", "call"), MISUSES)
def test_a_call_that_cannot_be_meant_is_one_line(says, call, tmp_path):
    with one_line(says):
        call(tmp_path)
    # a frame is a file before it can be surveyed; the next call may give another
    assert {path.name for path in tmp_path.iterdir()} <= {"audit"}
