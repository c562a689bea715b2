"""Damage every kind of file of a sweep, and see what its commands do: ``python -m tests.damage [--flips N]``.

Each trial copies a finished or a half-finished sweep, damages one file (a flipped bit, truncation,
deletion, a new name, two files exchanged), and runs report, attack, loading and verification. Each must
end with the very same figures or with one line that names the remedy. The remedy is then run, and must
end in the table of the undamaged sweep, row for row. Without options the whole is run (hours on two
cores); the test suite runs a few trials of each kind.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
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

from tests.sweeps import comparable, silent, tiny, train
from vfljax import store
from vfljax.errors import UserError
from vfljax.launching import running
from vfljax.report import not_run, terminal
from vfljax.report.judged import judge_sweep
from vfljax.sweep import trainer
from vfljax.sweep.experiment import parse
from vfljax.sweep.plan import Plan, make_plan

# small, of several shards, with teachers, and attacks of both federations and kinds of baseline
CONFIG = tiny(
    seeds=1,
    data={"name": "digits", "train": 96, "validation": 64, "test": 64, "scaling": "range"},
    grid={"undefended": {}, "kdk": {"kdk": {"epsilon": (0.0, 0.45), "k": 2}}},
    attacks={"probe": {"known": 20}, "direct": {"rule": "most_negative"}, "norm": {}},
    **{"training.epochs": 3},
)


class Figures(NamedTuple):
    """What a sweep's commands say."""

    results: list[dict[str, Any]]
    attacks: list[dict[str, Any]]
    text: str


def figures(workdir: pathlib.Path) -> Figures:
    """Tables and report of a sweep; raises UserError as launch.report does."""
    sweep = store.load(workdir)
    sweep.require_finished()
    found = judge_sweep(workdir)  # what launch.report prints; the page draws the same
    text = "\n".join([terminal.first_lines(found), *not_run.remarks(found)])
    return Figures(without_times(sweep.results), without_times(sweep.attacks), text)


def without_times(table: Any) -> list[dict[str, Any]]:
    rows = comparable(table)
    return [{k: (repr(v) if isinstance(v, float) else v) for k, v in row.items()} for row in rows]


def finish(plan: Plan, workdir: pathlib.Path, mend: bool = False) -> None:
    """What ``launch.sweep`` does, with or without ``--mend``."""
    with contextlib.redirect_stderr(io.StringIO()):
        if mend:
            with store.leading(workdir):
                store.mend(workdir)
        running.finish(plan.experiment, workdir, "test", silent).check()


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
        mock.patch.object(trainer, "SAVE_SECONDS", 0.0),
    ):
        yield


def half_finished(workdir: pathlib.Path) -> None:
    """A sweep killed in training its second shard, after a save, with nothing attacked."""
    saved = set()
    with killed("write_partial", lambda name: saved.add(name) or len(saved) == 2):
        train(workdir, CONFIG)


def half_attacked(workdir: pathlib.Path) -> None:
    """A trained sweep killed after the first save of an attack."""
    with killed("write_partial_rows"):
        train(workdir, CONFIG)


# --- damage: each changes one file and says what it did ---

IGNORED = ("results.parquet", "results.csv", "attacks.parquet", "attacks.csv", "report.html")


