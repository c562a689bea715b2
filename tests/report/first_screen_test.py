"""The first screen: the answer, and what it rests on."""

import pandas as pd
import pytest

from tests.report.made import BARE, FACTS, NAN, PROTECTS, made, row, the
from vfljax.config import Goal
from vfljax.report import terminal, verdict_tables
from vfljax.report.decision import Answer, Reason
from vfljax.report.first_screen import answers

SMALL = [0.6, 0.75, 0.62, 0.7, 0.61]
WIDE = [0.95, 0.6, 0.95, 0.65, 0.9]
UNCLEAR_COST = {"probe/mean": 0.6, "test_utility": [0.8, 0.9, 0.95, 0.8, 0.9]}
UNKNOWING = {"norm": 0.95}, {"norm": 0.6, "test_utility": 0.88}
KEPT = {"test_utility": 0.88}


@pytest.mark.parametrize(
    ("points", "values", "sentence"),
    [
        ((BARE, PROTECTS), {"knobs": {"noise.scale": [NAN, 0.1]}}, "Switch on noise at scale=.1."),
        (
            (BARE | {"test_utility": [0.802, 0.797, 0.806, 0.801, 0.804]}, PROTECTS),
            {},
            "Do not federate: it gains nothing.",
        ),
        (
            (BARE | {"test_utility": 0.802}, PROTECTS),  # little is gained, but more than nothing
            {},
            "Switch on noise.",
        ),
        (({"probe/mean": 0.61}, PROTECTS), {}, "Nothing to protect: no attack reads more than"),
        (({"probe/mean": 0.63, "norm": [NAN] * 5}, PROTECTS), {}, "Switch on noise."),
        (({"probe/mean": SMALL}, BARE), {}, "No defense that was tried protects and keeps the"),
        ((BARE, PROTECTS), {"seeds": 1}, "Open: 1 seed allows no limits."),
        ((BARE,), {}, "Open: no defense was tried."),
        (
            (BARE, {"probe/mean": WIDE}),
            {},
            "Open: no seeds were set aside to decide among 1 point.",
        ),
        (UNKNOWING, {}, "Open: no seeds were set aside"),
        ((BARE, BARE), {}, "No defense that was tried protects and keeps the gain (1 defense, 1 p"),
        ((BARE, PROTECTS), {"every_family": False}, "Open: 1 of "),
        ((BARE, BARE), {"every_family": False}, "Open: 1 of "),
        (({"test_utility": 0.9},), {}, "Open: nothing was attacked."),
        (({"probe/mean": NAN, "test_utility": NAN},), {}, "Open: all trials diverged."),
    ],
)
def test_a_case_for_each_answer(points, values, sentence):
    assert the(made(*points, **values)).answer.startswith(sentence)


def test_the_first_screen_says_who_reads_what_and_what_it_costs_in_120_words():
    screen = the(made(BARE, PROTECTS))
    assert row(screen, "Reads") == (
        "telco .95 (.95 to .95); .60 without the federation; with noise .60 (.60 to .60) (leak AUC; a guess "
        ".50)."
    )
    assert "gains +10.0 points" in row(screen, "Costs")
    assert "noise keeps 80 % (asked 50 %)" in row(screen, "Costs")
    assert "5 seeds" in row(screen, "Sure")
    assert "1 attack of the one family that applies on noise" in row(screen, "Tried")
    assert screen.words <= 120
    assert len(screen.rows) <= 5


@pytest.mark.parametrize(("scale", "faint"), [(0.1, True), (0.01, False)])
def test_an_answer_says_where_attacks_that_know_the_point_read_little(scale, faint):
    screen = the(made(BARE, PROTECTS, knobs={"noise.scale": [NAN, scale]}))
    assert screen.answer.startswith("Switch on noise")
    end = "Attacks that know it read little of planted labels at this strength."
    assert row(screen, "Tried").endswith(end) == faint


def test_no_defense_shows_the_nearest_point_on_each_side():
    leaks = {"probe/mean": 0.85, "test_utility": 0.88}
    costs = {"probe/mean": 0.6, "test_utility": 0.81}
    screen = the(made(BARE, leaks, costs, knobs={"noise.scale": [NAN, 0.1, 1.0]}))
    assert "of what keeps the gain noise scale=.1 leaks least, .85" in row(screen, "Reads")
    assert "noise scale=1 leaks .60 and keeps 10 %" in row(screen, "Costs")
    marks = {of.name: of.mean for of in screen.ruler.marks if of.kind == "defended"}
    assert [*marks] == ["noise scale=.1, keeps the gain", "noise scale=1"]
    assert screen.words <= 120


