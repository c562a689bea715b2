"""The sentences and the bounds that are made from points."""

import pytest

from tests.sweeps import point
from vfljax import store
from vfljax.report import findings, guarantees, judging, strengths, summary

KDK = {"kdk.epsilon": 0.45, "kdk.k": 3.0}
NOISE = {"noise.scale": 1.0}


@pytest.fixture(scope="module")
def stored(tiny_sweep):
    return store.load(tiny_sweep)


def fooled(arm, knobs):
    """A point at which the most negative entry names the label and the first one does not."""
    attacks = {"direct/first_negative": 0.34, "direct/most_negative": 0.98}
    return point(arm, 0.9, 0.5, knobs, **attacks)


def said_of(stored, *points):
    return " ".join(findings.findings(stored, points))


def test_a_fooled_direct_rule_is_called_what_it_is(stored):
    text = said_of(stored, fooled("kdk", KDK))
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
def test_what_a_defense_does_to_a_rule_is_said_of_its_chain_whatever_the_arm_is_called(
    stored, arm, knobs, said
):
    text = said_of(stored, fooled(arm, knobs))
    assert f"most of all at {arm}" in text
    assert ("KDk leaves up to k entries negative" in text) == said
    assert ("not protection" in text) == said


@pytest.mark.parametrize(("arm", "knobs"), [("masks", KDK), ("kdk masks", NOISE)])
def test_where_the_label_has_the_smallest_mass_is_said_of_chains_with_kdk_only(stored, arm, knobs):
    beyond = {name: 0.9 if name == "kdk.epsilon" else value for name, value in knobs.items()}
    text = said_of(stored, fooled(arm, knobs), fooled(arm, beyond))
    assert ("At 1 points epsilon exceeds (k-1)/k" in text) == ("kdk.k" in knobs)


def test_an_arm_without_defenses_is_undefended_whatever_it_is_called(stored):
    points = [point("vanilla", 0.9, 0.8), point("undefended", 0.9, 0.3, NOISE)]
    undefended, chosen, counts = findings.findings(stored, points)[:3]
    assert "undefended: test accuracy 0.900" in undefended
    assert "balanced top-1 0.800" in undefended
    assert "With model splitting, undefended: of the strengths that keep the accuracy" in chosen
    assert "undefended scale=1 leaks least (chosen by 3 of 3 folds" in chosen
    assert "It protects from what was tried: change to undefended -0.300" in chosen
    assert counts.endswith("undefended, all strengths: protects from what was tried 1.")


def test_without_an_undefended_arm_nothing_is_compared_with_one(stored):
    text = said_of(stored, point("undefended", 0.9, 0.3, NOISE))
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
def test_a_verdict_is_a_sentence_of_a_strength_with_what_it_leaks_at_least(
    stored, leak, undefended, said
):
    text = findings.findings(
        stored, [point("plain", 0.9, undefended), point("noise", 0.9, leak, NOISE)]
    )[1]
    assert text.startswith("With model splitting, noise: of the strengths that keep the accuracy")
    assert said in text
    assert f"it leaks at least {leak - 0.1:.1f}"[:-1] in text


def compared(published, worst, spread):
    """A point without and with an attack that is in no paper; seeds spread around their leaks."""
    seeds = [-spread, 0.0, spread]
    leaks = [[leak + s for s in seeds] for leak in (published, worst)]
    one = point("kdk", 0.9, worst, KDK)

    def of(names):
        candidates = judging.candidates(names, leaks[: len(names)], [0.5] * 3, 1000)
        case = judging.worst_case(candidates)
        return one.worst["split"]._replace(candidates=candidates, case=case, name=case.attack)

    one.worst["split"], one.published["split"] = of(["passive", "probe"]), of(["passive"])
    return one


@pytest.mark.parametrize(
    ("leaks", "said"),
    [
        ((0.6, 0.9, 0.01), "at least 0."),
        ((0.6, 0.9, 0.0), "at least 0."),
        ((0.6, 0.605, 0.0), "no more"),
        ((0.6, 0.7, 0.1), judging.CANNOT_SAY),
    ],
)
def test_an_attack_reads_more_than_published_ones_by_its_lower_limit(stored, leaks, said):
    one = compared(*leaks)
    more = findings.beyond(one.published["split"], one.worst["split"])
    assert findings.more_in_words(more).startswith(said)
    text = said_of(stored, point("plain", 0.9, 0.9), one)
    assert ("kdk: published attacks understate what leaks" in text) == said.startswith("at least")


def test_runs_that_learned_the_labels_inverted_are_counted_and_said():
    sentences = findings._inverted_findings(
        [point("gafm", 0.9, 0.6, inverted=1), point("gafm", 0.9, 0.6), point("kdk", 0.9, 0.6)]
    )
    assert len(sentences) == 1
    assert sentences[0].startswith("gafm: 1 of 4 runs")


def test_label_dp_bounds_are_printed_except_where_there_is_none(defended):
    prior = {"label_dp.epsilon": 1.0, "label_dp.mechanism": "rr_with_prior"}
    points = [
        *summary.points(defended),
        point("prior", 0.9, 0.6, prior),
        point("raw", 0.9, 0.6, {**prior, "label_dp.guarantee": "none"}),
    ]
    _, rows = guarantees.bound_table(defended, points)
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
    rows = defended.results.select(["arm", "federation"]).to_pylist()
    assert {r["federation"] for r in rows if r["arm"] == "gafm"} == {"split"}
    assert {r["federation"] for r in rows if r["arm"] == "plain"} == {"split", "no_split"}
    said = findings.findings(defended, summary.points(defended))
    assert any(line.startswith("gafm is not trained without model splitting") for line in said)
    assert not any("no strength of gafm" in line and "ithout" in line[:9] for line in said)
    assert ("gafm", "no_split") not in {
        (c.arm, c.federation) for c in strengths.choices(summary.points(defended), 0.6)
    }
