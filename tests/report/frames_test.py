"""The frames of a stored sweep: directions of leaks, labels, planned rows, learners and utilities."""

# pandas annotates what a selection returns as a union
# pyright: reportAttributeAccessIssue=false

import pathlib

import pyarrow as pa
import pytest

from vfljax import attacks, store
from vfljax.report.frames import read_frames
from vfljax.report.verdict_frame import verdict_frame
from vfljax.store import StoredSweep
from vfljax.types import AttackIdentity

FIXTURE = pathlib.Path(__file__).parents[1] / "fixtures" / "stored_sweep"


def entry(name, knobs=({},), kinds=("split", "malicious"), attackers=(0,), **values):
    about = store.identity_columns(
        AttackIdentity(name, attackers=attackers, rule=attacks.TABLE[name].rule)
    )
    about |= {"status": "ok", "knobs": list(knobs), "federations": list(kinds)}
    return about | {"oracle": False, "adaptive": False, **values}


def stored(variant, trial, point=0, known=0, draws=1.0, **figures):
    number, federation, seed = trial
    identity = AttackIdentity(variant, federation=federation, known=known)
    place = {"variant": variant, "trial": number, "seed": seed, "attack_configuration": point}
    return {**store.identity_columns(identity), **place, "draws": draws, **figures}


def local(seed, learner, known=40, attackers=(0,), draws=1.0, **figures):
    options = (("learner", learner),)
    identity = AttackIdentity("logistic", options, ("learner",), attackers=attackers, known=known)
    place = {"variant": "logistic", "seed": seed, "what": "logistic", "draws": draws}
    return {**store.identity_columns(identity), **place, **figures}


TRIALS = [(0, "split", 0), (1, "malicious-1", 0), (2, "no_split", 0), (3, "split", 1)]


def made(monkeypatch, summary, rows, learners=(), balance=(300, 700), named=True, **header):
    """Returns the frames of a sweep that is made of these records; the last trial diverged."""
    results = [
        {
            "trial": number,
            "configuration": 0,
            "method": "undefended",
            "defenses": "",
            "federation": federation,
            "seed": seed,
            "status": "ok" if number < 3 else "diverged",
            "loss": [1.0, 0.5],
            "noise.scale": 0.5,
            "test_oriented_accuracy": 0.9,
            "test_oriented_auc": 0.95,
            "validation_oriented_accuracy": 0.8,
            "validation_oriented_auc": 0.85,
        }
        for number, federation, seed in TRIALS
    ]
    monkeypatch.setattr(store, "attack_summary", lambda workdir: summary)
    monkeypatch.setattr(StoredSweep, "plugins", {})
    data = {"balance": list(balance), "train": 1000, **header}
    config = {"attackers": [[0], [1]], "parties": {"passive": 2}}
    tables = (pa.Table.from_pylist(list(x)) for x in (results, rows, learners))
    results, rows, learners = tables
    sweep = StoredSweep(
        pathlib.Path("w"), {"data": data, "config": config}, results, rows, (), learners
    )
    return read_frames(sweep, named=named)


def test_an_attack_that_known_labels_named_knows_these_and_meets_learners_of_all_draws(monkeypatch):
    summary = {"probe": entry("probe", [{"known": 40.0}]), "norm": entry("norm")}
    figures = [stored("probe", TRIALS[0], known=40, draws=2.0, leak=0.3, naming=40.0)]
    figures += [stored("norm", TRIALS[0], leak=0.4, naming=40.0)]
    learners = [local(0, "knn", draws=draws, leak=0.6) for draws in (2.0, 3.0)]
    frames = made(monkeypatch, summary, figures, learners)
    leaks = frames.rows.set_index(["attack", "federation"])["leak"].to_dict()
    assert (leaks["probe", "split"], leaks["norm", "split"]) == (0.3, 0.4)
    learned = frames.rows[frames.rows["role"] == "learner"]
    assert list(learned["leak"]) == [0.6, 0.6]
    assert set(zip(learned["configuration"], learned["panel"], learned["trial"])) == {(-1, "", -1)}
    fair = frames.rows[frames.rows["role"] == "attack"]
    assert set(fair["known"]) == {40}
    draws = fair[fair["federation"] == "split"].set_index("attack")["draws"].to_dict()
    assert draws == {"probe": 2.0, "norm": 3.0}
    assert frames.facts.known == 40
    # whose names are granted knows no label, and reads the same
    rows = made(monkeypatch, summary, figures, learners, named=False).rows
    norm = rows[(rows["attack"] == "norm") & rows["leak"].notna()]
    assert norm[["known", "leak"]].to_numpy().tolist() == [[0, 0.4]]