def test_a_point_without_dear_attacks_is_not_said_to_leak_least():
    judged = made({"probe/mean": 0.95, "norm": 0.9}, {"probe/mean": 0.85, "norm": 0.9, **KEPT})
    role = judged.rows["role"].mask(
        (judged.rows["configuration"] == 1) & (judged.rows["label"] == "norm"), "rejected"
    )
    rejected = made(
        {"probe/mean": 0.95, "norm": 0.9},
        {"probe/mean": 0.85, "norm": 0.9, **KEPT},
        rows={"role": role},
    )
    assert "; noise, which keeps the gain, ≥ .85" in row(the(rejected), "Reads")
    # .85 of .95 is less, and dear attacks may read the rest
    verdicts = verdict_tables.verdict_table(rejected).set_index("configuration")["verdict"]
    assert (verdicts["noise"], rejected.leading["verdict"].iloc[1]) == (
        "still leaks",
        "still leaks, as before",
    )
    whole = verdict_tables.verdict_table(judged).set_index("configuration")["verdict"]
    assert whole["noise"] == "still leaks, less"


def test_an_open_answer_whose_candidates_are_denied_shows_what_is_nearest():
    leaks = {"probe/mean": 0.85, "test_utility": 0.88}
    judged = made(BARE, leaks)
    of = judged.decisions["split"]
    assert of.leading is None
    of = of._replace(answer=Answer.OPEN, reason=Reason.UNFINISHED)
    screen = the(judged._replace(decisions={"split": of}))
    assert "with noise .85 (.85 to .85)" in row(screen, "Reads")
    assert "noise keeps 80 %" in row(screen, "Costs")


def test_a_leak_that_is_accepted_may_be_switched_on_without_protecting():
    point = {"probe/mean": 0.7, "test_utility": 0.88}
    open_ = the(made(BARE, point))
    assert open_.answer.startswith("No defense that was tried protects")
    accepted = the(made(BARE, point, facts=FACTS._replace(goal=Goal(max_leak=0.75))))
    assert accepted.answer == (
        "Switch on noise: it does not protect, but at most the accepted .75 leaks."
    )


def test_an_attack_that_reads_no_more_than_the_baseline_is_no_leader():
    screen = the(made({"probe/mean": 0.58}, PROTECTS))
    assert "no attack reads more than the same party without" in row(screen, "Reads")
    assert "local-only" not in " ".join(text for _, text in screen.rows)


def test_deviation_is_blamed_only_if_it_reads_more():
    def reads(honest, deviating):
        judged = made(BARE | {"norm": deviating, "probe/mean": honest}, PROTECTS)
        malicious = judged.rows["label"] == "norm"
        federation = judged.rows["federation"].mask(malicious, "malicious-0")
        judged = judged._replace(rows=judged.rows.assign(federation=federation))
        return row(the(judged), "Reads")

    assert "by deviating" not in reads(0.95, 0.95)
    assert "telco .90 (.90 to .90), by deviating .95 (.95 to .95)" in reads(0.9, 0.95)


@pytest.mark.parametrize(
    ("defense", "knobs", "claim"),
    [
        ("label_dp", {"epsilon": 1.0}, "It claims ε = 1 for one training"),
        (
            "dpzv",
            {"epsilon": 3.0, "delta": 1e-5},
            "It claims ε = 3 with δ = 1e-05 for one training",
        ),
    ],
)
def test_a_private_defense_that_was_chosen_by_labels_has_a_larger_epsilon(defense, knobs, claim):
    values = {f"{defense}.{knob}": [NAN, value] for knob, value in knobs.items()}
    judged = made(BARE, PROTECTS, defenses=(defense,), knobs=values)
    text = " ".join(map(str, dict(the(judged).details).values()))
    assert claim in text
    assert "private selection" in text
    assert "private selection" not in str(the(made(BARE, PROTECTS)).details)


def test_each_reason_for_which_a_point_that_leaks_less_is_not_switched_on():
    cases = {
        "it costs too much on test rows": {"probe/mean": 0.6, "test_utility": 0.82},
        "no attack that knows it was run": {"norm": 0.6, "test_utility": 0.88},
        "leaks beyond what can be read without the federation (e)": {
            "probe/mean": 0.7,
            "test_utility": 0.88,
        },
    }
    for reason, point in cases.items():
        bare = BARE | {name: 0.95 for name in point if "utility" not in name}
        judged = made(bare, point, PROTECTS, defenses=("ppdl", "max_norm"))
        details = dict(the(judged).details)
        assert reason in details["Why not the others"], reason


def test_a_reason_is_made_of_the_limit_that_failed_and_shows_it():
    # d is -.026 (-.032 to -.020): less leaks, and what fails is e
    point = {"probe/mean": [0.924, 0.926, 0.922, 0.928, 0.92], "test_utility": 0.88}
    bare = BARE | {"probe/mean": [0.95] * 5}
    text = dict(the(made(bare, point, PROTECTS, defenses=("ppdl", "max_norm"))).details)
    (why,) = [of for of in text["Why not the others"].split("\n\n") if of.startswith("ppdl")]
    assert "more than .05 leaks beyond" in why
    assert "e +.32 (" in why
    assert "do not establish" not in why


def test_a_gain_that_is_lost_is_said_in_words():
    point = {"probe/mean": 0.6, "test_utility": 0.7, "validation_utility": 0.7}
    judged = made(BARE, point)
    text = " ".join(text for _, text in the(judged).details)
    assert "loses more than the gain" in text
    assert "-100" not in text


