"""Finds which rows of a wire shared a batch, in version 1 of the format."""

from __future__ import annotations

import numpy as np

from vfljax.datasets.wire_forms import Arrays


def order_of(raw: Arrays, sent: np.ndarray) -> tuple[np.ndarray | None, int, bool]:
    """Returns the places of rows in the order of sending (None if not known), the size of a batch, and whether
    all batches but one an epoch have this size. Attacks read batches as consecutive parts of the order, so
    batches of different sizes have none. Rows that were not sent are in none, and come last in the order."""
    numbers = raw.by_name.get("batch")
    if (
        numbers is not None and numbers.size == sent.size
    ):  # of rows that were not sent they mean nothing
        numbers = np.where(sent, numbers.reshape(sent.shape), 0)
        if numbers.dtype.kind in "iu":  # counted through all epochs, they may be larger than N
            ranked = [np.unique(of[was], return_inverse=True)[1] for of, was in zip(numbers, sent)]
            numbers = np.zeros(sent.shape, np.int32)
            numbers[sent] = np.concatenate(ranked)
        raw = raw._replace(by_name={**raw.by_name, "batch": numbers})
    order, batch, size = (raw.get(name) for name in ("order", "batch", "batch_size"))
    rows, given = raw.sizes["N"], 0 if size is None else int(size)
    remedy = "they say the same: give one"
    raw.must(order is None or batch is None, "", "has both order and batch", remedy)
    if order is not None:
        raw.must(given, "", "has order and no batch_size", "give both, or batch in their place")
        once = all(len(np.unique(places)) == rows for places in order)
        raw.must(once, "order", "has a place twice in an epoch", "every row has its own")
        return (order if sent.all() else _sent_first(raw, order, sent, given)), given, True
    if batch is None:
        return None, given or min(32, rows), True
    counts = np.stack([np.bincount(of[was], minlength=rows) for of, was in zip(batch, sent)])
    size = given or int(counts.max())
    smaller = (counts > 0) & (counts < size)  # [E, N] by number of the batch
    if counts.max() > size or smaller.sum(axis=1).max() > 1:
        return None, given or round(sent.sum() / (counts > 0).sum()), False
    places = [
        _in_order(of, last[of], ~was) for of, last, was in zip(batch, smaller, sent, strict=True)
    ]
    return np.stack(places), size, True


def _sent_first(raw: Arrays, order: np.ndarray, sent: np.ndarray, size: int) -> np.ndarray:
    """Returns the order with the rows at its end that were not sent. Raises UserError if it makes a difference
    for the batches whether such rows have places among the others: some recorders count them, others do not."""
    out = np.empty_like(order)
    for places, was, moved in zip(order, sent, out, strict=True):
        moved[:] = _in_order(np.where(was, places, 0), ~was)
        before, after = places[was] // size, moved[was] // size
        both = np.unique(before * np.int64(len(was)) + after)
        same = len(both) == len(np.unique(before)) == len(np.unique(after))
        remedy = "give such rows the last places, or batch in place of order"
        raw.must(same, "order", "has places for rows that were not sent amid a batch", remedy)
    return out


def _in_order(*keys: np.ndarray) -> np.ndarray:
    """Returns each row's place [N] int32 if rows are sorted by the last key, ties by the key before."""
    places = np.empty(len(keys[0]), np.int32)
    places[np.lexsort(keys)] = np.arange(len(places))
    return places
