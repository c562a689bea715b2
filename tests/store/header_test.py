"""The record of a sweep and its copy: one that is damaged is read from the other."""

import json

import pytest

from tests.refusals import refused
from tests.sweeps import flip, tiny
from vfljax import store
from vfljax.config import resolve
from vfljax.errors import UserError
from vfljax.store import header, sealed

SMALL = {"schema": store.SCHEMA, "shards": [], "id": "0123"}


@pytest.fixture
def workdir(tmp_path):
    """A folder with a header and its copy, and nothing else."""
    sealed.write_root(tmp_path, SMALL)
    return tmp_path


STRIDE = 61  # bits from one flip to the next: any place within a byte


def test_whatever_bit_of_a_record_flips_its_copy_is_read(workdir):
    header = store.read_header(workdir)
    assert {name: header[name] for name in SMALL} == SMALL
    for name in ("sweep.json", "sweep.copy.json"):
        whole = (workdir / name).read_bytes()
        for bit in range(0, 8 * len(whole), STRIDE):
            flip(workdir / name, bit)
            assert store.read_header(workdir) == header
            (workdir / name).write_bytes(whole)


def test_the_copy_stands_in_for_a_missing_record_and_a_writer_makes_both_anew(tiny_sweep, tmp_path):
    content = {**store.read_header(tiny_sweep)}
    stored = store.begin(tmp_path, content)
    for gone in ("sweep.json", "sweep.copy.json"):
        (tmp_path / gone).unlink()
        assert store.read_header(tmp_path) == stored
        assert sealed.damaged_roots(tmp_path) == [gone]
        assert store.begin(tmp_path, content) == stored
        assert sealed.damaged_roots(tmp_path) == []


def test_both_missing_are_not_taken_for_a_new_sweep(workdir):
    (workdir / "sweep.json").unlink()
    (workdir / "sweep.copy.json").unlink()
    (workdir / "shards").mkdir()
    with pytest.raises(UserError, match=r"has lost its sweep\.json and the copy of it"):
        store.begin(workdir, SMALL)


def test_a_record_of_another_kind_is_not_believed(workdir):
    for name in ("sweep.json", "sweep.copy.json"):
        sealed.write_record(workdir / name, {**SMALL, sealed.KIND: "shards/a"})
    with pytest.raises(UserError, match=r"it is shards/a\.json"):
        store.read_header(workdir)


@pytest.mark.parametrize(
    ("fields", "by"),
    [
        (
            {"schema": 7, "versions": {"vfljax": "0.2.0"}},
            "the vfljax that wrote it (version 0.2.0)",
        ),
        (
            {"schema": 9, "versions": {"vfljax": "0.4.0"}, "revision": "af44e6fa6fa01234+"},
            "the vfljax that wrote it (version 0.4.0, revision af44e6fa6fa0)",
        ),
        ({"schema": 3}, "the vfljax that wrote it"),
    ],
)
def test_a_sweep_of_another_schema_is_refused_in_a_line_that_names_who_reads_it(
    tmp_path, fields, by
):
    (tmp_path / "sweep.json").write_text(json.dumps({**SMALL, **fields}))
    remedy = f"use {by}, or start in a new workdir."
    with refused(f"has schema {fields['schema']}, and this version reads 8: {remedy}"):
        store.load(tmp_path)


def test_another_config_is_refused_by_the_fields_that_differ(tmp_path):
    stored = {"config": tiny(), "checksum": "", "identity": "", "pretrained": {}}
    stored |= {"reader": 1, "switches": {}}
    changes = {"seeds": 4, "training.epochs": 9, "data.name": "iris"}
    other = {**stored, "config": tiny(**changes)}
    header.refuse_another(tmp_path, stored, {**stored, "config": resolve(tiny())})
    # seeds are not among them, since a sweep may have more
    fields = "data.name: digits -> iris; training.epochs: 3 -> 9"
    with refused(f"holds another sweep ({fields}): choose another"):
        header.refuse_another(tmp_path, stored, other)


@pytest.mark.parametrize("field", ["malicious.rule", "malicious.upload"])
def test_a_sweep_is_not_extended_by_what_its_trials_depend_on(tiny_sweep, field):
    value = {"malicious.rule": "released", "malicious.upload": "replay"}[field]
    stored = store.read_header(tiny_sweep)
    with refused(f"holds another sweep ({field}: "):
        store.refuse_another(tiny_sweep, stored, {**stored, "config": tiny(**{field: value})})


def test_the_command_of_a_sweep_is_that_which_extended_it_last(tiny_sweep, tmp_path):
    stored = store.begin(tmp_path, {**store.read_header(tiny_sweep)})
    same = store.begin(tmp_path, {**stored, "command": "vfljax sweep --jobs=2"})
    assert same["command"] == stored["command"]
    more = {**stored["config"], "seeds": stored["config"]["seeds"] + 1}
    extending = {
        "config": more,
        "earlier": [stored["config"]],
        "command": "vfljax sweep --plugin=a",
    }
    assert store.begin(tmp_path, {**stored, **extending})["command"] == "vfljax sweep --plugin=a"
