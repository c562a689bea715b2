"""Damages files and folders of a sweep, and checks what its commands make of it.

    python -m tests.damage --trials=100

Each trial copies a sweep that is finished, or was killed in training or in attacks, and damages one file or
folder of it: a flipped bit, a truncation, a deletion, a new name, or two that are exchanged. Tables and arrays
that are read then must be those of the undamaged sweep, unless one line refuses them. The command of the sweep
must end in the undamaged tables, bit for bit but for times, once all that is named as damaged is deleted. The
exit status is 0 if all is well.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import pathlib
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import jax

from vfljax import machine

if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 2)
    machine.keep_compiled_programs(machine.default_cache(), min_compile_seconds=0.1)

import numpy as np

from tests.kills import bits, figures
from tests.sweeps import silent, tiny, train
from vfljax import store
from vfljax.errors import UserError
from vfljax.scheduling import running
from vfljax.sweep import shard_trainer
from vfljax.sweep.grid import parse

# small, of several shards, with teachers, and attacks of both federations and kinds of baseline
CONFIG = tiny(
    seeds=1,
    data={"name": "digits", "train": 96, "validation": 64, "test": 64, "scaling": "range"},
    grid={"undefended": {}, "kdk": {"kdk": {"epsilon": (0.0, 0.45), "k": 2}}},
    attacks={"probe": {"known": 20}, "direct": {"rule": "most_negative"}, "norm": {}},
    **{"training.epochs": 3},
)


def finish(workdir: pathlib.Path) -> None:
    """Does what ``vfljax sweep`` does, but for the report."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        running.finish(parse(CONFIG), workdir, "test", silent).check()


class Killed(BaseException):
    """Stands for a kill."""


@contextlib.contextmanager
def killed(function: str, when: Callable[[str], bool] = lambda name: True) -> Iterator[None]:
    """Ends the block after a call of ``store.<function>`` on a shard or unit of whose name ``when`` holds;
    progress is saved after every epoch."""
    write = getattr(store, function)

    def kill(workdir: pathlib.Path, name: str, *rest: Any) -> None:
        write(workdir, name, *rest)
        if when(name):
            raise Killed

    with (
        contextlib.suppress(Killed),
        mock.patch.object(store, function, kill),
        mock.patch.object(shard_trainer, "SAVE_SECONDS", 0.0),
    ):
        yield


def half_finished(workdir: pathlib.Path) -> None:
    """Makes a sweep that was killed in training its second shard, after a save, with nothing attacked."""
    saved = set()
    with killed("write_partial", lambda name: saved.add(name) or len(saved) == 2):
        train(workdir, CONFIG)


def half_attacked(workdir: pathlib.Path) -> None:
    """Makes a trained sweep that was killed after the first save of an attack."""
    with killed("write_partial_rows"):
        train(workdir, CONFIG)


# --- damage: each changes one file or folder and says what it did ---

# for people: nothing reads them
IGNORED = ("results.parquet", "results.csv", "attacks.parquet", "attacks.csv")


def flip(path: pathlib.Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes() or b"\0")
    bit = rng.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    return f"bit {bit} flipped"


def truncate(path: pathlib.Path, rng: random.Random) -> str:
    content = path.read_bytes()
    length = rng.randrange(max(1, len(content)))
    path.write_bytes(content[:length])
    return f"cut to {length} bytes"


def delete(path: pathlib.Path, rng: random.Random) -> str:
    del rng
    path.unlink()
    return "deleted"


def rename(path: pathlib.Path, rng: random.Random) -> str:
    """Gives a file or folder another name: the next number, if its name is one."""
    name = str(int(path.name) + 1) if path.name.isdecimal() else f"{path.name}{rng.randrange(9)}"
    with contextlib.suppress(OSError):  # a folder of that name is there
        path.rename(path.with_name(name))
    return f"renamed to {name}"


def exchange(path: pathlib.Path, rng: random.Random) -> str:
    """Exchanges a file with another file, or a folder with another folder, beside it or elsewhere."""
    root = path
    while not (root / "sweep.json").exists() and not (root / "sweep.copy.json").exists():
        root = root.parent
    same = [
        p
        for p in sorted(root.rglob("*"))
        if p.is_dir() == path.is_dir() and p not in path.parents and path not in p.parents
    ]
    alike = [p for p in same if p.name == path.name and p != path]
    other = rng.choice(alike or same)
    aside = root / "aside"
    path.rename(aside)
    if other != path:
        other.rename(path)
    aside.rename(other)
    return f"exchanged with {other.relative_to(root)}"


OF_FILES = (flip, flip, truncate, delete, rename, exchange)
OF_FOLDERS = (rename, exchange)


