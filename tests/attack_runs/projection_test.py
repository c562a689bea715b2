"""Wide cuts are narrowed for the attacks that declare it, and what tells labels in them stays."""

import numpy as np
import pytest

import vfljax
from vfljax import attacks
from vfljax.attack_runs.projection import LINEAR, project_exchange
from vfljax.models.mlp import MLP
from vfljax.report import not_run
from vfljax.scheduling import running

ROWS, WIDEST = 60, 256
NAMES = (*LINEAR, "sum_square")


def exchange(width, seed=0):
    random = np.random.default_rng(seed)
    arrays = {name: random.normal(size=(ROWS, width)).astype(np.float32) for name in NAMES}
    return {**arrays, "sum_square": arrays["sum_square"] ** 2, "sent": np.ones((1, ROWS), bool)}


@pytest.mark.parametrize(
    ("widths", "widest"), [((WIDEST,), WIDEST), ((3, 256), WIDEST), ((5000,), 0)]
)
def test_a_narrow_cut_stays_as_it_is(widths, widest):
    arrays = exchange(sum(widths))
    found = project_exchange(arrays, widths, widest, seed=0)
    assert {*found} == {*arrays}
    assert all(found[name] is arrays[name] for name in arrays)


def test_equal_seeds_project_alike_and_lengths_and_sums_of_squares_stay():
    arrays = exchange(4 + 2000)
    found, again, other = (project_exchange(arrays, (4, 2000), WIDEST, seed) for seed in (1, 1, 2))
    for name in NAMES:
        assert found[name].shape == (ROWS, 4 + WIDEST)
        np.testing.assert_array_equal(found[name], again[name])
        np.testing.assert_array_equal(found[name][:, :4], arrays[name][:, :4])
        assert not np.array_equal(found[name], other[name])
    before, after = (np.linalg.norm(of["gradients"], axis=1) for of in (arrays, found))
    np.testing.assert_allclose(after, before, rtol=0.25)
    before, after = (of["sum_square"].sum(axis=1) for of in (arrays, found))
    np.testing.assert_allclose(after, before, rtol=0.02)


def test_sums_over_epochs_are_those_of_projected_gradients_and_of_projected_signs():
    g = np.stack([exchange(2000, seed)["gradients"] for seed in range(3)])
    sums = {"sum_gradient": g.sum(0), "sum_sign": np.sign(g).sum(0)}
    found = project_exchange(sums, (2000,), WIDEST, seed=1)
    for name, of_epochs in {"sum_gradient": g, "sum_sign": np.sign(g)}.items():
        each = [
            project_exchange({"gradients": of}, (2000,), WIDEST, seed=1)["gradients"]
            for of in of_epochs
        ]
        np.testing.assert_allclose(found[name], np.sum(each, axis=0), rtol=1e-4, atol=1e-4)


def test_an_attack_that_reads_a_projection_reads_no_bottom_model():
    wide = {name: row for name, row in attacks.TABLE.items() if row.widest}
    assert {"spectral", "reader"} < {*wide}
    for name, row in wide.items():
        assert not row.whole_batches
        assert "bottoms" not in row((MLP((4,), 4),), 2).reads, name


def test_a_planted_direction_is_read_from_a_projection_and_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "report", lambda folder: "")
    random = np.random.default_rng(3)
    labels = random.permutation(np.arange(ROWS) % 2)
    direction = random.normal(size=320) / np.sqrt(320)
    noise = 0.3 * random.normal(size=(1, ROWS, 320)) / np.sqrt(320)
    gradients = (2 * labels - 1)[:, None] * direction + noise
    run = {"party0_gradients": gradients, "labels": labels}
    asked = {"attacks": ("spectral", "mean"), "say": lambda line: None}
    found = vfljax.attack_wire([run], tmp_path, **asked)
    judged = found.judged
    leaks = judged.rows.set_index("attack")["leak"]
    assert leaks["spectral"].max() == 1.0
    entries = [entry for entry in judged.attacks.values() if entry["status"] != "skipped"]
    told = {entry["attack"]: entry.get("projected") for entry in entries}
    assert (told["spectral"], told["mean"]) == ([320, WIDEST], None)
    assert any("320 numbers" in line and "spectral" in line for line in not_run.remarks(judged))
