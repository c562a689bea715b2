"""Reading a sweep: tables now, the arrays of one setting when they are asked for."""

import shutil

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refusals import refused
from tests.sweeps import attack_units, by_label, drop_units, identity
from vfljax import store
from vfljax.store import checkpoint, loading


def test_reading_one_setting_leaves_the_other_shards_alone(workdir):
    stored = store.load(workdir)
    with refused("trial 999"):
        stored.trial(999)
    setting = stored.trial(5)
    whole = checkpoint.load(setting.shard / "checkpoint")
    for shard in (workdir / "shards").iterdir():
        if shard != setting.shard:
            shutil.rmtree(shard)
    leaves = zip(jax.tree.leaves(whole), jax.tree.leaves(setting.weights()), strict=True)
    for every, of_setting in leaves:
        np.testing.assert_array_equal(every[setting.member], of_setting)
    exchange = setting.exchange()
    assert exchange["party0_embeddings"].shape == (2, 320, 4)  # of the first and last epoch
    assert exchange["epochs"].tolist() == [0, 2]
    assert (exchange["party0_sum_count"] == 3).all()  # sums are over every epoch


def test_a_damaged_checkpoint_read_by_setting_is_one_clear_line(workdir):
    setting = store.load(workdir).trial(0)
    for path in (setting.shard / "checkpoint").rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    with refused(f"{setting.shard} is damaged", ": delete it, and"):
        setting.weights()


def test_tables_are_exported_whole(workdir):
    store.export(workdir)
    assert pq.read_table(workdir / "results.parquet").num_rows == 24
    assert (workdir / "results.csv").read_text().count("\n") == 25
    rows = store.load(workdir).attacks.num_rows
    assert pq.read_table(workdir / "attacks.parquet").num_rows == rows


def test_a_part_of_a_sweep_is_read_as_far_as_it_went(workdir):
    whole = store.load(workdir).results.to_pylist()
    gone = sorted((workdir / "shards").iterdir())[-1]
    shutil.rmtree(gone)
    part = store.load(workdir)
    assert part.results.to_pylist() == [row for row in whole if row["shard"] != gone.name]
    assert part.unfinished[0].endswith("shards are not trained")
    assert set(part.attacks["trial"].to_pylist()) <= set(part.results["trial"].to_pylist())
    for folder in ("attacks", "local_only"):
        shutil.rmtree(workdir / folder)
    part = store.load(workdir)
    assert part.attacks.num_rows == part.local_only.num_rows == 0
    assert "the attack passive was not run on 1 of 1 blocks of shards" in part.unfinished
    assert "the local-only baseline is not finished" in part.unfinished
    shutil.rmtree(workdir / "shards")
    assert store.load(workdir).results.num_rows == 0


def test_an_entry_adds_up_what_its_units_cost(workdir):
    (unit,) = attack_units(workdir, "passive")
    passive = by_label(workdir)["passive"]
    rows = store.read_rows(workdir, [unit]).num_rows
    assert (passive["trials"], passive["diverged"], passive["rows"]) == (24, 0, rows)
    assert passive["seconds"] > 0
    drop_units(workdir, "passive")
    assert by_label(workdir)["passive"]["rows"] == 0
    alone = store.attack_summary(workdir)[store.LOCAL_ONLY_VARIANT]
    assert alone["knobs"] == [{"known": 20}]


def test_the_identity_of_an_attack_is_read_back_from_its_columns():
    for label in ("direct/most_negative", "norm/parties=0+1", "spectral/party0.cut"):
        attack = identity(label, known=3)
        assert store.identity_of(store.identity_columns(attack)) == attack
    one, other = identity("norm", rule=1), identity("norm", rule=2)
    assert store.variant_of(one) != store.variant_of(other)
    assert "/" not in store.variant_of(identity("direct/most_negative"))


def test_parts_are_found_by_name_or_number_and_are_trees_of_jax(tiny_sweep):
    trial = store.load(tiny_sweep).trial(7)
    weights = trial.weights()
    assert weights["bottoms"][1] is weights["bottoms"]["1"]
    (path, _), *_ = jax.tree_util.tree_leaves_with_path(weights["bottoms"])
    assert jax.tree_util.keystr(path).startswith("['0']['params']")
    with pytest.raises(KeyError, match="unknown part 2: choose from 0, 1"):
        weights["bottoms"][2]
    with pytest.raises(KeyError, match="did you mean 'party0_gradients'"):
        trial.exchange()["party0_gradient"]


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        ({1: [0, 1, 2], 2: [0, 1]}, 1),
        ({1: [0, 1, 2], 2: [0, 1, 2]}, 2),
        ({1: [0, 1, 2], 2: [0, 2, 3, 4]}, 2),  # a unit of an extended sweep was given up
        ({1: [0, 1], 2: [0], 3: [0, 1]}, 3),
        ({2: [0, 1, 2], 3: []}, 2),
    ],
)
def test_a_later_rule_of_learners_counts_once_it_has_as_many_rows(made, counts):
    each = {"attackers": "[0]", "known": 20, "draws": 1.0}
    rows = [{"rule": rule, "seed": seed, **each} for rule, of in made.items() for seed in of]
    found = loading._of_one_rule(pa.Table.from_pylist(rows)).to_pylist()
    assert [row["seed"] for row in found] == made[counts]
    assert {row["rule"] for row in found} == {counts}
    assert not loading._of_one_rule(pa.table({})).num_rows
