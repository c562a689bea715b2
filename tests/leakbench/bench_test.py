"""LeakBench on a small board: strengths by cost alone, scores on every board, and an entry that is broken."""

import dataclasses
import sys

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

import vfljax
from analysis.leakbench import bench, breaking, exchanges, retraining
from analysis.leakbench.autoleak import Suite, autoleak
from analysis.leakbench.boards import BOARDS, Board
from analysis.leakbench.breaking import array_name
from analysis.leakbench.entry_files import Entry
from tests.sweeps import tiny
from vfljax import attacks, defenses, store
from vfljax.attacks import learners
from vfljax.datasets.wire import read_wire
from vfljax.errors import UserError, packaged

pytestmark = pytest.mark.slow
SUITE = Suite(
    "0.1",
    {"direct": {}, "similarity": {"known": 40}},
    {"direct": 1, "similarity": 1},
    learners.RULE,
)
CONFIG = tiny(
    data={"name": "digits", "train": 640, "validation": 300, "test": 300, "scaling": "range"},
    seeds=3,
    federations=("split", "malicious", "no_split"),
    grid={"undefended": {}},
    attacks={"direct": {}},
    # without hidden layers and a top model the loss is convex: exchanged classes cost nothing, whatever the
    # initial weights
    **{"model.hidden": (), "training.batch_size": 32},
    **{"training.epochs": 6, "training.learning_rate": 0.1},
)
FOLDER = packaged("analysis/leakbench")
ENTRIES = (
    Entry(name="undefended", method={}),
    Entry(name="mild", method={"noise": {"scale": [0.0, 1e-9, 30.0]}}),
    Entry(name="exchanged", method={"exchanged_classes:exchanged": {}}),
    Entry(name="two_classes", method={"gafm": {"delta": 0.1}}),
)
HONEST, NO_LABELS = Board("split", 40, False), Board("no_split", 0, False)


@pytest.fixture(scope="module", autouse=True)
def tables():
    before = dict(defenses.TABLE), dict(attacks.TABLE)
    vfljax.plugins.use(FOLDER / "entries/exchanged_classes.py")
    vfljax.plugins.use(FOLDER / "attacks/exchange_back.py")
    yield
    for table, rows in zip((defenses.TABLE, attacks.TABLE), before, strict=True):
        table.clear()
        table.update(rows)
    for name in ("exchanged_classes", "exchange_back"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return bench.Bench("digits", CONFIG, tmp_path_factory.mktemp("bench"), "test", lambda _: None)


@pytest.fixture(scope="module")
def ran(place):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "autoleak", lambda: SUITE)
        return {entry.name: entry for entry in place.run(ENTRIES)}


def test_every_board_has_a_score_at_both_shares_or_the_reason(ran):
    for entry in ran.values():
        scores = entry.results["digits"].scores
        assert [score.place for score in scores] == [(b, g) for b in BOARDS for g in (0.5, 0.9)]
    nobody = ran["undefended"].score("digits", Board("split", 0, False), 0.5)
    assert (nobody.reading, nobody.outcome) == (None, bench.FAILED)
    (outcome,) = {score.outcome for score in ran["two_classes"].results["digits"].scores}
    assert "gafm is defined for 2 classes" in outcome


def test_the_strongest_strength_that_keeps_the_gain_is_taken(ran):
    scores = [s for s in ran["mild"].results["digits"].scores if s.reading]
    assert {tuple(score.knobs.items()) for score in scores} == {(("noise.scale", 1e-9),)}


def test_attackers_of_a_board_know_what_it_allows(ran):
    scores = {s.board: s for s in ran["undefended"].results["digits"].scores}
    assert scores[NO_LABELS].reading.attack == "direct"
    assert scores[NO_LABELS].local_only == pytest.approx(0.1)
    assert scores[HONEST].local_only > 0.3
    hidden = ran["exchanged"].score("digits", NO_LABELS, 0.5)
    assert hidden.reading.leak > 0.99  # an entry that hides names hides nothing


