"""The sentences and the bounds that are made from judged points."""

from tests.sweeps import point
from vfljax import findings, judging, store


def test_a_fooled_direct_rule_is_called_what_it_is(tiny_sweep):
    attacks = {"direct/first_negative": 0.34, "direct/most_negative": 0.98}
    points = [point("kdk", 0.9, 0.5, {"kdk.epsilon": 0.45, "kdk.k": 3.0}, **attacks)]
    text = " ".join(findings.findings(store.load(tiny_sweep), points))
    assert "not protection" in text
    assert "epsilon=0.45 k=3" in text


def test_runs_that_learned_the_labels_inverted_are_counted_and_said():
    found = findings._inverted_findings(
        [point("gafm", 0.9, 0.6, inverted=1), point("gafm", 0.9, 0.6), point("kdk", 0.9, 0.6)]
    )
    assert len(found) == 1
    assert found[0].startswith("gafm: 1 of 4 runs")


def test_label_dp_bounds_are_printed_except_where_there_is_none(defended):
    prior = {"label_dp.epsilon": 1.0, "label_dp.mechanism": "rr_with_prior"}
    points = [
        *judging.points(defended),
        point("prior", 0.9, 0.6, prior),
        point("raw", 0.9, 0.6, {**prior, "label_dp.guarantee": "none"}),
    ]
    _, rows = findings.label_dp_table(defended, points)
    assert rows[3][0] == "raw strength=1 rr_with_prior none"
    odds, guess = ([row[i] for row in rows] for i in (1, 2))
    assert odds[:3] == ["2.72", "20.1", "2.72"]
    # 37 % and 63 % of 569 rows: at e / (e + 1) = .731 the noisy label is the best guess
    assert abs(float(guess[0]) - 0.731) < 2e-3
    assert guess[2] == "differs from row to row"
    assert "no guarantee" in odds[3]
    assert "no guarantee" in guess[3]
    assert any("Label DP bounds" in line for line in findings.findings(defended, points[:5]))


def test_what_cannot_be_trained_without_a_top_model_is_not_trained_and_said(defended):
    rows = defended.results.select(["arm", "structure"]).to_pylist()
    assert {r["structure"] for r in rows if r["arm"] == "gafm"} == {"split"}
    assert {r["structure"] for r in rows if r["arm"] == "plain"} == {"split", "no_split"}
    said = findings.findings(defended, judging.points(defended))
    assert any(line.startswith("gafm is not trained without model splitting") for line in said)
    assert not any("no strength of gafm" in line and "ithout" in line[:9] for line in said)
    assert ("gafm", "no_split") not in {
        (c.arm, c.federation) for c in judging.choices(judging.points(defended))
    }
