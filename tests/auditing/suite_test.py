"""The config of an audit: what applies to a table, and in which order it is trained."""

import math

import numpy as np
import pytest

from tests.auditing.survey_test import surveyed, values, written
from tests.report.made import BARE, PROTECTS, made
from tests.sweeps import tiny
from vfljax import defenses, store
from vfljax.attack_runs import cascade
from vfljax.auditing import run, sentences, suite
from vfljax.auditing.survey import AuditRequest
from vfljax.config import Goal
from vfljax.store.units import ATTACK, SHARD
from vfljax.sweep import grid
from vfljax.sweep.grid import parse
from vfljax.sweep.known import check_known_labels
from vfljax.sweep.plan import make_plan
from vfljax.types import Federation


def config(surveyed, federation="split", known=0, seeds=3):
    request = AuditRequest(surveyed.table, ("telco",), known, seeds, Goal())
    return suite.config(surveyed, request, federation)


@pytest.mark.parametrize("seeds", [2, 5])
def test_a_sweep_is_trained_in_the_order_in_which_its_report_says_most(seeds):
    names = ["label_dp", "noise", "kdk", "dcor", "ppdl", "marvell", "max_norm"]
    whole = suite.defended(tiny(seeds=seeds), names)
    parts = [parse(part) for part in [*suite.stages(whole), whole]]
    tables = grid.added([(part, grid.trials(part, [Federation()])) for part in parts])
    first, *rest = tables
    assert {*first["method"]} == {"undefended"}
    assert {*first["seed"]} == {*range(seeds)}
    order = [
        (seed >= 3, not (np.isnan(strength) or strength in suite.middle(method)), method)
        for table in rest
        for method, strength, seed in zip(
            table["method"], strengths_of(table), table["seed"], strict=True
        )
    ]
    few = [of for of in order if not of[0]]
    assert few == sorted(few, key=lambda of: of[1])  # middle strengths, then the others
    assert order[: len(few)] == few  # then the other seeds
    firsts = list(dict.fromkeys(method for *_, method in order))
    assert firsts == names
    every = sum(len(suite.strengths(name)) or 1 for name in names) + 1
    assert sum(map(len, tables)) == every * seeds


def test_a_wave_has_all_defenses_before_dear_attacks_run():
    names = ["label_dp", "noise", "kdk", "dcor", "ppdl", "marvell", "max_norm"]
    whole = suite.defended(tiny(seeds=5), names)
    configs = [*suite.stages(whole), whole]
    assert suite.waves(configs) == [0, 1, 1, 2, 2, 3, 3, 3]
    more = {**whole, "seeds": 7}  # an audit that is extended
    assert suite.waves([*configs, *suite.stages(more), more])[8:] == [4, 5, 5, 6, 6, 7, 7, 7]


def test_cheap_attacks_of_a_wave_may_be_begun_first():
    header = {"attacks": {"a": {"cost": cascade.CHEAP}, "b": {"cost": cascade.CHEAP + 1}}}
    units = [store.Unit(kind, kind, of, "", stage=stage) for kind, of, stage in UNITS]
    may = run._until(math.inf, header, [0, 1], cascade.CHEAP)
    assert [*map(may, units)] == [True, True, False, False]
    assert [*map(run._until(math.inf, header, [0, 1], math.inf), units)] == [
        True,
        True,
        True,
        False,
    ]
    assert not any(map(run._until(0.0, header, [0, 1], math.inf), units))


UNITS = [(SHARD, "x", 0), (ATTACK, "a", 1), (ATTACK, "b", 1), (SHARD, "y", 2)]


def strengths_of(table):
    for row in table.to_dict("records"):
        row_of = defenses.TABLE[row["method"]].strengths
        yield np.nan if row_of is None else row[f"{row['method']}.{row_of.knob}"]


def test_every_defense_has_a_config_of_its_strengths():
    assert (suite.middle("kdk"), suite.strengths("kdk")) == ((0.3,), (0.1, 0.3, 0.45))
    for name, row in defenses.TABLE.items():
        assert bool(suite.strengths(name)) == (row.strengths is not None)
        parse(suite.defended(tiny(), [name]))


