"""Attacks that look inside a stored federation: what they are given, and that no worst case counts them."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import gradients as reference
from tests.reference import spectral
from tests.sweeps import by_label, plan_of, tiny, train
from vfljax.attacking import diagnostics, view
from vfljax.federation.training import rows_of
from vfljax.report.judged import judge_sweep
from vfljax.sweep import plan as planning

CONFIG = tiny(
    data={"name": "breast_cancer", "train": 200, "validation": 100, "test": 100},
    grid={"undefended": {}},
    attacks={
        "norm": {},
        "cosine": {"oracle": True},
        "spectral": {"signal": "top.hidden.0", "whole": True},
    },
    seeds=1,
    **{"training.epochs": 2},
)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """The sweep, its plan, its attacks' rows, and what stands inside for every training row."""
    stored = train(tmp_path_factory.mktemp("inside") / "w", CONFIG)
    plan = plan_of(CONFIG)
    (row,) = stored.results.to_pylist()
    weights = view.attack_input(stored.workdir, row, "cosine", {}, (0,), True).weights
    features = rows_of(plan.table, jnp.int32(0), plan.table.train[0])
    labels = plan.table.labels[plan.table.train[0]]
    spec = plan.groups[0].spec
    seen = {
        name: np.asarray(
            harness.quick_jit(diagnostics._make_diagnostic(spec, name, (0,)))(
                weights, features, labels
            )
        )
        for name in (diagnostics.CLEAN, "top.hidden.0")
    }
    rows = {r["attack"]: r for r in stored.attacks.to_pylist()}
    return stored, plan, rows, seen, np.asarray(labels)


def test_the_oracle_hint_is_the_clean_gradient_of_a_known_positive(attacked):
    stored, plan, rows, seen, labels = attacked
    g = np.asarray(stored.trial(0).exchange()["party0_gradients"][-1], np.float64)
    order = planning.split_arrays(plan.dataset.labels, plan.splits)["known_order"][0]
    first = next(i for i in order if labels[i] == 1)
    score = np.float32(reference.cosine(g, np.float64(seen[diagnostics.CLEAN][first])))
    expected = harness.leak(np.stack([-score, score], axis=1), labels)
    assert rows["cosine"]["leak"] == pytest.approx(float(expected), abs=2e-3)


def test_a_layer_of_the_label_party_is_read_after_training(attacked):
    _, _, rows, seen, labels = attacked
    score = np.float32(spectral.scores(seen["top.hidden.0"]))
    expected = harness.leak(np.stack([-score, score], axis=1), labels)
    assert rows["spectral"]["leak"] == pytest.approx(float(expected), abs=2e-3)


def test_both_are_marked_and_are_no_candidates_for_the_strongest_attack(attacked):
    stored, _, rows, _, _ = attacked
    described = by_label(stored.workdir)
    assert {label: one["oracle"] for label, one in described.items()} == {
        "norm": False,
        "cosine/oracle": True,
        "spectral/top.hidden.0/whole": True,
    }
    found = judge_sweep(stored.workdir)
    (one,) = found.leading.to_dict("records")
    assert one["leader"] == "norm"
    roles = found.rows[found.rows["panel"] == "split"].set_index("label")["role"].to_dict()
    oracles = dict.fromkeys(["cosine/oracle", "spectral/top.hidden.0/whole"], "oracle")
    assert roles == {"norm": "attack", **oracles}
    assert {r["label"] for r in rows.values()} == set(roles)
