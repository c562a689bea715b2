"""The sentences and the bounds that are made from points."""

import dataclasses

import pytest

from tests.sweeps import REFERENCE, assessed, assessment
from vfljax.report import findings, guarantees, judging
from vfljax.report.assessment import assess
from vfljax.report.candidates import candidates_of
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import read

KDK = {"kdk.epsilon": 0.45, "kdk.k": 3.0}
NOISE = {"noise.scale": 1.0}


def fooled(method, knobs):
    """A configuration on which the most negative entry names the label and the first one does not."""
    attacks = {"direct/first_negative": 0.34, "direct/most_negative": 0.98}
    return assessment(method, 0.9, 0.5, knobs, attacks=attacks)


def text_of(*found):
    return " ".join(findings.findings(assessed(*found)))


def test_a_fooled_direct_rule_is_called_what_it_is():
    text = text_of(fooled("kdk", KDK))
    assert "not protection" in text
    assert "epsilon=0.45 k=3" in text


@pytest.mark.parametrize(
    ("arm", "knobs", "said"),
    [
        ("kdk", KDK, True),
        ("soft labels", KDK, True),
        ("noise", KDK, True),
        ("both", NOISE | KDK, True),
        ("kdk", NOISE, False),
        ("kdk masks", NOISE, False),
    ],
)
def test_what_a_defense_does_to_a_rule_is_told_of_its_chain_whatever_the_arm_is_called(
    arm, knobs, said
):
    text = text_of(fooled(arm, knobs))
    assert f"most of all at {arm}" in text
    assert ("KDk leaves up to k entries negative" in text) == said
    assert ("not protection" in text) == said


@pytest.mark.parametrize(("arm", "knobs"), [("masks", KDK), ("kdk masks", NOISE)])
def test_where_the_label_has_the_smallest_mass_is_true_of_chains_with_kdk_only(arm, knobs):
    beyond = {name: 0.9 if name == "kdk.epsilon" else value for name, value in knobs.items()}
    text = text_of(fooled(arm, knobs), fooled(arm, beyond))
    assert ("At 1 configurations epsilon exceeds (k-1)/k" in text) == ("kdk.k" in knobs)


def test_a_method_without_defenses_is_undefended_whatever_it_is_called():
    found = [assessment("vanilla", 0.9, 0.8), assessment("undefended", 0.9, 0.3, NOISE)]
    plain, chosen = findings.findings(assessed(*found))[:2]
    assert "undefended: test accuracy 0.900" in plain
    assert "leak AUC 0.800" in plain
    assert "With model splitting, undefended: of the operating points that keep the acc" in chosen
    assert "undefended scale=1 leaks least (chosen by 3 of 3 folds" in chosen
    assert "It protects from what was tried: change to undefended -0.300" in chosen


def test_without_an_undefended_arm_nothing_is_compared_with_one():
    text = text_of(assessment("undefended", 0.9, 0.3, NOISE))
    assert "undefended: test accuracy" not in text
    assert "change to undefended" not in text


@pytest.mark.parametrize(
    ("leak", "undefended", "said"),
    [
        (0.9, 0.9, "It does nothing: change to undefended +0.000"),
        (0.7, 0.9, "It reduces what leaks: change to undefended -0.200"),
        (0.5, 0.9, "It protects from what was tried: change to undefended -0.400"),
        (0.9, 0.8, "Whether it protects cannot be said: change to undefended +0.100"),
        (0.5, 0.5, "There is nothing to protect: change to undefended +0.000"),
    ],
)
def test_a_verdict_is_a_sentence_of_a_strength_with_what_it_leaks_at_least(leak, undefended, said):
    found = assessment("plain", 0.9, undefended), assessment("noise", 0.9, leak, NOISE)
    text = findings.findings(assessed(*found))[1]
    assert text.startswith("With model splitting, noise: of the operating points that keep the acc")
    assert said in text
    assert f"it leaks at least {leak - 0.1:.1f}"[:-1] in text


def published(before, worst, spread):
    """A configuration without and with an attack that is in no paper; seeds spread around their leaks."""
    seeds = [-spread, 0.0, spread]
    leaks = [[leak + s for s in seeds] for leak in (before, worst)]
    one = assessment("kdk", 0.9, worst, KDK)

    def strongest(names):
        tried = candidates_of(names, leaks[: len(names)], [0.5] * 3, 1000)
        return judging.strongest_of(tried)

    return dataclasses.replace(
        one, strongest=strongest(["passive", "probe"]), published=strongest(["passive"])
    )


@pytest.mark.parametrize(
    ("leaks", "said"),
    [
        ((0.6, 0.9, 0.01), "at least 0."),
        ((0.6, 0.9, 0.0), "at least 0."),
        ((0.6, 0.605, 0.0), "no more"),
        ((0.6, 0.7, 0.1), str(Verdict.CANNOT_SAY)),
    ],
)
def test_an_attack_reads_more_than_published_ones_by_its_lower_limit(leaks, said):
    found = assessed(assessment("plain", 0.9, 0.9), published(*leaks))
    assert findings.more_in_words(found.assessments[1].unpublished).startswith(said)
    text = " ".join(findings.findings(found))
    assert ("kdk: published attacks understate what leaks" in text) == said.startswith("at least")


def test_runs_that_learned_the_labels_inverted_are_counted():
    every = [
        assessment(method, 0.9, 0.6, inverted=inverted).configuration
        for method, inverted in (("gafm", 1), ("gafm", 0), ("kdk", 0))
    ]
    (sentence,) = findings._inverted(every)
    assert sentence.startswith("gafm: 1 of 4 runs")


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
    assert "no guarantee" in odds[3]
    assert "no guarantee" in guess[3]
    assert any("Label DP bounds" in line for line in findings.findings(assess(read(defended))))


def test_what_cannot_be_trained_without_a_top_model_is_named(defended):
    rows = defended.results.select(["method", "federation"]).to_pylist()
    assert {r["federation"] for r in rows if r["method"] == "gafm"} == {"split"}
    assert {r["federation"] for r in rows if r["method"] == "plain"} == {"split", "no_split"}
    found = assess(read(defended))
    lines = findings.findings(found)
    assert any(line.startswith("gafm is not trained without model splitting") for line in lines)
    assert not any(line.startswith("Without model splitting, gafm") for line in lines)
    assert ("gafm", "no_split") not in {(a.method, a.federation) for a in found.methods}