def kinds(workdir: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """Returns the paths of all files and folders that may be read, relative to the sweep's, by their kind."""
    found: dict[str, list[pathlib.Path]] = {}
    for path in sorted(workdir.rglob("*")):
        name = path.relative_to(workdir)
        if name.parts[0] not in IGNORED:
            drawn = (part.isdecimal() or len(part) == 32 or "-" in part for part in name.parts)
            kind = "/".join("*" if d else part for d, part in zip(drawn, name.parts, strict=True))
            found.setdefault(kind, []).append(name)
    return found


def drawn_damage(workdir: pathlib.Path, rng: random.Random) -> tuple[pathlib.Path, Any]:
    """Draws a kind of file or folder, one of that kind, and a damage."""
    of_kinds = kinds(workdir)
    path = rng.choice(of_kinds[rng.choice(sorted(of_kinds))])
    return path, rng.choice(OF_FOLDERS if (workdir / path).is_dir() else OF_FILES)


class State(NamedTuple):
    """A sweep to damage, and what it is without damage."""

    workdir: pathlib.Path
    tables: dict[str, bytes]  # of its end
    finished: bool
    arrays: dict[int, Any]  # by trial


def states(folder: pathlib.Path) -> dict[str, State]:
    """Makes the sweeps that are damaged."""
    done, trained, attacked = (folder / name for name in ("done", "trained", "attacked"))
    finish(done)
    half_finished(trained)
    half_attacked(attacked)
    tables, arrays = bits(figures(done)), {n: arrays_of(done, n) for n in (0, 3)}
    return {
        "finished": State(done, tables, True, arrays),
        "killed in training": State(trained, tables, False, {}),
        "killed in attacks": State(attacked, tables, False, {0: arrays[0]}),
    }


def arrays_of(workdir: pathlib.Path, number: int) -> list[tuple[str, bytes]]:
    """Returns one trial's arrays, as a notebook reads them."""
    trial = store.load(workdir).trial(number)
    leaves = jax.tree_util.tree_leaves_with_path((trial.weights(), trial.exchange()))
    return [(jax.tree_util.keystr(p), np.asarray(a).tobytes()) for p, a in leaves]


def said(call: Callable[[], Any]) -> tuple[Any, str]:
    """Returns what a command returns, and the one line that it ends with otherwise."""
    try:
        return call(), ""
    except UserError as error:
        line = str(error)
        assert len(line.splitlines()) == 1, f"more than one line: {line}"
        return None, line


def trial(state: State, path: pathlib.Path, damage: Any, rng: random.Random) -> tuple[str, str]:
    """Damages a copy of a sweep. Returns what went wrong, "" if nothing; and what was done and said."""
    with tempfile.TemporaryDirectory() as folder:
        workdir = pathlib.Path(folder) / "w"
        shutil.copytree(state.workdir, workdir)
        what = f"{path} {damage(workdir / path, rng)}"
        try:
            wrong, lines = _judged(state, workdir)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-3:]
            places = " < ".join(f"{p.filename.split('/')[-1]}:{p.lineno}" for p in reversed(where))
            return f"{type(error).__name__}: {error} ({places})", what
    return wrong, f"{what}: {next(filter(None, lines), 'unnoticed')[:200]}"


def delete_damaged(workdir: pathlib.Path) -> None:
    """Deletes what is named as damaged, as a user does; what another damage had hidden is named next."""
    while damaged := [f.unit for f in store.inspect(workdir) if f.state == "damaged"]:
        for part in (workdir / unit for unit in damaged):
            shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)
        if {*damaged} <= {"sweep.json", "sweep.copy.json"}:
            return  # the command writes it again from the other copy


def _judged(state: State, workdir: pathlib.Path) -> tuple[str, list[str]]:
    """Returns what a damaged sweep's commands do wrong, and what they say."""
    found, line = said(lambda: bits(figures(workdir)))
    lines = [line]
    if found is not None and (not state.finished or found != state.tables):
        return "other tables", lines
    for number, arrays in state.arrays.items():
        read, line = said(lambda number=number: arrays_of(workdir, number))
        lines.append(line)
        if read is not None and read != arrays:
            return f"other arrays of trial {number}", lines
    findings, line = said(lambda: list(store.inspect(workdir)))
    lines += [line, *(f"{f.unit}: {f.why}" for f in findings or () if f.state == "damaged")]
    _, line = said(lambda: finish(workdir))
    lines.append(line)
    if line and ": delete it, and" not in line:
        return f"no remedy in {line!r}", lines
    if any(lines):
        delete_damaged(workdir)
        finish(workdir)
    if bits(figures(workdir)) != state.tables:
        return "other tables after the remedy", lines
    damaged = [f for f in store.inspect(workdir) if f.state == "damaged"]
    return f"still damaged: {damaged}" if damaged else "", lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, bad, said_of = random.Random(given.seed), 0, collections.Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        sweeps = states(pathlib.Path(folder))
        for _ in range(given.trials):
            name = rng.choice(sorted(sweeps))
            path, damage = drawn_damage(sweeps[name].workdir, rng)
            wrong, what = trial(sweeps[name], path, damage, rng)
            print(f"{wrong or 'well'} | {name}: {what}", flush=True)
            bad += bool(wrong)
            said_of[damage.__name__] += 1
    print(f"{bad} of {given.trials} went wrong: {dict(said_of)}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
