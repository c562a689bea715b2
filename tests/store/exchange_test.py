"""What crossed the wire: what is written is what is read, by setting and by party."""

from types import SimpleNamespace

import numpy as np
import pytest

from vfljax.store import exchange
from vfljax.types import Sums

SETTINGS, ROWS, EPOCHS, WIDTHS = 3, 5, (0, 4), (2, 3)  # two passive parties of different width


def written(path):
    """Random arrays of two parties, written; (by epoch, sums) as training holds them."""
    rng = np.random.default_rng(0)

    def cut(width):
        return rng.normal(size=(SETTINGS, ROWS, width)).astype(np.float32)

    by_epoch = {}
    for epoch in EPOCHS:
        order = np.stack([rng.permutation(ROWS) for _ in range(SETTINGS)]).astype(np.int32)
        parties = [cut(width) for width in WIDTHS]
        crossed = {"embeddings": parties, "gradients": [-z for z in parties], "inputs": ()}
        record = SimpleNamespace(order=order, sent=order < 4, **crossed)
        by_epoch[epoch] = exchange.epoch_arrays(record)
    counts = np.full((SETTINGS, ROWS), 5, np.int32)
    sums = [Sums(cut(width), cut(width), cut(width), counts + p) for p, width in enumerate(WIDTHS)]
    exchange.write(path, exchange.all_arrays(by_epoch, EPOCHS, sums))
    return by_epoch, sums


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("exchange") / exchange.FILE
    return *written(path), exchange.read(path)


def test_every_array_of_every_epoch_and_party_is_read_as_it_was_written(stored):
    by_epoch, sums, arrays = stored
    for place, epoch in enumerate(EPOCHS):
        for name, array in by_epoch[epoch].items():
            np.testing.assert_array_equal(arrays[name][:, place], array)
            assert arrays[name][:].dtype == array.dtype
    for p, party_sums in enumerate(sums):
        for name, array in party_sums._asdict().items():
            np.testing.assert_array_equal(arrays[f"party{p}_sum_{name}"][:], array)
    np.testing.assert_array_equal(arrays["epochs"][:], [list(EPOCHS)] * SETTINGS)


def test_one_party_holds_its_own_arrays_of_its_lane(stored):
    (_, sums, arrays), lane = stored, 1
    one = exchange.of_parties(arrays, lane, (1,))
    assert set(one) == set(exchange.FIELDS)
    for name in ("embeddings", "gradients"):
        np.testing.assert_array_equal(one[name], arrays[f"party1_{name}"][lane])
    np.testing.assert_array_equal(one["sum_square"], sums[1].square[lane])
    np.testing.assert_array_equal(one["sum_count"], sums[1].count[lane])
    np.testing.assert_array_equal(one["sent"], arrays["sent"][lane])


def test_colluders_hold_theirs_side_by_side_and_what_all_share_once(stored):
    (by_epoch, sums, arrays), parties = stored, (1, 0)
    both = exchange.of_parties(arrays, 2, parties)
    assert both["embeddings"].shape == (len(EPOCHS), ROWS, sum(WIDTHS))
    for place, epoch in enumerate(EPOCHS):
        sides = [by_epoch[epoch][f"party{p}_gradients"][2] for p in parties]
        np.testing.assert_array_equal(both["gradients"][place], np.concatenate(sides, axis=-1))
        np.testing.assert_array_equal(both["order"][place], by_epoch[epoch]["order"][2])
    for field in ("gradient", "sign", "square"):
        sides = [getattr(sums[p], field)[2] for p in parties]
        np.testing.assert_array_equal(both[f"sum_{field}"], np.concatenate(sides, axis=-1))
    np.testing.assert_array_equal(both["sum_count"], sums[parties[0]].count[2])
    assert both["epochs"].tolist() == list(EPOCHS)


def test_rows_that_are_not_scored_are_stored_as_batch_mates(stored):
    by_epoch, sums, whole = stored
    part = exchange.all_arrays(by_epoch, EPOCHS, sums, 3)
    for name in ("party0_embeddings", "party1_gradients", "sent"):
        joined = np.concatenate([part[name], part[f"mates_{name}"]], axis=2)
        np.testing.assert_array_equal(joined, whole[name][:])
    np.testing.assert_array_equal(part["mates_order"], whole["order"][:])
    first = whole["order"][:][:, :, :3]
    np.testing.assert_array_equal(part["order"], first.argsort(-1).argsort(-1))
    np.testing.assert_array_equal(part["party0_sum_square"], whole["party0_sum_square"][:][:, :3])