def files_of(workdir: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """Every file that is ever read, by its kind."""
    kinds: dict[str, list[pathlib.Path]] = {}
    for path in sorted(p for p in workdir.rglob("*") if p.is_file()):
        parts = path.relative_to(workdir).parts
        if path.name.startswith(".") or parts[0] in ("figures", "damaged"):
            continue
        if len(parts) == 1 and path.name in IGNORED:  # for people: nothing reads them
            continue
        names = [part for number, part in enumerate(parts) if number != 1 and not is_name(part)]
        kinds.setdefault("/".join(names), []).append(path)
    return kinds


def is_name(part: str) -> bool:
    """A name that was drawn: of a block, or a chunk of a checkpoint."""
    return part.isdecimal() or len(part) == 32 or (part.endswith(".parquet") and "-" in part)


def flip(path: pathlib.Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    bit = rng.randrange(8 * max(1, len(content)))
    if content:
        content[bit // 8] ^= 1 << bit % 8
    else:
        content = bytearray(b"\1")
    path.write_bytes(content)
    return f"bit {bit} flipped"


def truncate(path: pathlib.Path, rng: random.Random) -> str:
    content = path.read_bytes()
    length = rng.randrange(max(1, len(content)))
    path.write_bytes(content[:length] if content else b"\0")
    return f"cut to {length} bytes"


def delete(path: pathlib.Path, rng: random.Random) -> str:
    del rng
    path.unlink()
    return "deleted"


def rename(path: pathlib.Path, rng: random.Random) -> str:
    del rng
    path.rename(path.with_name(f"x{path.name}"))
    return "renamed"


def rename_folder(path: pathlib.Path, rng: random.Random) -> str:
    folder = path.parent
    name = (
        str(int(folder.name) + 1) if folder.name.isdecimal() else f"{folder.name}{rng.randrange(9)}"
    )
    folder.rename(folder.with_name(name))
    return f"folder renamed to {name}"


def exchange_with(other: pathlib.Path, depth: int) -> Callable[[pathlib.Path, random.Random], str]:
    """Exchanges a file, so many folders below the sweep's, with ``other``, a path below it too."""

    def exchange(path: pathlib.Path, rng: random.Random) -> str:
        del rng
        there, content = path.parents[depth] / other, path.read_bytes()
        path.write_bytes(there.read_bytes())
        there.write_bytes(content)
        return f"exchanged with {other.name}"

    return exchange


class Outcome(NamedTuple):
    ok: bool
    what: str


def said(call: Callable[[], Any]) -> tuple[Any, str]:
    """What a command returns, or the one line it ends with; a traceback is neither."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return call(), ""
    except UserError as error:
        line = str(error)
        assert len(line.splitlines()) == 1, f"more than one line: {line}"
        return None, line


def settings_read(workdir: pathlib.Path, number: int) -> list[tuple[str, bytes]]:
    """One setting's arrays, as a notebook reads them."""
    setting = store.load(workdir).trial(number)
    leaves = jax.tree_util.tree_leaves_with_path((setting.weights(), setting.exchange()))
    return [(jax.tree_util.keystr(p), np.asarray(a).tobytes()) for p, a in leaves]


class State(NamedTuple):
    """A sweep to damage, and what its undamaged end is."""

    workdir: pathlib.Path
    plan: Plan
    end: Figures
    finished: bool
    arrays: dict[int, Any]


def trial(
    state: State, kind: pathlib.Path, damage: Callable[..., str], rng: random.Random, mend: bool
) -> Outcome:
    """Damage one file of a copy and judge what the commands do."""
    with tempfile.TemporaryDirectory() as folder:
        workdir = pathlib.Path(folder) / "w"
        shutil.copytree(state.workdir, workdir)
        what = damage(workdir / kind, rng)
        try:
            lines = []
            got, line = said(lambda: figures(workdir))
            lines.append(line)
            if got is not None and (not state.finished or got != state.end):
                return Outcome(False, f"{kind} {what}: other figures")
            for number, arrays in state.arrays.items():
                got, line = said(lambda number=number: settings_read(workdir, number))
                lines.append(line)
                if got is not None and got != arrays:
                    return Outcome(False, f"{kind} {what}: other arrays of setting {number}")
            got, line = said(lambda: list(store.inspect(workdir)))
            if line or any(f.state == "damaged" for f in got or ()):
                lines.append("damaged --mend")
            # what nothing has noticed must not matter: go on with it and see
            if mend or not any("--mend" in line for line in lines):
                _, line = said(lambda: finish(state.plan, workdir))
                if line:  # the remedy is asked for
                    lines.append(line)
                    if "--mend" not in line:
                        return Outcome(False, f"{kind} {what}: no remedy in {line!r}")
                    finish(state.plan, workdir, mend=True)
                elif any("--mend" in line for line in lines):
                    finish(state.plan, workdir, mend=True)
                if figures(workdir) != state.end:
                    return Outcome(False, f"{kind} {what}: other figures after the remedy")
                if any(f.state == "damaged" for f in store.inspect(workdir)):
                    return Outcome(False, f"{kind} {what}: damaged after the remedy")
            noticed = next((line for line in lines if line), "unnoticed, no figure changed")
            return Outcome(True, f"{kind} {what}: {noticed[:200]}")
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-3:]
            places = " < ".join(f"{p.filename.split('/')[-1]}:{p.lineno}" for p in reversed(where))
            return Outcome(False, f"{kind} {what}: {type(error).__name__}: {error} ({places})")


STATES = ("finished", "killed in training", "killed in attacks")


def states(folder: pathlib.Path) -> Iterator[tuple[str, State]]:
    """Each of ``STATES`` with its name."""
    plan = make_plan(parse(CONFIG))
    done = folder / "done"
    finish(plan, done)
    arrays = {n: settings_read(done, n) for n in (0, 3)}
    yield STATES[0], State(done, plan, figures(done), True, arrays)
    trained = folder / "trained"
    half_finished(trained)
    yield STATES[1], State(trained, plan, figures(done), False, {})
    attacked = folder / "attacked"
    half_attacked(attacked)
    yield (STATES[2], State(attacked, plan, figures(done), False, {n: arrays[n] for n in (0,)}))


def trials(
    state: State, flips: int, mends: int, rng: random.Random
) -> Iterator[tuple[pathlib.Path, Callable[..., str], bool]]:
    """(file, damage, whether the remedy is run too) of every kind of file of a sweep."""
    kinds = files_of(state.workdir)
    everything = [path.relative_to(state.workdir) for paths in kinds.values() for path in paths]
    for paths in kinds.values():
        names = [path.relative_to(state.workdir) for path in paths]
        for i in range(flips):
            yield rng.choice(names), flip, i < mends
        for damage in (truncate, delete, rename):
            yield rng.choice(names), damage, mends > 0
        name = rng.choice(names)
        if len(name.parts) > 1:
            yield name, rename_folder, mends > 0
        other = rng.choice([path for path in everything if path != name])
        yield name, exchange_with(other, len(name.parts) - 1), mends > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=300, help="flipped bits a kind of file")
    parser.add_argument("--mends", type=int, default=3, help="of them followed by the remedy")
    parser.add_argument("--state", choices=STATES, help="the only state to damage; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    rng, bad, count, began = random.Random(arguments.seed), [], 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for name, state in states(pathlib.Path(folder)):
            if arguments.state not in (None, name):
                continue
            for kind, damage, mend in trials(state, arguments.flips, arguments.mends, rng):
                outcome = trial(state, kind, damage, rng, mend)
                count += 1
                if arguments.verbose or not outcome.ok:
                    print("ok " if outcome.ok else "BAD", name, outcome.what, flush=True)
                bad += [] if outcome.ok else [outcome.what]
    print(f"{count} trials, {len(bad)} bad, {time.monotonic() - began:.0f} s")
    sys.exit(bool(bad))


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    main()