def test_settled_rows_have_no_figure_and_keep_what_they_were_to_know(monkeypatch):
    summary = {"cheap": entry("direct"), "probe": entry("probe", [{"known": 40.0}])}
    summary["free"] = entry("norm")
    figures = [stored("cheap", TRIALS[0], leak=1.0, naming=40.0, settled_by=None)]
    nothing = {"draws": None, "leak": None, "naming": None}
    figures += [stored("probe", TRIALS[0], known=40, settled_by="direct", **nothing)]
    figures += [stored("probe", TRIALS[3], known=40, draws=2.0, leak=0.9, settled_by="")]
    figures += [stored("free", TRIALS[0], settled_by="direct", **nothing)]
    frames = made(monkeypatch, summary, figures, [local(0, "knn", draws=3.0, leak=0.6)])
    rows = frames.rows[frames.rows["trial"] == 0].set_index("attack")
    assert rows["settled_by"].to_dict() == {"direct": "", "probe": "direct", "norm": "direct"}
    assert rows["leak"].isna().to_dict() == {"direct": False, "probe": True, "norm": True}
    assert set(rows["known"]) == {40}
    assert rows["draws"].to_dict() == {"direct": 3.0, "probe": 2.0, "norm": 3.0}
    # of rows that were stored before there was such a column none is settled
    figures = [{k: v for k, v in of.items() if k != "settled_by"} for of in figures]
    assert set(made(monkeypatch, summary, figures).rows["settled_by"]) == {""}


def test_each_planned_row_is_there_once_and_has_no_figure_until_it_is_run(monkeypatch):
    summary = {
        "probe": entry("probe", [{"known": 10.0}, {"known": 40.0}]),
        "probe_1": entry("probe", [{"known": 40.0}], attackers=(1,)),
        "active": entry("active", kinds=("malicious",)),
        "old": entry("probe", outdated=True),
        "skipped": {**entry("norm"), "status": "skipped"},
        "layer": entry("spectral", oracle=True),
    }
    frames = made(monkeypatch, summary, [stored("probe", TRIALS[0], known=10, leak=0.9)])
    rows = frames.rows
    assert sorted(zip(rows["label"], rows["federation"], rows["attackers"])) == [
        ("active/parties=1", "malicious-1", "1"),
        ("probe known=10", "split", "0"),
        ("probe known=40", "split", "0"),
        ("probe/parties=1", "split", "1"),
        ("probe/parties=1 known=10 (malicious)", "malicious-1", "1"),
        ("probe/parties=1 known=40 (malicious)", "malicious-1", "1"),
        ("spectral", "split", "0"),
        ("spectral/parties=1", "malicious-1", "1"),
    ]
    assert rows["leak"].notna().sum() == 1
    assert set(rows.loc[rows["role"] == "oracle", "attack"]) == {"spectral"}
    assert set(rows["panel"]) == {"split"}
    assert not rows.duplicated(["configuration", "panel", "label", "seed"]).any()
    # charge is run only under methods that it knows, and no attack has a row
    summary = {"probe": entry("probe", [{"known": 40.0}]), "charge": entry("charge")}
    rows = made(monkeypatch, summary, []).rows
    assert set(rows["attack"]) == {"probe"}
    assert rows["leak"].isna().all()


def test_utility_is_auc_if_a_class_is_rare_and_a_party_without_columns_guesses(monkeypatch):
    frames = made(monkeypatch, {}, [], label_columns=False)
    assert (frames.facts.utility, frames.facts.guess) == ("accuracy", 0.7)
    assert set(frames.trials["test_utility"]) == {0.9}
    assert set(frames.trials["alone_test"]) == {0.7}
    assert list(frames.trials["diverged"]) == [False, False, False, True]
    assert list(frames.trials["panel"]) == ["split", "split", "no_split", "split"]
    assert "noise.scale" in frames.trials
    assert "loss" not in frames.trials
    rare = made(monkeypatch, {}, [], balance=(200, 800))
    assert (rare.facts.utility, rare.facts.guess) == ("AUC", 0.5)
    assert set(rare.trials["validation_utility"]) == {0.85}
    assert rare.trials["alone_test"].isna().all()
    facts = made(monkeypatch, {}, [], balance=(100, 300, 600)).facts
    assert facts.scored_rows == 300  # of the rarest class, and of three classes
    assert facts.chance == pytest.approx(1 / 3)
    copied = made(monkeypatch, {}, [], recorded=500, distinct=50)  # copies of a row are one error
    assert copied.facts.scored_rows == 15


def test_a_stored_sweep_is_read_whole():
    sweep = store.load(FIXTURE)
    frames = read_frames(sweep)
    rows, at_once = frames.rows, sweep.attacks.to_pandas()
    fair = rows[rows["role"] == "attack"]
    assert fair["leak"].notna().sum() == at_once["leak"].notna().sum()
    assert (rows["role"] == "learner").sum() == sweep.local_only.num_rows
    assert not fair.duplicated(["configuration", "panel", "label", "seed"]).any()
    found = verdict_frame(*frames[:3])
    # panels, configurations, numbers of known labels
    assert len(found) == 2 * sweep.results.to_pandas()["configuration"].nunique() * 2
    assert found["leak"].notna().all()
