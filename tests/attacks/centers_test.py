"""Mean and median: the nearer class center of known rows, or of all rows for the oracle."""

import numpy as np
import pytest

from tests.attacks import cases
from tests.reference import gradients as reference
from tests.sweeps import tiny, train
from vfljax.attacks.centers import mean, median

ROWS = 60


def problem(classes, seed=0, known=20):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, ROWS)
    g = rng.normal(size=(2, ROWS, 3)) + labels[None, :, None]
    case = cases.make_case(labels, classes, gradients=g, known=known)
    view, known = cases.seen_of(case)
    rows = np.asarray(known.rows)[: int(known.count)]
    return np.asarray(view.gradients), rows, np.asarray(known.labels)[: len(rows)], case


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(("attack", "statistic"), [(mean, np.mean), (median, np.median)])
def test_agrees_with_the_numpy_twin_on_the_known_rows(attack, statistic, classes):
    g, rows, labels, case = problem(classes)
    gradients = {0: g[0], -1: g[1], "mean": g.mean(0), "votes": np.sign(g).mean(0)}
    forms = [
        attack(cases.BOTTOMS, classes, epoch=epoch, scores=scores)
        for epoch in gradients
        for scores in ("distance", "nearest")
    ]
    results = [scores.train for scores in cases.attack_all(forms, case, known=20)]
    for of_epoch, distance, near in zip(gradients.values(), results[::2], results[1::2]):
        far = reference.nearest_center(of_epoch, rows, labels, statistic, classes)
        np.testing.assert_allclose(distance, -far, atol=1e-5)
        clear = np.diff(np.sort(far, -1)[:, :2])[:, 0] > 1e-5
        assert clear.sum() > ROWS / 6  # medians of signs tie often
        np.testing.assert_array_equal(np.argmax(near, -1)[clear], np.argmin(far, -1)[clear])
        assert set(np.unique(near)) == {0, 1}


def test_a_tie_goes_to_class_1_as_published():
    labels, g = np.array([0, 1, 0]), np.array([[[-1.0], [1.0], [0.0]]])
    case = cases.make_case(labels, 2, gradients=g, known=2)
    scores = cases.attack(mean(cases.BOTTOMS, 2), case, known=2).train
    np.testing.assert_array_equal(np.argmax(scores, -1), [0, 1, 1])


def test_the_oracle_form_reads_true_centers_is_judged_on_all_rows_and_stays_out_of_the_worst(
    tmp_path,
):
    config = tiny(
        data={"name": "breast_cancer", "train": 200, "validation": 100, "test": 100},
        grid={"undefended": {}},
        attacks={"mean": {"known": 10, "oracle": (False, True), "scores": "distance"}},
        seeds=1,
    )
    stored = train(tmp_path, config)
    rows = {r["label"]: r for r in stored.attacks.to_pylist()}
    assert set(rows) == {"mean/distance", "mean/oracle/distance"}
    exchange = stored.trial(0).exchange()
    g = np.asarray(exchange["party0_gradients"][-1], float)
    splits = stored.splits()
    labels = splits["labels"][splits["train"][0]]
    far = reference.nearest_center(g, np.arange(len(labels)), labels, np.mean, 2)
    expected = np.mean(np.argmin(far, -1) == labels)
    assert rows["mean/oracle/distance"]["success"] == pytest.approx(expected, abs=1e-6)
    assert rows["mean/oracle/distance"]["leak"] >= 0.5

    from vfljax.report.rows import read

    roles = read(stored).rows.set_index("label")["role"]
    assert roles["mean/distance"] == "attack"
    assert roles["mean/oracle/distance"] == "oracle"
