"""Recordings are attacked and judged as a sweep is; what is not recorded is not known."""

import re

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import somersd
from sklearn.metrics import roc_auc_score

import vfljax
from tests.conftest import ROOT
from vfljax import defenses
from vfljax.auditing import suite, wires
from vfljax.auditing.wires import Recorded, Utilities, WireRequest
from vfljax.errors import UserError
from vfljax.report import guarantees, tables
from vfljax.report.first_screen import answers
from vfljax.scheduling import running

ROWS, EPOCHS, WIDTH = 60, 2, 4
NAMES = ("norm", "mean", "joint", "global_median", "passive")
# by method the seed of each run, and how much its gradients tell
INFORMED = {"undefended": ((0, 2.0), (1, 0.8)), "defended": ((0, 0.8), (1, 0.6))}


def quiet(line):
    """Nothing is printed."""


def recorded(seed, informed=1.0, **changes):
    """The arrays of a run whose gradients differ by class in direction and norm, if they are ``informed``."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(ROWS) % 2)
    means = informed * np.where(labels, 2.0, -1.0)[:, None]
    whole = {
        "party0_gradients": means + random.normal(size=(EPOCHS, ROWS, WIDTH)),
        "party0_columns": random.normal(size=(ROWS, 3)),
        "labels": labels,
    }
    return {name: array for name, array in {**whole, **changes}.items() if array is not None}


@pytest.fixture(scope="module", autouse=True)
def few_variants():
    """Attacks have one variant each, of one epoch."""
    of_one_epoch = {
        "norm": {"epoch": (-1,)},
        "mean": {"epoch": (-1,), "scores": "distance"},
        "direct": {"rule": "most_negative", "epoch": (0,)},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.SUITES, "classification", {**suite.ATTACKS, **of_one_epoch})
        yield


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """Two runs, and the same with gradients that tell less."""
    runs, after = ([recorded(*of) for of in INFORMED[method]] for method in INFORMED)
    yield vfljax.attack_wire(
        runs, tmp_path_factory.mktemp("wire"), after=after, attacks=NAMES, say=quiet
    )
    defenses.TABLE.pop("wire:defended")


def test_each_run_leaks_what_its_own_gradients_tell(attacked):
    leaks = attacked.leaks()
    leaks = leaks[leaks["attack"] == "norm"].set_index(["method", "seed"])["leak"]
    assert len(leaks) == 4
    orders = attacked.splits()["known_order"]
    for (method, seed), leak in leaks.items():
        run = recorded(*INFORMED[method][seed])
        norms = np.linalg.norm(run["party0_gradients"][-1], axis=1)
        scored = orders[seed][18:]  # the rows before them name the classes
        auc = roc_auc_score(run["labels"][scored], norms[scored])
        assert leak == pytest.approx(auc, abs=1e-5)


def test_a_wire_of_version_1_has_the_figures_that_it_had_before_version_2(tmp_path, monkeypatch):
    """The figures are those of the last revision that read version 1 alone."""
    monkeypatch.setattr(running, "report", lambda folder: "")
    wire = ROOT / "tests" / "fixtures" / "wire_version1.npz"
    asked = {"attacks": ("norm", "mean", "global_median"), "say": quiet}
    leaks = vfljax.attack_wire(wire, tmp_path, **asked).leaks().set_index("attack")["leak"]
    expected = {"norm": 0.569231, "mean": 0.828846, "global_median": 0.734615}
    assert leaks.to_dict() == pytest.approx(expected, abs=2e-3)  # less than two pairs of rows


def drawn(place, seed, informed):
    """A wire of messages whose rows are drawn with replacement, of a party whose columns are not recorded."""
    random, wire = np.random.default_rng(seed), vfljax.Recorder()
    labels = random.permutation(np.arange(ROWS) % 2)
    for _ in range(30):
        rows = random.integers(ROWS, size=12)
        message = wire.sent("bank", rows, random.normal(size=(12, WIDTH)))
        means = informed * np.where(labels[rows], 2.0, -1.0)[:, None]
        wire.received("bank", message, means + random.normal(size=(12, WIDTH)))
    wire.sent("bank", rows, random.normal(size=(12, WIDTH)))
    wire.save(place, labels=labels, say=quiet)
    return place


def test_without_columns_leaks_are_compared_and_there_is_no_baseline(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "report", lambda folder: "")
    runs = [drawn(tmp_path / f"run{seed}", seed, 1.5) for seed in range(3)]
    after = [drawn(tmp_path / f"after{seed}", seed, 0.1) for seed in range(3)]
    asked = {"after": after, "attacks": ("mean",), "say": quiet}
    found = vfljax.attack_wire(runs, tmp_path / "out", **asked)
    verdicts = found.verdicts().set_index("method")
    assert {*verdicts["verdict"]} == {"no baseline"}
    assert {*verdicts["seeds"]} == {3}
    assert verdicts["leak_lower"]["undefended"] > 0.6
    assert verdicts["d_upper"]["defended"] < 0
    (answer,) = answers(found.judged)
    assert "party0_columns" in answer.answer
    (section,) = [s for s in tables.sections(found.judged) if s.title.endswith("was recorded")]
    assert {*section.frame["party"]} == {"bank"}
    assert section.frame["messages"].tolist() == ["31"] * 6
    assert section.frame["without an answer"].tolist() == ["12"] * 6
    assert section.frame["rows of messages"].tolist() == ["372"] * 6
    defenses.TABLE.pop("wire:defended")


def test_a_spent_budget_begins_nothing_and_the_same_call_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "report", lambda folder: "")
    asked = {"attacks": ("norm",), "say": quiet}
    first = vfljax.attack_wire(recorded(0), tmp_path, **asked, budget="1ns")
    assert first.unfinished
    assert not vfljax.attack_wire(recorded(0), tmp_path, **asked, budget="1h").unfinished


def test_methods_are_told_apart_and_their_knobs_are_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "report", lambda folder, verbose=False: "")
    told = {"undefended": {0.0: 2.0}, "dial": {1.0: 1.0, 2.0: 0.3}, "other": {0.0: 0.6}}
    methods = {
        name: [
            Recorded(
                wires.written(recorded(0, informed), tmp_path / f"{name}{knob}.npz"),
                Utilities((informed / 10,), (informed / 20,)),
                {"strength": knob} if knob else {},
            )
            for knob, informed in points.items()
        ]
        for name, points in told.items()
    }
    folder = tmp_path / "out"
    assert wires.attack(WireRequest(methods, attacks=("norm",)), folder, "test", quiet)
    found = vfljax.load(folder)
    trials = found.judged.trials.set_index(["method", "wire:dial.strength"])
    utilities = {key: row["test_utility"] for key, row in trials.iterrows()}
    assert utilities["dial", 1.0] == pytest.approx(0.1)
    assert utilities["dial", 2.0] == pytest.approx(0.03)
    assert (trials["validation_utility"] * 2).tolist() == pytest.approx([*utilities.values()])
    norms = np.linalg.norm(recorded(0, 0.3)["party0_gradients"][-1], axis=1)
    auc = roc_auc_score(recorded(0)["labels"], norms)  # no label is known, so that all are scored
    leaks = found.leaks().set_index("wire:dial.strength")
    assert leaks.loc[2.0, "leak"] == pytest.approx(auc, abs=1e-5)
    other = methods | {"other": methods["dial"][:1]}  # another recording of a method that is stored
    other["other"] = [other["other"][0]._replace(knobs={})]
    with pytest.raises(UserError, match="holds attacks on other recordings"):
        wires.attack(WireRequest(other, attacks=("norm",)), folder, "test", quiet)
    for name in ("dial", "other"):
        defenses.TABLE.pop(f"wire:{name}")


def test_a_claimed_epsilon_is_audited_without_a_change_of_labels(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "report", lambda folder: "")
    random, rows = np.random.default_rng(0), 600
    labels = np.arange(rows) % 2
    run = {"party0_columns": random.normal(size=(rows, 3)), "labels": labels}
    bare = {**run, "party0_gradients": random.normal(size=(1, rows, 2)) + labels[:, None]}
    # randomized response with an epsilon of 4
    sent = labels ^ (random.random(rows) > 1 / (1 + np.exp(-4.0)))
    after = {**run, "party0_gradients": random.normal(size=(1, rows, 2)) / 9 - sent[:, None]}
    given = {"after": after, "after_epsilon": 0.5, "known": 20, "attacks": ["mean"]}
    found = vfljax.attack_wire(bare, tmp_path, **given, say=quiet)
    defenses.TABLE.pop("wire:defended")
    (cell,) = guarantees.bound_table(found.judged)["ε at least (95 %), from canaries"]
    at_least, told = float(cell.split()[0]), float(cell.split("at most ")[1].rstrip(")"))
    assert 0.5 < told < 0.7  # the columns say nothing, but there are few pairs
    assert 1.0 < at_least < 4.0
    warned = f"ε is at least {at_least:.2f}, more than the 0.5"
    assert any(warned in warning for warning in guarantees.warnings(found.judged))
    with pytest.raises(UserError, match="after_epsilon is of no recording"):
        vfljax.attack_wire(bare, tmp_path / "alone", after_epsilon=1.0, say=quiet)


def test_attackers_know_half_of_the_rarest_class_by_default_if_it_is_small(attacked):
    leaks = attacked.leaks()
    assert {*leaks.loc[leaks["attack"] == "mean", "known"]} == {18}  # of 0.6 * 30 rows a class
    assert {*leaks["draws"]} >= {5}


def test_a_defense_of_which_nothing_is_known_is_compared_and_never_recommended(attacked):
    verdicts = attacked.verdicts().set_index("method")
    assert set(verdicts.index) == {"undefended", "defended"}
    assert not verdicts.loc["defended", "known_by"]
    assert not verdicts["recommended"].any()


def test_attacks_that_read_what_is_missing_are_skipped(attacked):
    skipped = "\n".join(attacked.not_attacked())
    for attack, what in (
        ("passive", "the bottom models"),
        ("joint", "embeddings"),
        ("global_median", "which rows shared a batch"),
    ):
        assert re.search(
            f"^{attack}.*: it reads what this recording lacks: .*{what}", skipped, re.M
        )
    page = (attacked.workdir / "report.html").read_text()
    assert "not known" in page
    assert "No figure is drawn" in page


def test_without_labels_there_are_predictions_alone(tmp_path):
    labels = recorded(0)["labels"]
    known = np.concatenate([np.flatnonzero(labels == c)[:9] for c in (0, 1)])
    wire = recorded(0, labels=None, known_rows=known, known_labels=labels[known])
    found = vfljax.attack_wire(wire, tmp_path, attacks=("mean",), say=quiet)
    assert not found.attacks.num_rows
    table = pq.read_table(tmp_path / wires.PREDICTIONS).to_pandas()
    assert table["row"].tolist() == [*range(ROWS)]
    (label,) = (name for name in table if f"{name}: margin" in table)
    assert (table[label].to_numpy() == labels).mean() > 0.8
    assert (table[f"{label}: margin"] >= 0).all()


def test_without_a_top_model_every_party_reads_the_sign_of_its_gradients(tmp_path, monkeypatch):
    monkeypatch.setattr(
        running, "report", lambda folder, verbose=False: ""
    )  # takes longer than the attack
    random = np.random.default_rng(0)
    labels = np.arange(ROWS) % 2
    received = random.uniform(0.1, 0.9, size=(1, ROWS, 1)) * (1 - 2 * np.eye(2)[labels])
    wire = {f"party{p}_gradients": received * (p + 1) for p in range(2)} | {"labels": labels}
    asked = {"federation": "no_split", "attacks": ("direct",), "say": quiet}
    utility = {"utility": (0.9, 0.92), "alone": (0.8, 0.85)}
    found = vfljax.attack_wire([wire] * 2, tmp_path, **asked, **utility)
    assert found.leaks()["leak"].tolist() == [1] * 4
    trials = found.judged.trials.set_index("seed")  # each run has the utility that is given for it
    assert trials["test_utility"].to_dict() == {0: 0.9, 1: 0.92}
    assert trials["alone_test"].to_dict() == {0: 0.8, 1: 0.85}


def test_a_squared_error_returns_labels_that_are_numbers(tmp_path):
    """Of f = z the gradient is 2 (f - y) / B: its negative orders labels as y - f does, and with f it is y."""
    runs, residuals, size = [], [], 20
    for seed in range(3):
        random = np.random.default_rng(seed)
        y = np.exp(random.normal(size=ROWS))
        z, places = random.normal(size=(2, ROWS)), random.permutation(ROWS)
        wire = vfljax.Recorder()
        for rows in np.split(places, ROWS // size):
            f = z[0, rows]
            message = wire.sent("bank", rows, f[:, None])
            wire.received("bank", message, (2 * (f - y[rows]) / size)[:, None])
        runs.append(tmp_path / f"run{seed}")
        given = {"labels": y, "task": "regression", "columns": [random.normal(size=(ROWS, 3))]}
        wire.save(runs[-1], **given, say=quiet)
        residuals.append((y, y - z[0]))
    asked = {"federation": "no_split", "attacks": ("direct",), "say": quiet}
    utility = {"utility": (-3.5, 0.2, 0.4), "alone": (0.1,)}
    found = vfljax.attack_wire(runs, tmp_path / "out", **asked, **utility)
    leaks = found.leaks().set_index(["label", "seed"])["leak"]
    assert leaks.xs("direct/epoch=0/own", level="label").tolist() == [1] * 3
    for seed, (y, residual) in enumerate(residuals):
        assert leaks["direct/epoch=0", seed] == pytest.approx(
            somersd(y, residual).statistic / 2 + 0.5, abs=1e-6
        )
    page = (found.workdir / "report.html").read_text()
    assert "concordance" in page
    assert "R²" in page
    assert found.judged.trials["test_utility"].tolist() == [0, 0.2, 0.4]
    # without labels there are scores alone
    wire.save(runs[0], task="regression", known_rows=[0, 1], known_labels=y[:2], say=quiet)
    vfljax.attack_wire(runs[0], tmp_path / "scored", **asked)
    table = pq.read_table(tmp_path / "scored" / wires.PREDICTIONS).to_pandas()
    np.testing.assert_allclose(table["direct/epoch=0/own"], y, rtol=1e-4, atol=1e-5)
    with pytest.raises(UserError, match="after_epsilon is audited on labels that are classes"):
        vfljax.attack_wire(runs, tmp_path / "no", after=runs, after_epsilon=1.0, say=quiet)


def test_nodes_of_trees_are_read_without_gradients_and_gradients_by_their_sign(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(running, "report", lambda folder, verbose=False: "")
    random = np.random.default_rng(0)
    labels = random.permutation(np.arange(ROWS) % 2)
    nodes = 5 + np.stack([[labels ^ (random.uniform(size=ROWS) < 0.2)] for _ in range(6)])
    wire = {
        "party0_nodes": nodes,
        "party0_columns": random.normal(size=(ROWS, 3)),
        "labels": labels,
    }
    names = {"say": quiet, "attacks": ("direct", "cohabitation", "probe")}
    hidden = vfljax.attack_wire(wire, tmp_path / "encrypted", **names)
    leaks = hidden.leaks()
    attacks = {"cohabitation/known", "cohabitation/none", "probe/embeddings"}
    assert {label.split()[0] for label in leaks["label"]} == attacks
    assert leaks["leak"].min() > 0.9
    assert "gradients" in "".join(hidden.not_attacked())
    g = (
        np.where(labels, -0.5, 0.5)[None, :, None] * (np.arange(6) > 1)[:, None, None]
    )  # two rounds alone
    names["attacks"] = ("direct",)
    plain = vfljax.attack_wire(wire | {"party0_gradients": g}, tmp_path / "plain", **names)
    assert plain.leaks()["leak"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"federation": "both"}, "federation='both'"),
        ({"federation": "no_split"}, "width 4 for 2 classes"),
        ({"after": Recorded(("a.npz", "b.npz"))}, "names 2 recordings of 1 runs"),
        ({"attacks": ("nrom",)}, "nrom"),
        ({"after": Recorded(("a.npz",), Utilities((1.5,)))}, "after_utility=.*is no utility"),
        ({"known": 1}, "give from 2 to 59"),
        ({"alone": Utilities((0.5, 0.6))}, "give one from 0 to 1, or one for each of the 1 runs"),
    ],
)
def test_what_cannot_be_meant_gives_one_line(changes, line, tmp_path):
    changes = dict(changes)
    (path,) = wires.written(recorded(0), tmp_path / "run.npz")
    methods = {"undefended": (Recorded((path,)),)}
    methods |= {"defended": (changes.pop("after"),)} if "after" in changes else {}
    with pytest.raises(UserError, match=line) as error:
        wires.attack(WireRequest(methods, **changes), tmp_path / "out", "test", quiet)
    assert "\n" not in error.value.line()
    assert not (tmp_path / "out").exists()


def test_a_defended_run_is_of_the_same_rows(tmp_path):
    first, other = wires.written([recorded(0), recorded(1)], tmp_path / "run.npz")
    with pytest.raises(UserError, match="differs from the run without a defense in labels"):
        vfljax.attack_wire(first, tmp_path / "out", after=other, say=quiet)