def test_an_attack_that_reads_more_than_is_known_breaks_an_entry(place, ran):
    exchanged = ran["exchanged"]
    result = exchanged.results["digits"]
    scores = [
        replace(s, reading=replace(s.reading, leak=0.4))
        if s.board == NO_LABELS and s.reading
        else s
        for s in result.scores
    ]
    exchanged = replace(exchanged, results={"digits": replace(result, scores=tuple(scores))})
    without_direct = SUITE._replace(attacks={"similarity": {"known": 40}})
    given = ["exchange_back:exchange_back"], "Eve", "it exchanges them back"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "autoleak", lambda: without_direct)
        broken = place.attack(exchanged, *given)
        again = place.attack(broken, *given)
    assert {b.board for b in broken.broken} == {NO_LABELS}
    reading, record = broken.best_known("digits", NO_LABELS, 0.5)
    assert (record.by, reading.attack) == ("Eve", "exchange_back:exchange_back")
    assert reading.leak > 0.99
    assert len(record.sha256) == 64
    assert again == broken  # what is known is not broken twice


def test_leaks_by_seed_are_those_of_the_mean(ran):
    scores = [s for entry in ran.values() for s in entry.results["digits"].scores if s.reading]
    for score in scores:
        assert len(score.reading.by_seed) == CONFIG["seeds"]
        assert sum(score.reading.by_seed) / CONFIG["seeds"] == pytest.approx(
            score.reading.leak, abs=2e-5
        )


def test_an_exchange_is_that_of_the_chosen_strength(place, ran, tmp_path):
    mild = ran["mild"]
    there = exchanges.rebuild(place, mild, tmp_path / "there")
    elsewhere = place._replace(workdir=tmp_path / "w")
    anew = exchanges.rebuild(elsewhere, mild, tmp_path / "anew")
    assert not (elsewhere.workdir / "split").exists()
    kinds = [path.parent.name for path in there]
    assert kinds == [path.parent.name for path in anew] == ["split", "malicious", "no_split"]
    index = msgspec.json.decode(anew[0].read_bytes(), type=exchanges.Recorded)
    (wires,) = index.wires
    assert wires.knobs == {"noise.scale": 1e-9}
    assert [*wires.sha256] == [f"0/seed{q}.npz" for q in range(CONFIG["seeds"])]
    stored, retrained = (
        read_wire(str(path.parent / "0/seed1.npz")) for path in (there[0], anew[0])
    )
    assert (stored.known_rows == retrained.known_rows).all()
    assert stored.parties[0].gradients == pytest.approx(retrained.parties[0].gradients, abs=1e-4)
    assert store.load(elsewhere.workdir / "exchange/mild/split").attacks.num_rows == 0


def test_a_reader_breaks_an_entry_by_its_scores(place, ran, tmp_path):
    def others_fall(view, known, num_classes):
        """Minus the first gradients, which at first are negative for a row's own class alone."""
        g = -view.gradients[0]
        return g if g.shape[1] == num_classes else np.zeros((len(g), num_classes))

    mild = ran["mild"]
    arrays = breaking.arrays_by("others_fall", others_fall, place, mild)
    read = {array_name(s.board, s.gain) for s in mild.results["digits"].scores if s.reading}
    assert {*arrays} == read
    np.savez(tmp_path / "scores.npz", **arrays)
    of = breaking.truth(CONFIG)
    found = breaking.readings(tmp_path / "scores.npz", mild, "digits", of)
    assert found[NO_LABELS, 0.5].leak > 0.95
    assert found[HONEST, 0.5].leak == pytest.approx(0.1, abs=0.01)  # nothing is read there


def test_typed_in_scores_cannot_be_made_anew(place, ran, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "autoleak", lambda: SUITE)
    # the sweeps of the bench stand in for those that retraining would make
    (tmp_path / retraining.FOLDER).symlink_to(place.workdir)
    elsewhere, result = place._replace(workdir=tmp_path), ran["mild"].results["digits"]
    scores = [
        replace(s, reading=replace(s.reading, leak=0.2)) if s.reading else s for s in result.scores
    ]
    typed = replace(ran["mild"], results={"digits": replace(result, scores=tuple(scores))})
    others = [entry for entry in ran.values() if entry.name != "mild"]
    honest, dishonest = (
        retraining.made_anew(elsewhere, [others[0], entry, *others[1:]])[1]
        for entry in (ran["mild"], typed)
    )
    assert honest.disagrees is None
    assert honest.entry.results["digits"].verified.difference == 0
    assert dishonest.disagrees.what == "leak"
    assert dishonest.entry == typed


def test_a_suite_of_other_rules_is_refused(place, monkeypatch):
    row = dataclasses.replace(attacks.TABLE["norm"], rule=attacks.TABLE["norm"].rule + 1)
    monkeypatch.setitem(attacks.TABLE, "norm", row)
    autoleak.cache_clear()
    with pytest.raises(UserError, match="frozen with other rules of norm"):
        place.run(ENTRIES)
