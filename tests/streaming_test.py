"""Rows that stay on the host, and records of fewer rows than are trained on."""

import shutil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.sweeps import attack, comparable, plan_of, tiny, train
from vfljax import datasets, machine, store
from vfljax.datasets import prepared
from vfljax.datasets.npy import Part
from vfljax.errors import UserError
from vfljax.models.reading import Streamed
from vfljax.sweep import batch_layout, programs

CHANGES = {
    "training.epochs": 2,
    "model.hidden": (),
    "grid": {"noise": {"noise": {"scale": (0.0, 0.01)}}},
    "federations": ("no_split",),
    "attacks": {"posterior": {"steps": 8}},  # which reads the party's columns
}
STREAMED = {"data.resident_gb": 0.0}


def test_streamed_rows_are_the_rows_under_every_transformation():
    x = np.arange(24, dtype=np.uint8).reshape(6, 4)
    streamed, which = Streamed(x), jnp.array([[5, 0], [2, 2]])
    assert (len(streamed), streamed.shape, streamed.dtype) == (6, (6, 4), np.uint8)
    np.testing.assert_array_equal(streamed[np.array([3, 1])], x[[3, 1]])
    np.testing.assert_array_equal(jax.jit(lambda r: streamed[r])(which), x[np.asarray(which)])
    np.testing.assert_array_equal(jax.vmap(lambda r: streamed[r])(which), x[np.asarray(which)])
    scanned = jax.lax.scan(lambda c, r: (c, streamed[r]), 0, which)[1]
    np.testing.assert_array_equal(scanned, x[np.asarray(which)])
    # one index that members share beside a member's alone
    both = jax.jit(jax.vmap(lambda r: (streamed[r], streamed[which[0]])))(which)
    np.testing.assert_array_equal(both[1][1], x[np.asarray(which[0])])


@pytest.mark.parametrize("cpu", [True, False])
def test_all_members_fetch_their_rows_at_once(cpu, monkeypatch):
    fetched, name = [], "_write" if cpu else "_fetch"
    fetch = getattr(Streamed, name)
    monkeypatch.setattr(
        Streamed, name, lambda *args: fetched.append(np.shape(args[-1])) or fetch(*args)
    )
    monkeypatch.setattr(machine, "offered", lambda: machine.Offered(cpu))
    x, which = np.arange(24.0, dtype=np.float32).reshape(6, 4), jnp.array([[5, 0], [2, 2], [1, -1]])
    together = jax.jit(jax.vmap(Streamed(x).__getitem__))(which)
    np.testing.assert_array_equal(together, x[np.asarray(which)])
    assert fetched == [(3, 2)]


@pytest.mark.parametrize("dtype", ["float16", "bool"])
def test_rows_of_every_type_are_written_where_a_program_reads_them(dtype):
    x, which = np.arange(24).reshape(6, 4).astype(dtype), jnp.array([5, 0, 2])
    for rows in (x, x[::-1], x.T.copy().T):  # rows that lie together, backwards, apart
        fetched = jax.jit(Streamed(rows).__getitem__)(which)
        assert fetched.dtype == dtype
        np.testing.assert_array_equal(fetched, rows[np.asarray(which)])


def test_many_rows_are_fetched_while_every_device_is_inside_a_program():
    """A callback that asks JAX for its indices may wait forever for a thread (jax 0.10.2)."""
    rows, count = np.arange(30_000, dtype=np.int32).reshape(-1, 1), 4 * jax.device_count()
    streamed = Streamed(rows)
    which: Any = np.stack([np.random.default_rng(i).permutation(30_000) for i in range(count)])
    layout = batch_layout.layout(count, 2)
    program = programs.Program(lambda member, _: streamed[member][:, 0].sum(), layout)
    sums = batch_layout.unpad(program(layout.pad(which.astype(np.int32)), ()), count)
    assert (sums == rows.sum()).all()
    order = which[0].astype(np.int32)
    np.testing.assert_array_equal(jax.jit(lambda r: streamed[r])(order)[:, 0], order)


def make_sum():
    return lambda member, streamed: streamed[member].sum()


def test_rows_of_another_sweep_have_a_program_of_their_own():
    """Rows on the host are part of a program: it fetches those that it was compiled with."""
    layout = batch_layout.layout(2, 1)
    which = layout.pad(np.array([[0, 1], [1, 2]], np.int32))
    one, other = (Streamed(start + np.arange(6, dtype="int32").reshape(3, 2)) for start in (0, 100))
    three = [programs.program(make_sum, (), layout, (which, rows)) for rows in (one, other, one)]
    assert three[0] is three[2] is not three[1]
    sums = [
        batch_layout.unpad(program(which, rows), 2) for program, rows in zip(three, (one, other))
    ]
    np.testing.assert_array_equal(sums, [[6, 14], [406, 414]])


