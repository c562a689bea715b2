"""Loads files of readers, shows them what attackers see of stored trials, and has their scores scored.

Labels meet the scores in ``vfljax.attack_runs.scoring`` alone, by the rules of every attack: known rows, and
rows whose label follows from a known one, are not scored; a reader that knows labels names its classes itself;
the names of one that knows none are granted to it.
"""

from __future__ import annotations

import importlib.util
import inspect
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax.attack_runs import run
from vfljax.attack_runs.bundles import Begun, Stored
from vfljax.attack_runs.scoring import AttackOutput
from vfljax.attack_runs.view import attack_input, common_data, known_rows, view_of
from vfljax.errors import UserError, raised, short_path
from vfljax.federation.training import Table
from vfljax.scheduling import running
from vfljax.store import read_header
from vfljax.types import Agreed, HostArray, Known, Scores, View, federation_of

Reader = Callable[[View, Known, int], HostArray]


def readers_of(file: pathlib.Path) -> dict[str, Reader]:
    """Returns the readers of a file by name: the functions that it defines whose names do not begin with "_".

    The file is run, with all rights of the user.

    Raises:
      UserError: for a file that is missing or raises, has no reader, or has one with other arguments.
    """
    if not file.is_file():
        raise UserError(f"there is no file {short_path(file)}", remedy="give a file of readers")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(raised(error, file), remedy="correct the file") from error
    functions = {
        name: of
        for name, of in vars(module).items()
        if inspect.isfunction(of) and of.__module__ == file.stem and not name.startswith("_")
    }
    if not functions:
        remedy = "define `def name(view, known, num_classes)`, whose name has no _ before it"
        raise UserError(f"{short_path(file)} has no reader", remedy=remedy)
    for name, of in functions.items():
        try:
            inspect.signature(of).bind(None, None, 2)
        except TypeError as error:
            remedy = "let it take a view, the known rows and the number of classes"
            raise UserError(
                f"the reader {name} cannot be called: {error}", remedy=remedy
            ) from error
    return functions


class Seen(NamedTuple):
    """What the attackers of a trial see of it, on the host."""

    row: Mapping[str, Any]  # of the trial in the results
    attackers: tuple[int, ...]
    view: View
    common: Table  # from which the known labels are handed out


def opened(workdir: pathlib.Path, data_dir: str | None = None) -> Stored:
    """Returns a stored sweep, finished or not, as attacks are given it."""
    plan = running.stored_plan(workdir, data_dir=data_dir, unfinished=True)
    return run.opened_sweep(Begun(plan, workdir, read_header(workdir)))


def attackers_of(stored: Stored, federation: str) -> tuple[tuple[int, ...], ...]:
    """Returns who attacks a federation of this name: its malicious parties, else each group of the config."""
    malicious = federation_of(federation).malicious
    return (malicious,) if malicious else stored.plan.experiment.attackers


def seen(stored: Stored, rows: Sequence[Mapping[str, Any]]) -> Iterator[Seen]:
    """Yields what each group of attackers sees of each trial.

    Args:
      stored: the sweep.
      rows: of its results; those of trials that diverged are left out.
    """
    plan = stored.plan
    specs = {shard.name: plan.groups[shard.group].spec for shard in plan.shards}
    common = {
        attackers: jax.device_get(common_data(plan.table, stored.arrays, attackers))
        for row in rows
        for attackers in attackers_of(stored, row["federation"])
    }
    for row in rows:
        if row["status"] != "ok":
            continue
        agreed = Agreed(specs[row["shard"]].batch_size)
        for attackers in attackers_of(stored, row["federation"]):
            recorded = attack_input(stored.begun.workdir, row, "", {}, attackers, mates=True)
            view = jax.device_get(view_of(recorded, common[attackers], agreed))
            yield Seen(row, attackers, view, common[attackers])


def known_of(of: Seen, count: int, draw: int = 0) -> Known:
    """Returns the known rows of a draw, as NumPy arrays."""
    on_host: Any = np.int32(count)
    return jax.device_get(known_rows(of.common, of.row["seed"], on_host, draw))


def scores_of(name: str, reader: Reader, of: Seen, known: Known, num_classes: int) -> HostArray:
    """Returns a reader's scores [N, C] as float32. Rows that were never sent have 0.

    Raises:
      UserError: for a reader that raises, returns another shape, or has no number for a row that was sent.
    """
    where = f"the reader {name} on trial {of.row['trial']}"
    try:
        found = np.asarray(reader(of.view, known, num_classes), np.float32)
    except Exception as error:
        what = f"{where} raised {type(error).__name__}: {' '.join(str(error).split())}"
        raise UserError(what, remedy="correct it") from error
    shape = len(of.view.sums.count), num_classes
    if found.shape != shape:
        remedy = f"return a score for each row and class, {list(shape)}"
        raise UserError(f"{where} returns the shape {list(found.shape)}", remedy=remedy)
    found = np.where(sent(of)[:, None], found, 0)
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found).all(1))[0])
        what = f"{where} has no finite score of row {row}"
        raise UserError(what, remedy="return a number for each row that was sent")
    return found


def sent(of: Seen) -> HostArray:
    """Returns which rows [N] were sent in any epoch."""
    return np.asarray(of.view.sums.count) > 0


def output(of: Seen, scores: HostArray, known: int, naming: int) -> AttackOutput:
    """Returns a reader's scores as ``Scorer.figures_on_host`` takes them.

    Args:
      of: what was read.
      scores: [draws, N, C].
      known: the number of labels that the reader knew.
      naming: the number of labels that name its classes if it knew none.
    """
    on_host: Any = {
        "seed": np.int32(of.row["seed"]),
        "known": np.int32(known),
        "sent": sent(of),
        "trained": np.bool_(False),
        "naming": np.int32(known or naming),
    }
    parts: Any = Scores(scores, None)
    return AttackOutput(parts, **on_host)
