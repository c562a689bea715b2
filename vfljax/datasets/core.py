"""What a loader returns, how columns are divided between parties and rows between parts.

What enters: plain NumPy arrays. What leaves: ``Dataset``, ``Split`` and, on the device,
``training.Table``. Scaling statistics are of each seed's training rows, unless all rows are asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from sklearn.model_selection import train_test_split

from vfljax.errors import UserError
from vfljax.training import Table


class Dataset(NamedTuple):
    """One table of rows before any split."""

    name: str
    columns: np.ndarray  # [R, ...]: the last axis is what parties divide
    labels: np.ndarray  # [R] int32 in 0..C-1
    num_classes: int


class Split(NamedTuple):
    """Raw row numbers of one seed; stratified by class, disjoint."""

    train: np.ndarray  # [N]
    validation: np.ndarray  # [V]
    test: np.ndarray  # [M]


def classes(name: str, labels: np.ndarray, num_classes: int | None = None) -> np.ndarray:
    """Labels as int32 classes 0..C-1, or one clear line."""
    labels = np.asarray(labels)
    numbers = labels.astype(np.float64)
    wrong = ~np.isfinite(numbers) | (numbers != np.floor(numbers)) | (numbers < 0)
    if num_classes is not None:
        wrong |= numbers >= num_classes
    if wrong.any():
        row = int(np.argmax(wrong))
        allowed = "0, 1, 2, ..." if num_classes is None else f"0..{num_classes - 1}"
        raise UserError(
            f"{name}: label {labels[row]!r} in row {row + 1} is not an integer class: "
            f"labels must be {allowed}."
        )
    out = numbers.astype(np.int32)
    if len(np.unique(out)) < 2:
        raise UserError(f"{name}: all labels are {out[0]}: at least two classes are needed.")
    return out


def checksum(dataset: Dataset) -> str:
    """SHA-256 of the values, shapes and types: equal for equal data wherever it was read."""
    digest = hashlib.sha256()
    for array in (dataset.columns, dataset.labels):
        array = np.ascontiguousarray(array)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def vertical(columns: np.ndarray, parts: int) -> tuple[np.ndarray, ...]:
    """Contiguous blocks of the last axis, one a party: image columns or table columns."""
    if parts < 1 or columns.shape[-1] < parts:
        raise UserError(
            f"parties: {parts} parties need columns but the data has {columns.shape[-1]}: choose "
            "fewer passive parties or label_features=False."
        )
    return tuple(np.ascontiguousarray(part) for part in np.array_split(columns, parts, axis=-1))


def split_rows(
    labels: np.ndarray, seed: int, train: float, validation: float, test: float
) -> Split:
    """Stratified train, validation and test rows; sizes are shares (< 1) or counts of rows."""
    total = len(labels)
    sizes = [round(s * total) if s < 1 else int(s) for s in (train, validation, test)]
    if train < 1 and validation < 1 and test < 1 and abs(train + validation + test - 1) < 1e-6:
        sizes[0] = total - sizes[1] - sizes[2]
    num_classes = len(np.unique(labels))
    if min(sizes) < num_classes or sum(sizes) > total:
        raise UserError(
            f"data: train, validation, test = {train}, {validation}, {test} ask for {sizes} of "
            f"{total} rows: each part needs at least one row a class ({num_classes}) and "
            "together at most all rows."
        )
    try:
        rest, held = train_test_split(
            np.arange(total), test_size=sizes[2], random_state=seed, stratify=labels
        )
        train_rows, validation_rows = train_test_split(
            rest,
            train_size=sizes[0],
            test_size=sizes[1],
            random_state=seed,
            stratify=labels[rest],
        )
    except ValueError as error:
        raise UserError(
            f"data: cannot split {total} rows by class into {sizes}: {error}"
        ) from error
    return Split(*(np.asarray(rows, np.int32) for rows in (train_rows, validation_rows, held)))


SCALINGS = ("standard", "minmax", "range", "none")
SCALING_ROWS = ("train", "all")  # "all": as some papers do; test rows then enter the statistics


def statistics(x: np.ndarray, rows: np.ndarray, scaling: str) -> tuple[np.ndarray, np.ndarray]:
    """(mean, scale) of ``rows``: per column ("standard"; "minmax": to [0, 1]), one number for the
    whole block ("range", for pixels: to [0, 1]) or none."""
    if scaling == "standard":
        values = x[rows].astype(np.float64)
        mean, scale = values.mean(0), values.std(0)
    elif scaling == "minmax":
        values = x[rows].astype(np.float64)
        mean, scale = values.min(0), np.ptp(values, axis=0)
    elif scaling == "range":
        low, high = float(x[rows].min()), float(x[rows].max())
        mean, scale = np.float64(low), np.float64(high - low)
    else:
        mean, scale = np.float64(0), np.float64(1)
    scale = np.where(scale > 0, scale, 1.0)  # a constant column stays constant, at 0
    return np.asarray(mean, np.float32), np.asarray(scale, np.float32)


def make_table(
    dataset: Dataset,
    parts: int,
    splits: Sequence[Split],
    scaling: str,
    scaling_rows: str = "train",
) -> Table:
    """The device's view of a data set for all seeds; teacher scores are added by the sweep."""
    blocks = vertical(dataset.columns, parts)
    everything = np.arange(len(dataset.labels))
    rows = [s.train if scaling_rows == "train" else everything for s in splits]
    moments = [[statistics(x, own, scaling) for own in rows] for x in blocks]
    return Table(
        features=tuple(jnp.asarray(x) for x in blocks),
        labels=jnp.asarray(dataset.labels),
        train=jnp.asarray(np.stack([s.train for s in splits])),
        validation=jnp.asarray(np.stack([s.validation for s in splits])),
        test=jnp.asarray(np.stack([s.test for s in splits])),
        mean=tuple(jnp.asarray(np.stack([m for m, _ in party])) for party in moments),
        scale=tuple(jnp.asarray(np.stack([s for _, s in party])) for party in moments),
        scores=None,
    )
