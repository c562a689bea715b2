"""Colluding parties: one view of several, shared programs, their own layers and columns."""

# pandas annotates what a selection returns as a union
# pyright: reportAttributeAccessIssue=false

import collections

import jax
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.reference import direct as reference
from tests.sweeps import attack, by_label, plan_of, tiny, train
from vfljax import store
from vfljax.attacking import batching, view
from vfljax.report import tables
from vfljax.report.judged import judge_sweep
from vfljax.store import exchange as wire
from vfljax.sweep import plan as planning
from vfljax.types import Agreed

BOTH = (0, 1)
CONFIG = tiny(
    grid={"noise": {"noise": {"scale": 0.01}}},
    attacks={
        "mean": {"known": 20},
        "active": {"known": 20, "steps": 4},
        "direct": {"rule": "most_negative", "epoch": -1},
        "spectral": {"signal": "party1.cut"},
    },
    attackers=((0,), (1,), BOTH),
    parties={"passive": 2},
    seeds=1,
    **{"malicious.parties": (BOTH,), "training.epochs": 2},
)


@pytest.fixture(scope="module")
def plan():
    return plan_of(CONFIG)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """The sweep, its attacks' summary, and how many programs each attack newly made."""
    workdir = tmp_path_factory.mktemp("colluders") / "w"
    train(workdir, CONFIG, attack=False)
    programs, make = collections.Counter(), batching.make_attack_member

    def counted(static):
        programs[static.name] += 1
        return make(static)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batching, "make_attack_member", counted)
        attack(workdir)
    return store.load(workdir), by_label(workdir), programs


def setting(stored, structure):
    (row,) = [r for r in stored.results.to_pylist() if r["federation"] == structure]
    return row, stored.trial(row["trial"]).exchange()


def test_what_crossed_the_wire_is_concatenated_and_what_is_shared_is_not(attacked):
    stored, _, _ = attacked
    row, arrays = setting(stored, "split")
    alone = [view.attack_input(stored.workdir, row, "mean", {}, (p,), False) for p in BOTH]
    together = view.attack_input(stored.workdir, row, "mean", {}, BOTH, False)
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


def test_a_view_of_colluders_holds_each_ones_columns_as_its_bottom_reads_them(attacked, plan):
    stored, _, _ = attacked
    arrays = planning.split_arrays(plan.dataset.labels, plan.splits)
    row, _ = setting(stored, "split")
    one = view.attack_input(stored.workdir, row, "mean", {}, BOTH, False)
    seen = view.view_of(one, view.common_data(plan.table, arrays, BOTH), Agreed(64))
    assert seen.gradients.shape == (2, 320, 8)
    for p in BOTH:
        expected = training_columns(plan, p)
        np.testing.assert_allclose(seen.features[p].reshape(320, -1), expected, atol=1e-6)
    assert np.any(seen.features[0] != seen.features[1])


def training_columns(plan, p):
    rows = plan.splits[0].train
    raw = np.asarray(plan.table.features[p])[rows]
    flat = (raw - np.asarray(plan.table.mean[p][0])) / np.asarray(plan.table.scale[p][0])
    return flat.reshape(len(rows), -1)


def test_direct_reads_the_average_of_what_colluders_received(attacked, plan):
    stored, _, _ = attacked
    row, arrays = setting(stored, "no_split")
    rows = {r["attackers"]: r for r in stored.attacks.to_pylist() if r["attack"] == "direct"}
    labels = plan.dataset.labels[plan.splits[0].train]
    received = [np.asarray(arrays[f"party{p}_gradients"][-1]) for p in BOTH]
    for who, g in (
        ("[0]", received[0]),
        ("[1]", received[1]),
        ("[0, 1]", np.mean(received, axis=0)),
    ):
        expected = np.mean(np.array(reference.most_negative(g)) == labels)
        assert rows[who]["success"] == pytest.approx(expected, abs=1e-6)
        assert rows[who]["trial"] == row["trial"]
    # independent noise: two copies tell more than one
    assert rows["[0, 1]"]["success"] > max(rows["[0]"]["success"], rows["[1]"]["success"])