def test_defenses_with_a_guarantee_come_first_and_those_that_cannot_be_trained_are_named(tmp_path):
    table = surveyed(written(tmp_path / "t.csv", values()))
    base = config(table, "no_split")
    names, refused = suite.applicable(base, make_plan(parse(base)))
    claim = [defenses.TABLE[n].remarks(defenses.TABLE[n].example, {}).epsilon for n in names]
    given = [epsilon is None for epsilon in claim]
    assert given == sorted(given)
    assert False in given
    assert {*names} | {*refused} == {*defenses.TABLE}
    assert all(defenses.TABLE[name].needs_top for name in refused)


def test_defenses_that_cannot_be_tried_are_named_once_for_each_reason():
    why = "is not for labels that are numbers: it is defined for classes."
    (note,) = sentences.refused_note({"a": why, "b": "another reason.", "c": why})
    assert note == f"Not applicable here: a and c ({why[3:-1]}); b (another reason)."


def test_what_the_classes_or_the_federation_rule_out_is_left_out(tmp_path):
    rng = np.random.default_rng(0)
    table = {"age": rng.normal(size=200).tolist(), "pay": rng.normal(size=200).tolist()}
    table["y"] = [f"c{k % 4}" for k in range(200)]
    four = surveyed(written(tmp_path / "t.csv", table), "bank: age; telco: pay")
    found = config(four, "both")
    check_known_labels(make_plan(parse(found)))
    assert "norm" not in found["attacks"]
    assert found["attacks"]["spectral"]["whole"] == (False,)
    assert found["attacks"]["posterior"]["signal"] == ("entries", "signs")
    two, signals = surveyed(written(tmp_path / "two.csv", values())), []
    for federation in ("both", "split"):
        attacks = config(two, federation)["attacks"]
        signals.append(attacks["posterior"]["signal"])
        assert ("direct" in attacks) == (federation == "both")
    assert signals == [("entries", "signs", "direction", "opposed"), ("direction", "opposed")]


def test_canaries_are_planted_where_an_epsilon_is_claimed():
    whole = suite.defended(tiny(), ["noise", "label_dp"])
    planted = suite.canaries(whole, 200)
    assert planted is not None
    assert list(planted["grid"]) == ["label_dp"]
    assert planted["canaries"] == 40
    assert parse(planted).seeds == 1
    assert suite.canaries(suite.defended(tiny(), ["noise"]), 200) is None


@pytest.mark.parametrize(
    ("counts", "known"), [((100, 100), 40), ((100, 10), 6), ((100, 1), 2), ((100,) * 30, 60)]
)
def test_attackers_know_40_labels_or_two_a_class_and_half_of_the_rarest_class_at_most(
    counts, known
):
    labels = np.repeat(np.arange(len(counts)), counts)
    assert suite.known_labels(labels, len(counts)) == known


def test_the_parties_that_attack_are_numbered_without_the_label_party(tmp_path):
    table = surveyed(written(tmp_path / "t.csv", values()), "shop: job; bank: age; telco: pay*")
    found = config(table, known=7)
    assert found["parties"]["names"] == ("shop", "telco", "bank")
    assert found["attackers"] == ((1,),) == found["malicious"]["parties"]
    assert found["attacks"]["probe"]["known"] == 7
    # of 72 training rows
    assert (found["training"]["batch_size"], found["training"]["epochs"]) == (16, 30)


def test_an_audit_rejects_what_leaks_by_the_limits_that_deny(monkeypatch, tmp_path):
    leaks = {"probe/mean": 0.9, "test_utility": 0.89}
    wide = {"probe/mean": [0.6, 0.9, 0.6, 0.8, 0.62], "test_utility": 0.88}
    costly = {"probe/mean": 0.6, "test_utility": 0.7}
    found = made(BARE, leaks, PROTECTS, wide, costly)
    monkeypatch.setattr(run.store, "load", lambda folder: found.sweep)
    monkeypatch.setattr(run, "experiment_of", lambda sweep: found.experiment)
    monkeypatch.setattr(run, "read_frames", lambda sweep, experiment: found.frames)
    assert run.rejecting(tmp_path)(("shard",)) == {(1, "split")}
