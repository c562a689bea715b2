"""Rows that stay on the host, and records of fewer rows than are trained on."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.sweeps import comparable, plan_of, silent, tiny
from vfljax import datasets, machine, store
from vfljax.datasets import prepared
from vfljax.datasets.npy import Part
from vfljax.errors import UserError
from vfljax.launching import running
from vfljax.models.rows import Streamed
from vfljax.store import units
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.grid import parse

CHANGES = {
    "training.epochs": 2,
    "grid": {"noise": {"noise": {"scale": (0.0, 0.01)}}, "pe_loss": {"pe_loss": {"alpha": 1.0}}},
    "federations": ("no_split",),  # both attacks run on it
    "attacks": {
        "passive": {"known": 20, "steps": 8},
        "charge": {"known": 20, "rounds": 1, "starts": 1},
    },
}


def trained(workdir, attack, **changes):
    """A sweep on which one of the attacks was run."""

    def may(unit):
        return unit.kind != units.ATTACK or unit.of.startswith(attack)

    config = parse(tiny(**CHANGES | changes))
    running.finish(config, workdir, "test", silent, may=may).check()
    return store.load(workdir)


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
    three = [programs.program(make_sum, (), layout, which, rows) for rows in (one, other, one)]
    assert three[0] is three[2] is not three[1]
    sums = [
        batch_layout.unpad(program(which, rows), 2) for program, rows in zip(three, (one, other))
    ]
    np.testing.assert_array_equal(sums, [[6, 14], [406, 414]])


@pytest.fixture(scope="module")
def resident(tmp_path_factory):
    """A sweep of rows on the device, all of them recorded."""
    return trained(tmp_path_factory.mktemp("resident") / "w", "passive")


def test_a_streamed_sweep_and_its_attack_equal_a_resident_one(resident, tmp_path):
    noise = {"grid": {"noise": CHANGES["grid"]["noise"]}, "data.resident_gb": 0.0}
    assert all(isinstance(x, Streamed) for x in plan_of(tiny(**CHANGES | noise)).table.features)
    streamed = trained(tmp_path / "streamed", "passive", **noise)
    for table in ("results", "attacks"):
        rows = comparable(getattr(streamed, table))
        trials = {row["trial"] for row in streamed.results.to_pylist()}
        expected = [r for r in comparable(getattr(resident, table)) if r["trial"] in trials]
        for row, other in zip(rows, expected, strict=True):
            assert other.items() >= row.items()


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
def few(resident, tmp_path_factory):
    folder = tmp_path_factory.mktemp("few") / "w"
    return resident, trained(folder, "charge", **{"training.record_rows": 100})


def test_the_first_rows_are_recorded_as_they_are_among_all_and_training_is_the_same(few):
    every, some = few
    for a, b in zip(every.results.to_pylist(), some.results.to_pylist(), strict=True):
        np.testing.assert_allclose(a["loss"], b["loss"], rtol=1e-5)
    for setting in (0, every.results.num_rows - 1):
        whole, part = (sweep.trial(setting).exchange() for sweep in (every, some))
        assert part["party0_gradients"].shape[-2] == 100
        for name in ("party0_embeddings", "party0_gradients", "party0_sum_square"):
            np.testing.assert_allclose(part[name], whole[name][..., :100, :], rtol=1e-4, atol=1e-6)
        order = np.asarray(whole["order"])[:, :100]
        np.testing.assert_array_equal(part["order"], order.argsort(1).argsort(1))
    assert some.splits()["train"].shape == (2, 100)
    assert some.splits()["test"].shape == every.splits()["test"].shape  # of the results: all


def test_whole_batches_are_recorded_and_read_under_pe_loss_alone(few):
    every, some = few
    forced = {row["trial"] for row in some.results.to_pylist() if row["method"] == "pe_loss"}
    for trial in some.results.column("trial").to_pylist():
        assert ("mates_order" in some.trial(trial).exchange()) == (trial in forced)
    assert sorted(some.attacks["trial"].to_pylist()) == sorted(forced)
    part, whole = (sweep.trial(max(forced)).exchange() for sweep in (some, every))
    np.testing.assert_array_equal(part["mates_order"], whole["order"])
    for name in ("party0_embeddings", "party0_gradients", "sent"):
        joined = np.concatenate([part[name], part[f"mates_{name}"]], axis=1)
        np.testing.assert_allclose(joined, whole[name], rtol=1e-4, atol=1e-6)
