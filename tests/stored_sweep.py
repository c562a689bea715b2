"""The stored sweep in tests/fixtures, which pins the schema: what it holds must stay readable.

    python -m tests.stored_sweep

makes it anew, after the schema has a new number: the shard ``KILLED`` was killed after one of three epochs,
the one after it was never begun, and those before are trained; direct and probe were run on the shards that
were trained then, passive was killed after its first save, active was never run.
``stored_sweep_expected.json`` holds its tables and the digests of its arrays.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import shutil
import tempfile
from typing import Any
from unittest import mock

import jax
import numpy as np

from tests.damage import killed
from tests.sweeps import attack, silent
from vfljax import store
from vfljax.attack_runs import batching, planning
from vfljax.scheduling import running
from vfljax.sweep.grid import parse

FIXTURE = pathlib.Path(__file__).parent / "fixtures" / "stored_sweep"
EXPECTED = FIXTURE.with_name("stored_sweep_expected.json")
KILLED = "00004-kdk+compression-mlp-7"
KEPT = ("shared", "shards", "local_only", "attacks", "partial")
CONFIG: dict[str, Any] = {
    "name": "stored_sweep",
    "seeds": 2,
    "data": {"name": "digits", "train": 48, "validation": 40, "test": 40, "scaling": "range"},
    "model": {"hidden": (8,), "cut": 4, "top": "head"},
    "training": {"epochs": 3, "batch_size": 16, "learning_rate": 0.05, "milestones": (2,)},
    "teacher": {"hidden": (8,), "epochs": 2},
    "grid": {
        "undefended": {},
        "kdk": {"kdk": {"epsilon": (0.0, 0.45), "k": 2}},
        "wide": {"kdk": {"epsilon": 0.45, "k": 2}, "model": {"top": "mlp", "top_hidden": (6,)}},
        "noise": {"noise": {"scale": 0.01}},
        "kdk+compression": {  # with a top model of its own, or it would share the first shards
            "kdk": {"epsilon": 0.45, "k": 2},
            "compression": {"keep_rate": 0.5},
            "model": {"top": "mlp", "top_hidden": (7,)},
        },
    },
    "attacks": {
        "passive": {"known": 20, "steps": 8, "ema": 0.9},
        "active": {"known": 20, "steps": 8, "ema": 0.9},
        "direct": {"rule": ("first_negative", "most_negative")},
        "probe": {"known": (10, 20), "steps": 20},
        "norm": {},
    },
}


def make(workdir: pathlib.Path) -> None:
    """Train and attack the sweep as far as the module says, with a block of attacks for each shard."""
    with mock.patch.object(planning, "BLOCK", 1):
        with killed("write_partial", lambda name: name == KILLED):
            running.finish(parse(CONFIG), workdir, "python -m tests.stored_sweep", silent)
        plan = running.stored_plan(workdir, unfinished=True)
        attack(workdir, ["direct", "probe", "norm"], plan)
        few = mock.patch.object(batching, "BATCH_SIZE", 4)  # trials of a call, after which it saves
        with few, killed("write_partial_rows"):
            attack(workdir, ["passive"], plan)


def digest(array: np.ndarray) -> str:
    """A hash of an array's type, shape and values."""
    array = np.ascontiguousarray(array)
    text = f"{array.dtype} {array.shape} ".encode()
    return hashlib.sha256(text + array.tobytes()).hexdigest()[:16]


def digests(tree: Any) -> dict[str, str]:
    """A digest for each array of a tree, by its path there."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): digest(x) for path, x in leaves}


def contents(workdir: pathlib.Path) -> dict[str, Any]:
    """All that can be read of the sweep, as JSON holds it: its tables, and digests of its arrays."""
    sweep = store.load(workdir)
    ids = sweep.results["trial"].to_pylist()
    names = ("results", "attacks", "local_only")
    tables = {name: getattr(sweep, name).to_pydict() for name in names}
    content = {
        **tables,
        "weights": {str(number): digests(sweep.trial(number).weights()) for number in ids},
        "exchange": {str(number): digests(sweep.trial(number).exchange()) for number in ids},
        "splits": digests(sweep.splits()),
    }
    return json.loads(json.dumps(content))


if __name__ == "__main__":
    shutil.rmtree(FIXTURE, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:  # orbax writes the path of the folder
        make(pathlib.Path(folder, "sweep"))
        shutil.move(pathlib.Path(folder, "sweep"), FIXTURE)
    for path in FIXTURE.iterdir():
        if path.name not in ("sweep.json", "sweep.copy.json", *KEPT):
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
    EXPECTED.write_text(json.dumps(contents(FIXTURE)) + "\n")
