"""Rows of attacks: blocks by what they hold, damage that is said, and what an attack lacks."""

import itertools
import os
import shutil
import sys

import pytest

from tests.refusals import damaged, refused
from tests.sweeps import by_label, comparable, drop_blocks, flip
from vfljax import store
from vfljax.errors import UserError
from vfljax.store import sealed

LABEL = "direct/most_negative"
VARIANT = "direct_most_negative.rule1"
UNIT = f"attacks/{VARIANT}"


def blocks(workdir):
    return {path.name: path.read_bytes() for path in (workdir / UNIT).glob("*.parquet")}


def damage(workdir, why, unit=UNIT):
    with damaged(workdir, unit, why):
        store.load(workdir)


def test_a_block_is_named_by_its_rows_and_takes_no_other_s_place(tmp_path):
    store.open_variant(tmp_path, VARIANT)
    for numbers in ([1, 2], [3, 4], [2, 1]):
        rows = [{"trial": number} for number in numbers]
        store.write_chunk(tmp_path, VARIANT, "split-0", numbers, rows)
    assert len(blocks(tmp_path)) == 2
    table = store.read_variant(tmp_path, VARIANT)
    assert sorted(table["trial"].to_pylist()) == [1, 2, 3, 4]


def test_a_form_s_folder_that_is_renamed_or_put_for_another_is_damage(workdir):
    folder = workdir / UNIT
    other = folder.with_name("direct_first_negative.rule1")
    moved = folder.rename(folder.with_name("new"))
    damage(workdir, r"attacks\.json does not name it", unit="attacks/new")
    moved.rename(workdir / "elsewhere")
    damage(workdir, "no such file")
    shutil.copytree(other, folder)
    damage(workdir, "it is attacks/direct_first_negative.rule1")


def test_a_block_that_a_kill_left_without_its_place_in_the_manifest_is_not_read(workdir):
    rows = comparable(store.load(workdir).attacks)
    (path,) = (workdir / UNIT).glob("*.parquet")
    path.with_name("split-0-0123456789ab.parquet").write_bytes(path.read_bytes()[:100])
    assert comparable(store.load(workdir).attacks) == rows
    store.open_variant(workdir, VARIANT)
    assert list(blocks(workdir)) == [path.name]


def test_rows_that_an_attack_lacks_are_said_when_it_is_loaded(workdir):
    assert store.load(workdir).unfinished == ()
    drop_blocks(workdir, LABEL)
    rows = by_label(workdir)[LABEL]["rows"]
    stored = store.load(workdir)
    assert stored.unfinished == (f"the attack {LABEL} has 0 of {rows} rows",)
    with pytest.raises(UserError, match=f"is not finished: the attack {LABEL} has 0 of"):
        stored.require_finished()


def test_an_attack_that_was_not_run_or_saw_fewer_shards_is_said(workdir):
    header, summary = store.read_header(workdir), store.attack_summary(workdir)
    header["config"]["attacks"]["probe"] = {}
    count = summary[VARIANT]["shards"]
    sealed.write_root(workdir, "sweep", header)
    for about in summary.values():
        about["shards"] = count - 1
    store.write_attack_summary(workdir, summary)
    lines = store.load(workdir).unfinished
    assert lines[0] == "the attack probe was not run"
    assert f"the attack {LABEL} saw {count - 1} of {count} shards" in lines
    assert len(lines) == 5  # three forms, and staying away


def test_a_damaged_summary_is_read_from_its_copy_and_both_are_one_line(workdir):
    summary = store.attack_summary(workdir)
    flip(workdir / "attacks.json")
    assert store.attack_summary(workdir) == summary
    flip(workdir / "attacks.copy.json")
    damage(workdir, "is damaged", unit="attacks.json")
    for name in ("attacks.json", "attacks.copy.json"):
        (workdir / name).unlink()
    damage(workdir, "it is missing", unit="attacks.json")


def test_another_sweep_s_summary_is_not_believed(workdir):
    content = {"sweep": "another", "attacks": store.attack_summary(workdir)}
    sealed.write_root(workdir, "attacks", content)
    damage(workdir, "it is another sweep's", unit="attacks.json")


def killed(workdir, moment):
    """The exit status of a process that drops ``direct`` and is killed before it changes the disk once more."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left, status = [moment], 1

    def hook(event, arguments):
        opened = event == "open" and int(arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        if opened or event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir"):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)

    try:
        sys.addaudithook(hook)
        store.drop(workdir, ["direct"])
        status = 0
    finally:
        os._exit(status)


def test_a_drop_that_is_killed_at_any_moment_drops_all_of_an_attack_or_nothing(workdir, tmp_path):
    every = set(store.load(workdir).attacks["label"].to_pylist())
    rest = every - {LABEL, "direct/first_negative"}
    found = []
    for moment in itertools.count():
        place = shutil.copytree(workdir, tmp_path / str(moment), copy_function=os.link)
        status = killed(place, moment)
        assert {f.state for f in store.inspect(place)} == {"sound"}
        found.append(set(store.load(place).attacks["label"].to_pylist()))
        with store.writing(place):
            if found[-1] == every:
                assert store.drop(place, ["direct"]) == ["direct/first_negative", LABEL]
            store.open_variant(place, VARIANT)  # as to attack anew
        assert store.read_variant(place, VARIANT).num_rows == 0
        assert not list(place.glob("attacks/.*"))
        if status == 0:
            break
        assert status == 9
    commit = found.index(rest)
    assert found == [every] * commit + [rest] * (len(found) - commit)
    assert 2 < commit < len(found) - 3
    assert (
        set(store.load(workdir).attacks["label"].to_pylist()) == every
    )  # of which copies are links


def test_what_is_not_stored_cannot_be_dropped(workdir):
    with refused("unknown attack 'direkt': did you mean 'direct'?", f"stored in {workdir}."):
        store.drop(workdir, ["norm", "direkt"])
    with refused("unknown attack 'logistic'"):
        store.drop(workdir, ["logistic"])
    assert store.drop(workdir, [LABEL]) == [LABEL]
    assert "direct/first_negative" in by_label(workdir)
