"""Attacks and blocks of shards are added to a header, and what it has stays."""

import pytest

from tests.sweeps import plan_of, tiny
from vfljax.attack_runs import jobs, planning
from vfljax.sweep import train


def shards(*sizes):
    return [
        {"name": f"s{n}", "trials": list(range(size)), "stage": 0} for n, size in enumerate(sizes)
    ]


@pytest.fixture(autouse=True)
def _on_a_cpu_of_small_blocks(monkeypatch):
    monkeypatch.setattr(planning, "BLOCK", 10)


def test_a_block_has_whole_shards_of_one_stage_in_their_order_and_at_least_so_many_trials():
    header = {"blocks": [], "shards": shards(6, 6, 12, 3, 4)}
    assert planning._blocks(header, 1) == [["s0", "s1"], ["s2"], ["s3", "s4"]]
    staged = shards(6, 1, 2, 12)
    for shard, stage in zip(staged, (0, 1, 1, 2), strict=True):
        shard["stage"] = stage
    assert planning._blocks({"blocks": [], "shards": staged}, 1) == [["s0"], ["s1", "s2"], ["s3"]]


def test_shards_that_come_later_are_in_blocks_of_their_own():
    header = {"blocks": [["s0", "s1"]], "shards": shards(6, 1, 2, 12)}
    assert planning._blocks(header, 1) == [["s2", "s3"]]
    assert planning._blocks({**header, "blocks": [["s0", "s1"], ["s2", "s3"]]}, 1) == []


def baseline(header):
    """The seeds and numbers of known labels of the units of the baseline."""
    units = header["local_only"]
    return {(seed, known) for u in units for seed in u["seeds"] for known, _ in u["points"]}


def test_attacks_are_added_beside_those_that_are_there():
    plan = plan_of(tiny(grid={"undefended": {}}))

    def extended(header, attacks):
        variants = jobs.planned(plan, plan.experiment.with_attacks(attacks))
        return planning.extended(header, plan, variants, settling=True)

    first = extended(train.header(plan, "test"), {"mean": {"known": 20}})
    assert [*first["attacks"]] == ["mean.rule1"]
    assert baseline(first) == {(0, 20), (1, 20)}
    assert [name for block in first["blocks"] for name in block] == [
        shard["name"] for shard in first["shards"]
    ]
    assert extended(first, {"mean": {"known": 20}}) == first
    more = extended(first, {"probe": {"known": 30}, "norm": {}})
    assert more["blocks"] == first["blocks"]
    assert more["local_only"][: len(first["local_only"])] == first["local_only"]
    assert baseline(more) == {(0, 20), (1, 20), (0, 30), (1, 30)}
    statuses = {key: about["status"] for key, about in more["attacks"].items()}
    assert statuses == {"mean.rule1": "ok", "probe.rule3": "ok", "norm.rule1": "skipped"}
    assert more["attacks"]["mean.rule1"] == first["attacks"]["mean.rule1"]
