"""Tests of the queue of units: each is made by one process, and is given up after three failures.

Most units here are made up (``tests.copies``): making one writes its rows.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import pytest

from tests import copies
from tests.refusals import refused
from tests.store.units_test import entry, header_of
from tests.sweeps import comparable, is_shard, silent, tiny
from vfljax import datasets, store
from vfljax.attack_runs.bundles import Begun
from vfljax.errors import UserError
from vfljax.scheduling import running, work
from vfljax.scheduling.work import Queue
from vfljax.store.claims import TRIES
from vfljax.sweep import train
from vfljax.sweep.grid import parse


class Maker(copies.Maker):
    """Writes the rows of a unit at once, or raises what ``fails`` has for it."""

    fails: dict[str, Exception]
    made: list[str]

    def make(self, units: Sequence[store.Unit]) -> None:
        for unit in units:
            self.made.append(unit.name)
            self.program = unit.program
            if unit.name in self.fails:
                raise self.fails[unit.name]
            store.write_rows(self.workdir, unit.name, copies.rows_of(unit.name))


def begun_in(workdir, **changes) -> Begun:
    """A sweep of made-up units, of which none is made."""
    plan: Any = None
    workdir.mkdir()
    return Begun(plan, workdir, store.begin(workdir, copies.header() | changes))


@pytest.fixture
def maker(monkeypatch):
    monkeypatch.setattr(work, "_Maker", Maker)
    Maker.fails, Maker.made = {}, []
    return Maker


class Waiting(BaseException):
    """Raised by a copy that has nothing left but what others have claimed."""


def test_two_copies_divide_the_units_and_end_with_the_rows_of_one(tmp_path, monkeypatch, maker):
    begun, make = begun_in(tmp_path / "w"), Maker.make

    def wait(seconds):
        raise Waiting

    def make_beside_another(self, units):
        if not self.made:
            self.made.append(units[0].name)
            with pytest.raises(Waiting):
                work.work(begun, silent)
            assert self.made.pop(0) not in self.made
        make(self, units)

    monkeypatch.setattr(work.time, "sleep", wait)
    monkeypatch.setattr(maker, "make", make_beside_another)
    work.work(begun, silent).check()
    units = store.units_of(begun.header)
    assert sorted(maker.made) == sorted(unit.name for unit in units)  # each once
    first = units[0].name
    needing = {unit.name for unit in units if first in unit.needs}
    # which the other copy could not make
    assert {*maker.made[-len(needing) - 1 :]} == needing | {first}
    assert copies.faults(begun.workdir, True) == []


def test_a_unit_that_fails_three_times_is_given_up_with_what_needs_it(tmp_path, maker):
    blocks = [[shard["name"]] for shard in copies.header()["shards"]]
    begun = begun_in(tmp_path / "w", blocks=blocks)
    shard, attack = "shards/00001", "attacks/b/002"
    maker.fails = {shard: RuntimeError("it cannot be\nmore lines"), attack: ValueError("no")}
    outcome = work.work(begun, silent)
    assert [maker.made.count(name) for name in (shard, attack)] == [TRIES, TRIES]
    assert outcome.given_up == {shard: "RuntimeError: it cannot be", attack: "ValueError: no"}
    with pytest.raises(UserError, match=rf"^({shard}|{attack}) failed 3 times: .* \(and 1 more\)"):
        outcome.check()
    units = store.units_of(begun.header)
    left = {unit.name for unit in units if not (begun.workdir / unit.name).is_dir()}
    assert left == {shard, attack} | {unit.name for unit in units if shard in unit.needs}
    maker.fails = {}
    maker.made.clear()
    assert work.work(begun, silent).given_up == outcome.given_up
    assert maker.made == []
    store.clear_failures(begun.workdir)  # the same command tries again
    work.work(begun, silent).check()
    assert copies.faults(begun.workdir, True) == []


def test_variants_of_an_attack_are_made_together_and_one_that_has_failed_alone(
    tmp_path, maker, monkeypatch
):
    begun, calls, make = begun_in(tmp_path / "w"), [], Maker.make

    def noted(self, units):
        calls.append({unit.name for unit in units})
        make(self, units)

    monkeypatch.setattr(maker, "make", noted)
    failing, other = "attacks/d/000", "attacks/c/000"
    maker.fails = {failing: ValueError("no")}
    assert work.work(begun, silent).given_up == {failing: "ValueError: no"}
    assert [call for call in calls if failing in call] == [{failing, other}, {failing}, {failing}]
    assert {"attacks/c/001", "attacks/d/001"} in calls
    assert {"attacks/a/000"} in calls  # of another cost


def test_a_fault_of_the_machine_ends_all_at_once(tmp_path, maker):
    begun = begun_in(tmp_path / "w")
    maker.fails = {"shards/00000": UserError("the disk is full")}
    with pytest.raises(UserError, match="^the disk is full"):
        work.work(begun, silent)
    assert maker.made == ["shards/00000"]


# --- real sweeps ---

TWO = tiny(
    data={"name": "breast_cancer", "train": 256, "validation": 64, "test": 64},
    grid={"noise": {"noise": {"scale": (0.0, 0.1)}}},
    attacks={"norm": {}},
    federations=("no_split",),
    **{
        **{"execution.shard_seconds": 1e-3, "model.hidden": ()},
        **{"training.epochs": 2, "training.batch_size": 16},
    },
)


def test_the_other_shards_of_a_block_are_attacked_where_one_is_given_up(tmp_path, monkeypatch):
    train_shard = train.train_shard

    def always_fails(*arguments):
        raise RuntimeError("no")

    def fails(trainer, shard, *rest):
        if shard.name.startswith("00001"):
            raise RuntimeError("no")
        train_shard(trainer, shard, *rest)

    def run():
        return running.finish(parse(TWO), tmp_path / "w", "test", silent)

    monkeypatch.setattr(train, "train_shard", always_fails)
    with pytest.raises(UserError, match=r"failed 3 times: RuntimeError: no \(and 1 more\)"):
        run()  # where no shard can be trained there is nothing to report
    monkeypatch.setattr(train, "train_shard", fails)
    assert [*run().given_up.values()] == ["RuntimeError: no"]
    assert (tmp_path / "w" / "attacks.csv").exists()
    sweep = store.load(tmp_path / "w")
    trained = set(sweep.results["trial"].to_pylist())
    assert set(sweep.attacks["trial"].to_pylist()) == trained
    assert len(sweep.unfinished) == 2  # one shard and the attack
    before = comparable(sweep.attacks)
    monkeypatch.setattr(train, "train_shard", train_shard)
    run().check()
    sweep = store.load(tmp_path / "w")
    attacks = comparable(sweep.attacks)
    assert not sweep.unfinished
    assert len(attacks) > len(before)
    assert [row for row in attacks if row["trial"] in trained] == before


FEW = {**TWO, "seeds": 1, "grid": {"noise": {"noise": {"scale": 0.1}}}}
MORE = {**TWO, "grid": {"louder": {"noise": {"scale": 0.2}}, **FEW["grid"]}}
MORE |= {"attacks": {"direct": {"rule": "most_negative"}, **FEW["attacks"]}}


def test_a_sweep_that_is_extended_keeps_what_it_has_and_makes_the_rest(tmp_path):
    workdir = tmp_path / "w"

    def run_of(config):
        running.finish(parse(config), workdir, "test", silent).check()
        sweep = store.load(workdir)
        tables = [comparable(t) for t in (sweep.results, sweep.attacks, sweep.local_only)]
        return store.read_header(workdir), tables

    def files():
        folders = ("shards", "attacks", "local_only", "shared")
        paths = [path for folder in folders for path in (workdir / folder).rglob("*")]
        return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}

    first, rows = run_of(FEW)
    before = files()
    header, more = run_of(MORE)
    assert before.items() <= files().items()
    for part in ("shards", "blocks", "local_only"):
        assert header[part][: len(first[part])] == first[part]
    assert first["attacks"].items() <= header["attacks"].items()
    assert header["id"] == first["id"]
    for old, new in zip(rows, more, strict=True):
        assert all(any(row.items() <= other.items() for other in new) for row in old)
    trials = {row["trial"]: (row["method"], row["seed"]) for row in more[0]}
    assert [*trials] == [*range(4)]
    assert len({*trials.values()}) == 4
    attacked = [row["trial"] for row in more[1] if row["attack"] == "direct"]
    assert sorted(attacked) == [*range(4)]  # the new attack is run on the old trials too
    assert store.load(workdir).unfinished == ()
    # a resume plans the same, and has nothing to do
    after = files()
    assert run_of(MORE) == (header, more)
    assert files() == after
    with refused("leaves out", "choose another --workdir"):
        run_of(FEW)
    assert store.read_header(workdir) == header


# --- the queue ---


def made(workdir, *units):
    for unit in units:
        store.write_rows(workdir, unit, [])


def names(units):
    return [unit.name for unit in units]


@pytest.fixture
def queue(tmp_path):
    """Three shards in two blocks, and a cheap and a dear attack on them."""
    attacks = {
        name: entry(cost, attack="norm", rule=work.run.attacks.TABLE["norm"].rule)
        for name, cost in (("cheap", 0), ("dear", 1))
    }
    plan: Any = None
    header = {**header_of(**attacks), "local_only": []}
    return Queue(Begun(plan, tmp_path, header))


def test_a_dear_attack_waits_for_cheaper_ones_of_its_block(queue, tmp_path):
    everything = work.anything
    assert names(queue.ready(everything)) == ["shards/0", "shards/1", "shards/2"]
    made(tmp_path, "shards/0", "shards/2")
    assert names(queue.ready(everything)) == ["shards/1", "attacks/cheap/001"]
    assert names(queue.next_attacks(everything)) == ["attacks/cheap/001"]
    with store.claim(tmp_path, "attacks/cheap/000"):  # another process is at its program
        assert not queue.next_attacks(everything)
    made(tmp_path, "attacks/cheap/001")
    assert names(queue.ready(everything)) == ["shards/1", "attacks/dear/001"]
    queue.given_up["shards/1"] = "no"  # the block's other shard is attacked all the same
    assert names(queue.left(everything)) == [
        *("attacks/cheap/000", "attacks/dear/000"),
        "attacks/dear/001",
    ]
    queue.given_up["shards/0"] = "no"
    assert names(queue.left(everything)) == ["attacks/dear/001"]
    queue.given_up.clear()
    made(tmp_path, "shards/1")
    assert "attacks/dear/000" not in names(queue.ready(everything))
    queue.given_up["attacks/cheap/000"] = "no"  # one that is given up is not waited for
    assert "attacks/dear/000" in names(queue.ready(everything))


def test_a_copy_prefers_its_program_and_then_those_that_nobody_is_at(queue, tmp_path):
    def preferred(program):
        return names(queue.preferred(program, is_shard))

    assert preferred("") == ["shards/0", "shards/1", "shards/2"]
    assert preferred("group 1") == ["shards/2", "shards/0", "shards/1"]
    with store.claim(tmp_path, "shards/0"):
        assert preferred("") == ["shards/2", "shards/0", "shards/1"]
        assert preferred("group 0") == ["shards/0", "shards/1", "shards/2"]
        assert queue.following("") == queue.units[2]
        assert queue.following("group 1") is None
    with contextlib.suppress(KeyError), store.attempt(tmp_path, "shards/0"):
        raise KeyError
    assert preferred("group 0") == ["shards/1", "shards/2", "shards/0"]  # what failed comes last


def test_what_may_not_be_made_keeps_what_needs_it(queue):
    def may(unit):
        return unit.name != "shards/2"

    left = names(queue.left(may))
    assert "shards/2" not in left
    assert not [name for name in left if name.endswith("/001")]


def test_data_that_changed_since_they_were_prepared_are_not_trained_on(tmp_path):
    folder = tmp_path / "data"
    datasets.prepare("digits", "", str(folder), {})
    config = parse(tiny(data={"name": "prepared", "dir": str(folder)}))
    path = folder / "features.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(UserError, match="not what was recorded"):
        work.begin(config, tmp_path / "w", "", say=silent)
