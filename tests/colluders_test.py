"""Colluding parties: one view of several, shared programs, their own layers and columns."""

import json

import jax
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests.reference import direct as reference
from tests.sweeps import tiny, train
from vfljax import attacking, judging, lab, sight, store
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
def run(tmp_path_factory):
    """The sweep, its attacks' summary, and how many programs each attack newly made."""
    workdir = tmp_path_factory.mktemp("colluders") / "w"
    train(workdir, CONFIG, attack=False)
    made, programs = lab.prepare(CONFIG), {}
    for name in CONFIG["attacks"]:
        before = attacking._program.cache_info().misses
        attacking.run(made, workdir, [name], say=lambda line: None)
        programs[name] = attacking._program.cache_info().misses - before
    return store.load(workdir), json.loads((workdir / "attacks.json").read_text()), programs


def setting(stored, structure):
    (row,) = [r for r in stored.results.to_pylist() if r["structure"] == structure]
    return row, stored.setting(row["setting"]).exchange()


def test_what_crossed_the_wire_is_concatenated_and_what_is_shared_is_not(run):
    stored, _, _ = run
    row, exchange = setting(stored, "split")
    alone = [sight.target_of(stored.workdir, row, "mean", {}, (p,), False) for p in BOTH]
    found = sight.target_of(stored.workdir, row, "mean", {}, BOTH, False)
    for name in sight.OWN:
        parts = [np.asarray(exchange[f"party{p}_{name}"]) for p in BOTH]
        assert np.any(parts[0] != parts[1])
        np.testing.assert_array_equal(found.exchange[name], np.concatenate(parts, axis=-1))
        for one, part in zip(alone, parts, strict=True):
            np.testing.assert_array_equal(one.exchange[name], part)
    for name in ("order", "sent", "epochs", "sum_count"):
        np.testing.assert_array_equal(found.exchange[name], alone[1].exchange[name])
    jax.tree.map(
        np.testing.assert_array_equal, found.bottoms, (*alone[0].bottoms, *alone[1].bottoms)
    )
    assert found.weights is None


def test_a_view_of_colluders_holds_each_ones_columns_as_its_bottom_reads_them(run):
    stored, _, _ = run
    made = lab.prepare(CONFIG)
    arrays = lab.split_arrays(made.dataset.labels, made.splits)
    row, _ = setting(stored, "split")
    target = sight.target_of(stored.workdir, row, "mean", {}, BOTH, False)
    view = sight.view_of(target, sight.ground_of(made.table, arrays, BOTH), Agreed(64))
    assert view.gradients.shape == (2, 320, 8)
    for p in BOTH:
        expected = training_columns(made, p)
        np.testing.assert_allclose(view.features[p].reshape(320, -1), expected, atol=1e-6)
    assert np.any(view.features[0] != view.features[1])


def training_columns(made, p, part="train"):
    rows = getattr(made.splits[0], part)
    raw = np.asarray(made.table.features[p])[rows]
    flat = (raw - np.asarray(made.table.mean[p][0])) / np.asarray(made.table.scale[p][0])
    return flat.reshape(len(rows), -1)


def test_direct_reads_the_average_of_what_colluders_received(run):
    stored, _, _ = run
    row, exchange = setting(stored, "no_split")
    rows = {r["parties"]: r for r in stored.attacks.to_pylist() if r["attack"].startswith("direct")}
    made = lab.prepare(CONFIG)
    labels = made.dataset.labels[made.splits[0].train]
    received = [np.asarray(exchange[f"party{p}_gradients"][-1]) for p in BOTH]
    for who, g in (("0", received[0]), ("1", received[1]), ("0+1", np.mean(received, axis=0))):
        expected = np.mean(np.array(reference.most_negative(g)) == labels)
        assert rows[who]["success"] == pytest.approx(expected, abs=1e-6)
        assert rows[who]["setting"] == row["setting"]
    # independent noise: two copies tell more than one
    assert rows["0+1"]["success"] > max(rows["0"]["success"], rows["1"]["success"])


def test_the_baseline_without_a_federation_has_all_colluders_columns(run):
    stored, _, _ = run
    made = lab.prepare(CONFIG)
    arrays = lab.split_arrays(made.dataset.labels, made.splits)
    known = arrays["known_order"][0][:20]
    labels = made.dataset.labels[made.splits[0].train]
    (found,) = [r for r in stored.attacks.to_pylist() if r["attack"].startswith("active")]
    x = np.concatenate([training_columns(made, p) for p in BOTH], axis=1)
    model = LogisticRegression(max_iter=1000).fit(x[known], labels[known])
    assert found["logistic_success"] == pytest.approx(model.score(x, labels), abs=0.02)
    alone = training_columns(made, 0)
    less = LogisticRegression(max_iter=1000).fit(alone[known], labels[known])
    assert found["logistic_success"] > less.score(alone, labels) + 0.05


def test_malicious_runs_are_attacked_by_those_who_were_malicious(run):
    stored, _, _ = run
    pairs = {(r["structure"], r["parties"], r["attack"]) for r in stored.attacks.to_pylist()}
    assert {pair for pair in pairs if pair[0].startswith("malicious")} == {
        ("malicious-0-1", "0+1", "active/parties=0+1")
    }
    assert {pair[1:] for pair in pairs if pair[0] == "split" and pair[2].startswith("mean")} == {
        ("0", "mean"),
        ("1", "mean/parties=1"),
        ("0+1", "mean/parties=0+1"),
    }


def test_a_program_is_compiled_once_an_attack_and_shape_of_view(run):
    _, summary, programs = run
    for own in summary.values():
        assert own["compiles"] == own["views"]
    # parties 0 and 1 own as many columns: their views share a program; two together do not
    assert programs["mean"] == programs["direct"] == 2
    assert programs["active"] == 1
    assert programs["spectral"] == 3  # what looks inside is told who attacks


def test_only_layers_of_others_are_diagnostics_and_stay_out_of_the_worst_case(run):
    stored, summary, _ = run
    oracle = {label: own["oracle"] for label, own in summary.items() if "spectral" in label}
    assert oracle == {
        "spectral/party1.cut": True,
        "spectral/party1.cut/parties=1": False,
        "spectral/party1.cut/parties=0+1": False,
    }
    assert not any(own["oracle"] for label, own in summary.items() if "spectral" not in label)
    (point,) = judging.points(stored)
    leaks = {a["attack"]: a["leak_select"] for a in stored.attacks.to_pylist()}
    split = {a: v for a, v in leaks.items() if not a.startswith("direct")}
    for worst, diagnostic in ((point.worst["split"], False), (point.oracle["split"], True)):
        own = {a: v for a, v in split.items() if oracle.get(a, False) == diagnostic}
        assert own[worst.attack] == max(own.values())
