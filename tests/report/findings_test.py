"""The sentences and the bounds that are made from points."""

import dataclasses

import pytest

from tests.sweeps import REFERENCE, assessed, assessment, candidates_of
from vfljax.report import candidates as strongest_module
from vfljax.report import findings, guarantees, not_run
from vfljax.report.assessment import assess
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import read
from vfljax.report.templates import paragraphs

KDK = {"kdk.epsilon": 0.45, "kdk.k": 3.0}


def published(before, worst, spread):
    """A configuration without and with an attack that is in no paper; seeds spread around their leaks."""
    seeds = [-spread, 0.0, spread]
    leaks = [[leak + s for s in seeds] for leak in (before, worst)]
    one = assessment("kdk", 0.9, worst, KDK)

    def strongest(names):
        tried = candidates_of(names, leaks[: len(names)], [0.5] * 3, 1000)
        return strongest_module.strongest_of(tried)

    return dataclasses.replace(
        one, strongest=strongest(["passive", "probe"]), published=strongest(["passive"])
    )


@pytest.mark.parametrize(
    ("leaks", "said"),
    [
        ((0.6, 0.9, 0.01), "at least 0."),
        ((0.6, 0.9, 0.0), "at least 0."),
        ((0.6, 0.6001, 0.001), "no more"),
        ((0.6, 0.7, 0.1), str(Verdict.CANNOT_SAY)),
    ],
)
def test_an_attack_reads_more_than_published_ones_by_its_lower_limit(leaks, said):
    found = assessed(assessment("plain", 0.9, 0.9), published(*leaks))
    assert findings.more_in_words(found.assessments[1].unpublished).startswith(said)
    text = " ".join(findings.findings(found))
    assert (
        "Published attacks understate what leaks, by more than 0.05, of 1 defense" in text
    ) == said.startswith("at least")


def test_runs_that_learned_the_labels_inverted_are_counted():
    found = [
        assessment(method, 0.9, 0.6, inverted=inverted)
        for method, inverted in (("gafm", 1), ("gafm", 0), ("kdk", 0))
    ]
    (line,) = (x for x in findings.findings(assessed(*found)) if "wrong way round" in x)
    assert (
        "learned the two classes the wrong way round (training AUC below 1/2): gafm 1 of 4." in line
    )


def test_label_dp_bounds_are_printed_except_where_there_is_none(defended):
    prior = {"label_dp.epsilon": 1.0, "label_dp.mechanism": "rr_with_prior"}
    rows = read(defended)
    found = assessed(
        *assess(rows).assessments,
        assessment("prior", 0.9, 0.6, prior),
        assessment("raw", 0.9, 0.6, {**prior, "label_dp.guarantee": "none"}),
        reference=REFERENCE,
        rows=rows,
    )
    _, rows = guarantees.bound_table(found)
    assert rows[3][0] == "raw strength=1 rr_with_prior none"
    odds, guess = ([row[i] for row in rows] for i in (1, 2))
    assert odds[:3] == ["2.72", "20.1", "2.72"]
    # 37 % and 63 % of 569 rows: at e / (e + 1) = .731 the noisy label is the best guess
    assert abs(float(guess[0]) - 0.731) < 2e-3
    assert guess[2] == "differs from row to row"
    assert all("no guarantee" in cell for cell in (odds[3], guess[3]))
    assert any("Label DP bounds" in line for line in findings.findings(assess(read(defended))))


def test_what_cannot_be_trained_without_a_top_model_is_named(defended):
    rows = defended.results.select(["method", "federation"]).to_pylist()
    assert {r["federation"] for r in rows if r["method"] == "gafm"} == {"split"}
    assert {r["federation"] for r in rows if r["method"] == "plain"} == {"split", "no_split"}
    found = assess(read(defended))
    lines = findings.findings(found)
    assert any(
        line.startswith("Not trained without model splitting") and "gafm" in line for line in lines
    )
    assert ("gafm", "no_split") not in {(a.method, a.federation) for a in found.methods}


def test_a_federation_in_which_a_method_is_not_trained_is_no_gap():
    accuracy = assessment("plain", 0.9, 0.8).configuration.accuracy["split"]
    both = {"split": accuracy, "no_split": accuracy}
    plain = assessment("undefended", 0.9, 0.8, accuracy=both)
    without = dataclasses.replace(plain, federation="no_split")
    untrained = assessment("gafm", 0.9, 0.8)
    not_attacked = assessment("kdk", 0.9, 0.8, accuracy=both)
    missing = "kdk: no attack on it without model splitting."
    some, every = (not_attacked.configuration._replace(diverged=n) for n in (1, 2))
    for configuration, lines in (
        (untrained.configuration, []),
        (not_attacked.configuration, [missing]),
        (some, ["kdk: 1 of 2 trials diverged.", missing]),
        (every, ["kdk: 2 of 2 trials diverged."]),
    ):
        second = dataclasses.replace(not_attacked, configuration=configuration)
        lost = not_run._lost(assessed(plain, without, second))
        rest = dict.fromkeys(("skipped", "defense_unknown", "not_scored"), ())
        assert paragraphs("not_attacked", lost=lost, **rest) == lines