@pytest.fixture(scope="module")
def resident(tmp_path_factory):
    """A sweep of rows on the device, all of them recorded, which is not attacked yet."""
    return train(tmp_path_factory.mktemp("resident") / "w", tiny(**CHANGES), attack=False)


def test_an_attack_on_streamed_rows_equals_one_on_resident_rows(resident, tmp_path):
    streamed = plan_of(tiny(**CHANGES, **STREAMED))
    assert all(isinstance(x, Streamed) for x in streamed.table.features)
    attacked = []
    for name, plan in (("resident", None), ("streamed", streamed)):
        workdir = shutil.copytree(resident.workdir, tmp_path / name)
        attack(workdir, ["posterior"], plan)
        attacked.append(store.load(workdir))
    assert attacked[0].attacks.num_rows
    for table in ("attacks", "local_only"):
        assert comparable(getattr(attacked[1], table)) == comparable(getattr(attacked[0], table))


def test_halves_of_mapped_images_stay_on_disk(tmp_path):
    prepared.write(datasets.load("digits", "", {}), str(tmp_path / "digits"))
    moved = {"data.name": "prepared", "data.dir": str(tmp_path / "digits"), "data.options": {}}
    plans = [plan_of(tiny(**data, **CHANGES)) for data in ({}, moved)]
    streamed = plan_of(tiny(**moved, **CHANGES, **{"data.resident_gb": 0.0}))
    assert all(isinstance(block.features, Part) for block in streamed.party_columns)
    which = np.array([5, 0, 700])
    for x, y, z in zip(*(one.table.features for one in (*plans, streamed)), strict=True):
        assert isinstance(z, Streamed)
        np.testing.assert_array_equal(x[which], y[which])
        np.testing.assert_array_equal(x[which], z[which])
    for mine, other in zip(plans[0].table.scale, streamed.table.scale, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_records_without_a_class_are_refused():
    with pytest.raises(UserError, match=r"record_rows=8.*no row of some class"):
        plan_of(tiny(**CHANGES, **{"training.record_rows": 8}))


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A sweep of streamed rows, of which the first hundred are attacked."""
    changes = CHANGES | STREAMED | {"training.record_rows": 100}
    changes["grid"] = changes["grid"] | {"pe_loss": {"pe_loss": {"alpha": 1.0}}}
    changes["attacks"] = {"charge": {"known": 20, "rounds": 1, "starts": 1}}
    return train(tmp_path_factory.mktemp("few") / "w", tiny(**changes))


def test_the_first_streamed_rows_are_recorded_as_among_all_and_training_is_the_same(few, resident):
    every = resident.results.to_pylist()
    some = [row for row in few.results.to_pylist() if row["method"] == "noise"]
    assert len(some) == 4
    for a, b in zip(every, some, strict=True):
        for name in ("loss", "train_accuracy", "test_loss", "test_accuracy"):
            np.testing.assert_allclose(a[name], b[name], rtol=1e-5)
    for trial in (0, 3):
        whole, part = (sweep.trial(trial).exchange() for sweep in (resident, few))
        assert part["party0_gradients"].shape[-2] == 100
        for name in ("party0_embeddings", "party0_gradients", "party0_sum_square"):
            np.testing.assert_allclose(part[name], whole[name][..., :100, :], rtol=1e-4, atol=1e-6)
        order = np.asarray(whole["order"])[:, :100]
        np.testing.assert_array_equal(part["order"], order.argsort(1).argsort(1))
    assert few.splits()["train"].shape == (2, 100)
    assert few.splits()["test"].shape == resident.splits()["test"].shape  # of the results: all


def test_whole_batches_are_recorded_and_read_under_pe_loss_alone(few, resident):
    forced = {row["trial"] for row in few.results.to_pylist() if row["method"] == "pe_loss"}
    for trial in few.results.column("trial").to_pylist():
        assert ("mates_order" in few.trial(trial).exchange()) == (trial in forced)
    assert sorted(few.attacks["trial"].to_pylist()) == sorted(forced)
    part, whole = few.trial(max(forced)).exchange(), resident.trial(3).exchange()
    # the order is that of the seed, whatever the defense
    np.testing.assert_array_equal(part["mates_order"], whole["order"])
    for name in ("party0_embeddings", "party0_gradients", "sent"):
        joined = np.concatenate([part[name], part[f"mates_{name}"]], axis=1)
        assert joined.shape == whole[name].shape
