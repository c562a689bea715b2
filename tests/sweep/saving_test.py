"""What is saved of an unfinished shard, without a store: pieces, and what a resume starts from."""

import jax
import numpy as np
import pytest

from vfljax import store
from vfljax.federation.training import Record, Snapshot
from vfljax.sweep import saving
from vfljax.types import Sums

MEMBERS, COUNT = 8, 6  # of which two are padding


def snapshot():
    def array(*shape):
        return np.random.default_rng(len(shape)).normal(size=(MEMBERS, *shape)).astype(np.float32)

    z = array(3, 2)
    record = Record(
        (z,), (z,), z[..., 0], z[..., 0] > 0, (Sums(z, z, z, z[..., 0]),), *[array(4)] * 3
    )
    return Snapshot(
        {"weights": array(2), "key": jax.random.split(jax.random.key(0), MEMBERS)}, record
    )


@pytest.fixture
def written(monkeypatch):
    """What would lie in the store."""
    folder = {}
    monkeypatch.setattr(store, "write_partial", lambda *a: folder.update(done=a[2], tree=a[3]))
    monkeypatch.setattr(store, "read_partial", lambda *a: (folder["done"], folder["tree"]))
    return folder


@pytest.mark.parametrize(("limit", "pieces"), [(1 << 20, {1}), (48, {1, 2, 3})])
def test_what_a_resume_starts_from_is_what_was_saved(written, monkeypatch, limit, pieces):
    monkeypatch.setattr(saving, "PIECE", limit)
    whole, recorded = snapshot(), {0: {"order": np.arange(6 * 3).reshape(6, 3)}}
    saving.save(None, "s", COUNT, 2, saving.Saved(3, whole, recorded))
    assert {len(leaf) for leaf in jax.tree.leaves(written["tree"])} == pieces
    again = saving.read(None, "s", COUNT, whole)
    assert again.epoch == 3
    np.testing.assert_array_equal(again.recorded[0]["order"], recorded[0]["order"])

    def raw(key):
        return np.asarray(jax.random.key_data(key))

    np.testing.assert_array_equal(raw(again.snapshot.state["key"]), raw(whole.state["key"])[:COUNT])
    for name in ("sums", "loss", "accuracy", "observed"):
        kept, was = getattr(again.snapshot.record, name), getattr(whole.record, name)
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[:COUNT]), kept, was)


def test_the_exchange_that_the_next_epoch_writes_anew_is_not_saved(written):
    whole = snapshot()
    saving.save(None, "s", COUNT, 2, saving.Saved(3, whole, {}))
    assert len(written["tree"]["pieces"]["progress"]) == len(jax.tree.leaves(whole)) - 4
    again = saving.read(None, "s", COUNT, whole).snapshot.record
    assert again.embeddings[0].shape == (COUNT, 3, 2)
    assert not again.embeddings[0].any()
    assert again.sent.dtype == bool
    assert not again.sent.any()
