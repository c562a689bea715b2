"""Tests of the queue of units: each is made by one process, and is given up after three failures."""

import contextlib
import pathlib
from typing import Any

import pytest

from tests.refusals import refused
from tests.store.units_test import entry, header_of
from tests.sweeps import comparable, is_shard, silent, tiny
from vfljax import store
from vfljax.attacking import planning
from vfljax.errors import UserError
from vfljax.launching import running, work
from vfljax.launching.work import Begun, Outcome, Queue
from vfljax.store.claims import TRIES
from vfljax.sweep import train
from vfljax.sweep.grid import parse

CONFIG = tiny(
    data={"name": "breast_cancer", "train": 256, "validation": 64, "test": 64},
    grid={"noise": {"noise": {"scale": (0.0, 0.1)}}},
    attacks={"norm": {}, "direct": {}},
    **{"execution.shard_seconds": 1e-3, "training.epochs": 2, "training.batch_size": 16},
)


def tables(workdir: pathlib.Path) -> list[list[dict[str, Any]]]:
    """Results, attacks and baselines, without times."""
    sweep = store.load(workdir)
    return [comparable(table) for table in (sweep.results, sweep.attacks, sweep.local_only)]


def run(workdir: pathlib.Path, **options: Any) -> Outcome:
    return running.finish(parse(CONFIG), workdir, "test", silent, **options)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(planning, "BLOCK", 1)  # a block for each shard


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The tables that one process makes."""
    workdir = tmp_path_factory.mktemp("alone") / "w"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "BLOCK", 1)
        run(workdir).check()
    header = store.read_header(workdir)
    assert len(header["shards"]) == len(header["blocks"]) == 4
    return tables(workdir)


class Waiting(BaseException):
    """Raised by a copy that has nothing left but what others have claimed."""


def test_two_copies_divide_the_units_and_end_with_the_tables_of_one(alone, tmp_path, monkeypatch):
    begun = work.begin(parse(CONFIG), tmp_path / "w", "test", silent)
    make, made = work._Maker.make, []

    def wait(seconds):
        raise Waiting

    def make_beside_another(self, unit):
        made.append(unit.name)
        if len(made) == 1:
            with pytest.raises(Waiting):
                work.work(begun, silent)
            assert made[0] not in made[1:]
        make(self, unit)

    monkeypatch.setattr(work.time, "sleep", wait)
    monkeypatch.setattr(work._Maker, "make", make_beside_another)
    running._made(begun, silent, work.work).check()
    units = store.units_of(begun.header)
    assert sorted(made) == sorted(unit.name for unit in units)  # each once
    first_block = {unit.name for unit in units if made[0] in unit.needs}
    assert {*made[-len(first_block) :]} == first_block  # which the other copy could not make
    assert tables(tmp_path / "w") == alone


def test_a_unit_that_fails_three_times_is_given_up_with_what_needs_it(alone, tmp_path, monkeypatch):
    train_shard, tries = train.train_shard, []

    def fails(trainer, shard, *rest):
        if shard.name.startswith("00001"):
            tries.append(f"shards/{shard.name}")
            raise RuntimeError("it cannot be\nmore lines")
        train_shard(trainer, shard, *rest)

    monkeypatch.setattr(train, "train_shard", fails)
    outcome = run(tmp_path / "w")
    assert len(tries) == TRIES
    assert outcome.given_up == {tries[0]: "RuntimeError: it cannot be"}
    with pytest.raises(UserError, match=f"^{tries[0]} failed 3 times: RuntimeError: it cannot be"):
        outcome.check()
    sweep = store.load(tmp_path / "w")
    left = [u for u in store.units_of(sweep.header) if not (tmp_path / "w" / u.name).is_dir()]
    assert {unit.name for unit in left if unit.name != tries[0]} == {
        unit.name for unit in store.units_of(sweep.header) if tries[0] in unit.needs
    }
    assert (tmp_path / "w" / "attacks.csv").exists()  # of the others
    assert sweep.unfinished
    monkeypatch.setattr(train, "train_shard", train_shard)
    run(tmp_path / "w").check()  # the same command tries again
    assert tables(tmp_path / "w") == alone


def test_the_other_shards_of_a_block_are_attacked_where_one_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "BLOCK", 256)  # one block of all shards
    train_shard = train.train_shard

    def fails(trainer, shard, *rest):
        if shard.name.startswith("00001"):
            raise RuntimeError("no")
        train_shard(trainer, shard, *rest)

    monkeypatch.setattr(train, "train_shard", fails)
    assert len(run(tmp_path / "w").given_up) == 1
    sweep = store.load(tmp_path / "w")
    trained = set(sweep.results["trial"].to_pylist())
    assert set(sweep.attacks["trial"].to_pylist()) == trained
    assert len(sweep.unfinished) == 3  # one shard and two attacks
    before = comparable(sweep.attacks)
    monkeypatch.setattr(train, "train_shard", train_shard)
    run(tmp_path / "w").check()
    sweep = store.load(tmp_path / "w")
    attacks = comparable(sweep.attacks)
    assert not sweep.unfinished
    assert len(attacks) > len(before)
    assert [row for row in attacks if row["trial"] in trained] == before


def test_what_others_have_given_up_is_not_tried(tmp_path, monkeypatch):
    begun = work.begin(parse(CONFIG), tmp_path / "w", "test", silent)
    unit = next(filter(is_shard, store.units_of(begun.header)))
    for _ in range(TRIES):
        with contextlib.suppress(RuntimeError), store.attempt(begun.workdir, unit.name):
            raise RuntimeError("no")
    monkeypatch.setattr(work._Maker, "make", None)
    given_up = {unit.name: "RuntimeError: no"}
    assert work.work(begun, silent, lambda other: other == unit).given_up == given_up
    queue = Queue(begun)
    queue.find_given_up()
    assert queue.given_up == given_up


def test_where_no_shard_can_be_trained_the_reason_is_the_error(tmp_path, monkeypatch):
    def fails(*arguments):
        raise RuntimeError("no")

    monkeypatch.setattr(train, "train_shard", fails)
    with pytest.raises(UserError, match=r"failed 3 times: RuntimeError: no \(and 3 more\)"):
        run(tmp_path / "w")


def test_a_fault_of_the_machine_ends_all_at_once(tmp_path, monkeypatch):
    def full(*arguments):
        raise UserError("the disk is full")

    monkeypatch.setattr(train, "train_shard", full)
    with pytest.raises(UserError, match="^the disk is full"):
        run(tmp_path / "w")


def test_an_attack_that_fails_leaves_the_others(alone, tmp_path, monkeypatch):
    run_unit = work.run.run_unit

    def fails(unit, stored):
        if unit.of.startswith("norm"):
            raise RuntimeError("no")
        run_unit(unit, stored)

    monkeypatch.setattr(work.run, "run_unit", lambda unit, stored: fails(unit, stored))
    outcome = run(tmp_path / "w")
    assert len(outcome.given_up) == 4
    assert {*outcome.given_up.values()} == {"RuntimeError: no"}
    sweep = store.load(tmp_path / "w")
    attacks = comparable(sweep.attacks)
    assert attacks == [row for row in alone[1] if row["attack"] != "norm"]
    assert sweep.unfinished == ("the attack norm was not run on 4 of 4 blocks of shards",)


# --- the same folder with more ---

FEW = {**CONFIG, "seeds": 1, "grid": {"kdk": {"kdk": {"epsilon": 0.4, "k": 2}}}}
FEW |= {"attacks": {"direct": {"rule": "most_negative"}}}
MORE = {**FEW, "seeds": 2, "grid": {"noise": {"noise": {"scale": 0.1}}, **FEW["grid"]}}
MORE |= {"attacks": {"norm": {}, **FEW["attacks"]}}


def test_a_sweep_that_is_extended_keeps_what_it_has_and_makes_the_rest(tmp_path, monkeypatch):
    workdir, taught = tmp_path / "w", []
    train_teachers = train.teachers.train_teachers

    def counted(teacher, lessons, *rest):
        taught.append(lessons.seed.tolist())
        return train_teachers(teacher, lessons, *rest)

    def run_of(config):
        running.finish(parse(config), workdir, "test", silent).check()
        return store.read_header(workdir), tables(workdir)

    def files():
        folders = ("shards", "attacks", "local_only", "shared")
        paths = [path for folder in folders for path in (workdir / folder).rglob("*")]
        return {path: path.stat().st_mtime_ns for path in paths if path.is_file()}

    monkeypatch.setattr(train.teachers, "train_teachers", counted)
    first, rows = run_of(FEW)
    before = files()
    header, more = run_of(MORE)
    assert taught == [[0], [1]]
    assert before.items() <= files().items()
    for part in ("shards", "blocks", "local_only"):
        assert header[part][: len(first[part])] == first[part]
    assert first["attacks"].items() <= header["attacks"].items()
    assert header["id"] == first["id"]
    for old, new in zip(rows, more, strict=True):
        assert all(any(row.items() <= other.items() for other in new) for row in old)
    trials = {row["trial"]: (row["method"], row["seed"], row["federation"]) for row in more[0]}
    assert [*trials] == [*range(8)]
    assert len({*trials.values()}) == 8
    attacked = [row["trial"] for row in more[1] if row["label"] == "norm"]
    assert sorted(attacked) == [*range(8)]  # the new attack is run on the old trials too
    assert store.load(workdir).unfinished == ()
    # a resume plans the same, and has nothing to do
    after = files()
    assert run_of(MORE) == (header, more)
    assert files() == after
    with refused("leaves out", "choose another --workdir"):
        run_of(FEW)
    assert store.read_header(workdir) == header


@pytest.mark.parametrize("field", ["rule", "upload"])
def test_a_sweep_is_not_extended_by_what_its_trials_depend_on(tiny_sweep, field):
    values = {"rule": "released", "upload": "replay"}
    with refused(f"holds another sweep (malicious.{field}: "):
        store.refuse_another(
            tiny_sweep,
            header := store.read_header(tiny_sweep),
            {**header, "config": tiny(**{f"malicious.{field}": values[field]})},
        )


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


def test_what_may_not_be_made_keeps_what_needs_it(queue):
    def may(unit):
        return unit.name != "shards/2"

    left = names(queue.left(may))
    assert "shards/2" not in left
    assert not [name for name in left if name.endswith("/001")]
