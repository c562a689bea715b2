"""Colluding parties: one view of several, shared programs, their own columns."""

import collections

import jax
import numpy as np
import pytest

from tests.reference import direct as reference
from tests.sweeps import attack, plan_of, tiny, train
from vfljax import store
from vfljax.attack_runs import batching, view
from vfljax.store import exchange as wire
from vfljax.sweep.known import split_arrays
from vfljax.types import Agreed

BOTH = (0, 1)
CONFIG = tiny(
    grid={"noise": {"noise": {"scale": 0.01}}},
    attacks={"direct": {"rule": "most_negative", "epoch": -1}},
    attackers=((0,), (1,), BOTH),
    parties={"passive": 2},
    seeds=1,
    federations=("no_split",),
    **{"training.epochs": 2, "model.hidden": ()},
)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """The sweep, its one trial with its arrays, and how many programs its attack made."""
    workdir = tmp_path_factory.mktemp("colluders") / "w"
    train(workdir, CONFIG, attack=False)
    programs, make = collections.Counter(), batching.make_attack_member

    def counted(static):
        programs[static.name] += 1
        return make(static)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "make_attack_member", counted)
        attack(workdir)
    stored = store.load(workdir)
    (row,) = stored.results.to_pylist()
    return stored, row, stored.trial(row["trial"]).exchange(), programs


def test_what_crossed_the_wire_is_concatenated_and_what_is_shared_is_not(attacked):
    stored, row, arrays, _ = attacked
    alone = [view.attack_input(stored.workdir, row, "mean", {}, (p,)) for p in BOTH]
    together = view.attack_input(stored.workdir, row, "mean", {}, BOTH)
    for name in wire.BY_PARTY:
        parts = [np.asarray(arrays[f"party{p}_{name}"]) for p in BOTH]
        assert np.any(parts[0] != parts[1])
        np.testing.assert_array_equal(together.exchange[name], np.concatenate(parts, axis=-1))
        for one, part in zip(alone, parts, strict=True):
            np.testing.assert_array_equal(one.exchange[name], part)
    for name in ("order", "sent", "epochs", "sum_count"):
        np.testing.assert_array_equal(together.exchange[name], alone[1].exchange[name])
    jax.tree.map(
        np.testing.assert_array_equal, together.bottoms, (*alone[0].bottoms, *alone[1].bottoms)
    )
    assert together.weights is None


def test_a_view_of_colluders_holds_each_ones_columns_as_its_bottom_reads_them(attacked):
    stored, row, _, _ = attacked
    plan = plan_of(CONFIG)
    arrays = split_arrays(plan.dataset.labels, plan.splits)
    one = view.attack_input(stored.workdir, row, "mean", {}, BOTH)
    seen = view.view_of(one, view.common_data(plan.table, arrays, BOTH), Agreed(64))
    assert seen.gradients.shape == (2, 320, 20)
    for p in BOTH:
        raw = np.asarray(plan.table.features[p])[plan.splits[0].train]
        mean, scale = (np.asarray(of[p][0]) for of in (plan.table.mean, plan.table.scale))
        np.testing.assert_allclose(seen.features[p], (raw - mean) / scale, atol=1e-6)
    assert np.any(seen.features[0] != seen.features[1])


def test_direct_reads_the_average_of_what_colluders_received(attacked):
    stored, _, arrays, _ = attacked
    plan = plan_of(CONFIG)
    rows = {r["attackers"]: r for r in stored.attacks.to_pylist() if r["attack"] == "direct"}
    labels = plan.dataset.labels[plan.splits[0].train]
    received = [np.asarray(arrays[f"party{p}_gradients"][-1]) for p in BOTH]
    for who, g in zip(("[0]", "[1]", "[0, 1]"), (*received, np.mean(received, axis=0))):
        expected = np.mean(np.array(reference.most_negative(g)) == labels)
        assert rows[who]["success"] == pytest.approx(expected, abs=1e-6)
    # independent noise: two copies tell more than one
    assert rows["[0, 1]"]["success"] > max(rows["[0]"]["success"], rows["[1]"]["success"])


def test_each_group_has_its_label_and_views_of_equal_shapes_share_a_program(attacked):
    stored, _, _, programs = attacked
    pairs = {(r["attackers"], r["label"]) for r in stored.attacks.to_pylist()}
    name = "direct/most_negative"
    assert pairs == {
        *(("[0]", name), ("[1]", f"{name}/parties=1"), ("[0, 1]", f"{name}/parties=0+1"))
    }
    assert programs == {"direct": 2}  # parties 0 and 1 own as many columns