def test_each_panel_has_a_screen():
    judged = made(BARE, PROTECTS)
    other = judged.verdicts.assign(panel="no_split", recommended=False)
    both = judged._replace(
        verdicts=pd.concat([judged.verdicts, other], ignore_index=True),
        rows=pd.concat([judged.rows, judged.rows.assign(panel="no_split")], ignore_index=True),
        decisions=judged.decisions | {"no_split": judged.decisions["split"]},
    )
    assert [of.title for of in answers(both)] == ["With a top model", "Without a top model"]


def test_fresh_seeds_agree_leave_open_or_deny():
    judged = made(BARE, PROTECTS)
    decided = judged.decisions["split"]

    def told(**values):
        fresh = dict(decided.point) | {"seeds": 7} | values
        denied = decided._replace(
            answer=Answer.OPEN, reason=Reason.CONTRADICTED, point=None, leading=decided.point
        )
        of = decided if values.get("e_lower", 0) < 0.05 else denied
        return the(judged._replace(decisions={"split": of._replace(fresh=fresh)}))

    assert "7 fresh seeds agree" in row(told(), "Sure")
    open_ = row(told(verdict="cannot say", e=0.04, e_lower=0.01, e_upper=0.07), "Sure")
    assert "7 fresh seeds leave open" in open_
    assert "+.04 (+.01 to +.07)" in open_
    deny = told(verdict="still leaks, less", e=0.2, e_lower=0.1, e_upper=0.3)
    assert deny.answer.startswith("Open: fresh seeds deny noise: ")
    assert "+.20 (+.10 to +.30)" in deny.answer
    assert not deny.settle


def test_without_undefended_nothing_is_compared():
    judged = made(BARE, PROTECTS)
    decided = judged.decisions["split"]._replace(
        answer=Answer.OPEN,
        reason=Reason.NO_UNDEFENDED,
        bare=None,
        point=None,
        leading=judged.decisions["split"].point,
    )
    kept = judged.verdicts[~judged.verdicts["undefended"]]
    screen = the(judged._replace(verdicts=kept, decisions={"split": decided}))
    assert screen.answer.startswith("Open: without undefended nothing shows")


def test_a_terminal_shows_answers_and_verdicts_within_its_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    judged = made(BARE, UNCLEAR_COST, knobs={"noise.scale": [NAN, 0.1]})
    text = terminal.first_lines(judged, answers(judged))
    assert "cost unclear" in text
    commands = {command.command for command in the(judged).settle}
    lines = [line for line in text.splitlines() if line.strip() not in commands]
    assert max(map(len, lines)) <= 80
    assert text.index("configuration") < 25 * 80
    assert len(text.split("configuration")[0].splitlines()) <= 25
    assert "A leak is an AUC" not in text
    verbose = terminal.first_lines(judged, answers(judged), verbose=True)
    assert "A leak is an AUC" in verbose.replace("\n", " ")


def test_a_table_for_a_terminal_drops_columns_and_cuts_cells(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    table = pd.DataFrame({"configuration": ["kdk epsilon=.3 k=2"], "long": ["x" * 30], "b": ["y"]})
    assert "long" not in terminal.fitted(table, ("long",))
    cut = terminal.fitted(table)
    assert max(map(len, cut.splitlines())) <= 30
    assert all(word in cut for word in ("kdk", "k=2", "…"))


def test_how_sure_an_answer_is_names_what_its_limits_are_corrected_for():
    judged = made(BARE, PROTECTS)

    def sure(**values):
        decided = judged.decisions["split"]._replace(**values)
        return row(the(judged._replace(decisions={"split": decided})), "Sure")

    corrected = "5 seeds; limits are corrected for {} and further looks (at most 5 % false)."
    assert sure() == corrected.format("1 possible answer")
    none = {"answer": Answer.NONE_PROTECTS, "point": None}
    assert sure(**none) == corrected.format("5 criteria")
    assert "corrected for 3 possible answers and 3 looks" in sure(stage2=True, corrected=3)
    for values in ({}, none):
        assert "at most 10 % false" in sure(stage2=True, corrected=3, **values)
    assert "false" not in sure(stage2=True, answer=Answer.OPEN, point=None)
    fresh = dict(judged.decisions["split"].point) | {"seeds": 14}
    closed = sure(**none, fresh=fresh)  # a part of the decision of its own
    every = "all seeds that were looked at included"
    assert closed.endswith(
        f"; noise is denied by 14 fresh seeds alone (at most 10 % false, {every})."
    )
    assert f"(at most 15 % false, {every})" in sure(**none, fresh=fresh, stage2=True)
    assert "at most 5 % false)" in sure(fresh=fresh)  # what agrees closed nothing
    four = dict(judged.decisions["split"].bare) | {"seeds": 4}  # the point has five that explored
    of_bare = sure(stage2=True, candidates=0, bare=four)
    assert of_bare.startswith("4 seeds were set aside for undefended alone")
    alone = sure(stage2=True, fresh=judged.decisions["split"].point)
    assert alone == (
        f"left open by 5 seeds; 5 fresh seeds alone, one look at 95 % (at most 15 % false, {every})."
    )
