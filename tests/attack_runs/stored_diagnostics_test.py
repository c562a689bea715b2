"""Attacks that look inside a stored federation: what they are given, and that no worst case counts them."""

import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import gradients as reference
from tests.reference import spectral
from tests.sweeps import attack, by_label
from vfljax import store
from vfljax.attack_runs import diagnostics, view
from vfljax.federation.training import rows_of
from vfljax.report.sweep_answers import judge_sweep
from vfljax.scheduling import running
from vfljax.sweep.initial import without_defenses
from vfljax.sweep.known import split_arrays

ATTACKS = {
    "norm": {},
    "cosine": {"oracle": True},
    "spectral": {"signal": "top.logits", "whole": True},
}


def test_diagnostics_are_computed_after_training_and_are_no_candidates_for_the_strongest_attack(
    defended, tmp_path
):
    workdir = shutil.copytree(defended.workdir, tmp_path / "w")
    plan = running.stored_plan(workdir)
    attack(workdir, ATTACKS, plan)
    stored = store.load(workdir)
    row = next(r for r in stored.results.to_pylist() if r["federation"] == "split")
    spec, seed = without_defenses(plan.groups[0].spec), row["seed"]
    weights = view.attack_input(stored.workdir, row, "cosine", {}, (0,), "all").weights
    features = rows_of(plan.table, jnp.int32(seed), plan.table.train[seed])
    labels = plan.table.labels[plan.table.train[seed]]
    clean, logits = (
        np.asarray(
            harness.quick_jit(diagnostics._make_diagnostic(spec, name, (0,)))(
                weights, features, labels
            )
        )
        for name in (diagnostics.CLEAN, "top.logits")
    )
    labels = np.asarray(labels)
    found = {r["attack"]: r for r in stored.attacks.to_pylist() if r["trial"] == row["trial"]}
    # the oracle's hint is the clean gradient of a known positive
    g = np.asarray(stored.trial(row["trial"]).exchange()["party0_gradients"][-1], np.float64)
    order = split_arrays(plan.dataset.labels, plan.splits)["known_order"][seed]
    first = next(i for i in order if labels[i] == 1)
    for name, score in (
        ("cosine", reference.cosine(g, np.float64(clean[first]))),
        ("spectral", spectral.scores(logits)),
    ):
        score = np.float32(score)
        expected = harness.best_leak(np.stack([-score, score], axis=1), labels)
        assert found[name]["leak"] == pytest.approx(float(expected), abs=2e-3)

    oracles = {label: about["oracle"] for label, about in by_label(workdir).items()}
    inside = ["cosine/oracle", "spectral/top.logits/whole"]
    assert {label for label, oracle in oracles.items() if oracle} == {*inside}
    judged = judge_sweep(workdir)
    rows = judged.rows[judged.rows["panel"] == "split"]
    # of the malicious federation the oracle reads the gradient that it is sent, and no layer
    oracle_labels = {*inside, "cosine/oracle (malicious)"}
    assert {*rows.loc[rows["role"] == "oracle", "label"]} == oracle_labels
    leaders = judged.leading.loc[judged.leading["panel"] == "split", "leader"]
    assert {*leaders.str.removesuffix(" (malicious)")} == {"norm"}