def test_the_baseline_without_a_federation_has_all_colluders_columns(attacked, plan):
    stored, _, _ = attacked
    arrays = planning.split_arrays(plan.dataset.labels, plan.splits)
    known = arrays["known_order"][0][:20]
    labels = plan.dataset.labels[plan.splits[0].train]
    (row,) = [r for r in stored.attacks.to_pylist() if r["attack"] == "active"]
    x = np.concatenate([training_columns(plan, p) for p in BOTH], axis=1)
    model = LogisticRegression(max_iter=1000).fit(x[known], labels[known])
    assert row["logistic_success"] == pytest.approx(model.score(x, labels), abs=0.02)
    alone = training_columns(plan, 0)
    less = LogisticRegression(max_iter=1000).fit(alone[known], labels[known])
    assert row["logistic_success"] > less.score(alone, labels) + 0.05


def test_malicious_runs_are_attacked_by_those_who_were_malicious(attacked):
    stored, _, _ = attacked
    pairs = {(r["federation"], r["attackers"], r["label"]) for r in stored.attacks.to_pylist()}
    assert {pair for pair in pairs if pair[0].startswith("malicious")} == {
        ("malicious-0-1", "[0, 1]", "active/parties=0+1"),
        ("malicious-0-1", "[0, 1]", "mean/parties=0+1"),
    }
    # once each, though three groups of attackers have a form of the mean attack
    malicious = [r for r in stored.attacks.to_pylist() if r["federation"] == "malicious-0-1"]
    assert len(malicious) == 2
    assert {pair[1:] for pair in pairs if pair[0] == "split" and pair[2].startswith("mean")} == {
        ("[0]", "mean"),
        ("[1]", "mean/parties=1"),
        ("[0, 1]", "mean/parties=0+1"),
    }


def test_one_attack_has_figures_of_its_own_on_every_federation(attacked):
    stored, _, _ = attacked
    found = judge_sweep(stored.workdir)
    label = "mean/parties=0+1"
    rows = found.rows[found.rows["label"].str.startswith(label)]
    rows = rows.set_index("federation")["leak"]
    assert set(rows.index) == {"split", "malicious-0-1", "no_split"}
    assert rows.nunique() == 3
    table = tables.leaks(found)
    written = table[table["attack"].str.startswith(label)].set_index("federation")["leak"]
    assert written.to_dict() == rows.to_dict()


def test_a_program_is_compiled_once_an_attack_and_shape_of_view(attacked):
    *_, programs = attacked
    # parties 0 and 1 own as many columns: their views share a program; two together do not
    assert programs["direct"] == 2
    assert (
        programs["mean"] == 4
    )  # and of two federations: the cut is 4 wide with splitting, 10 without
    assert programs["active"] == 0  # it shares the passive one's
    assert programs["spectral"] == 3  # what looks inside is told who attacks


def test_only_layers_of_others_are_diagnostics_and_stay_out_of_the_worst_case(attacked):
    stored, described, _ = attacked
    oracle = {label: one["oracle"] for label, one in described.items() if "spectral" in label}
    assert oracle == {
        "spectral/party1.cut": True,
        "spectral/party1.cut/parties=1": False,
        "spectral/party1.cut/parties=0+1": False,
    }
    assert not any(one["oracle"] for label, one in described.items() if "spectral" not in label)
    found = judge_sweep(stored.workdir)
    (one,) = found.leading[found.leading["panel"] == "split"].to_dict("records")
    fair = found.rows[(found.rows["role"] == "attack") & (found.rows["panel"] == "split")]
    learners = found.rows[found.rows["role"] == "learner"]
    assert {"0", "1", "0+1"} == {*learners["attackers"]} == {*fair["attackers"]}
    assert not fair["label"].str.startswith("spectral/party1.cut").all()
    beside = learners[learners["known"] == one["known"]]
    assert one["leak"] == pytest.approx(max(fair["leak"].max(), beside["leak"].max()))
    oracles = found.rows.loc[found.rows["role"] == "oracle", "label"]
    assert {label.split(" ")[0] for label in oracles} == {"spectral/party1.cut"}
