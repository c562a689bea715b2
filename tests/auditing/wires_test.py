"""A recording of a sweep's exchange is judged as the sweep is; what is not recorded is not known."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import vfljax
from tests.sweeps import plan_of, tiny, train
from vfljax import defenses
from vfljax.auditing import wires
from vfljax.auditing.wires import WireRequest
from vfljax.errors import UserError

ATTACKS = {
    "norm": {"epoch": (-1, "mean")},
    "mean": {"epoch": (-1, "mean"), "scores": "distance"},
    "probe": {"known": 40, "steps": 20},
}
CONFIG = tiny(
    data={"name": "breast_cancer", "train": 0.5, "validation": 0.25, "test": 0.25},
    grid={"undefended": {}},
    attacks=ATTACKS,
    federations=("split",),
    known_draws=5,
    **{"training.record": (0, 1, 2)},
)


def quiet(line):
    """Nothing is printed."""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    train(folder, CONFIG)
    return vfljax.load(folder)


def recorded(sweep, seed, **changes):
    """The arrays of a wire of the sweep's trial."""
    plan, exchange = plan_of(CONFIG), sweep.trial(seed).exchange()
    rows = plan.splits[seed].train
    whole = {
        **{name: exchange[name] for name in ("party0_embeddings", "party0_gradients", "order")},
        "batch_size": CONFIG["training"]["batch_size"],
        "labels": plan.dataset.labels[rows],
        "party0_columns": np.asarray(plan.party_columns[0].features)[rows],
    }
    return {name: array for name, array in {**whole, **changes}.items() if array is not None}


@pytest.fixture(scope="module")
def attacked(sweep, tmp_path_factory):
    """Two runs, and the same with gradients that tell nothing."""
    random = np.random.default_rng(0)
    runs = [recorded(sweep, seed) for seed in range(2)]
    noise = [{"party0_gradients": random.normal(size=r["party0_gradients"].shape)} for r in runs]
    after = [recorded(sweep, seed, **noise[seed]) for seed in range(2)]
    folder, names = tmp_path_factory.mktemp("wire"), ("norm", "mean", "probe", "passive")
    yield vfljax.attack_wire(runs, folder, after=after, attacks=names, known=40, say=quiet)
    defenses.TABLE.pop(wires.UNKNOWN_DEFENSE)  # a row in the place of one that is not in use


def test_a_recording_leaks_what_the_sweep_it_is_of_leaks(sweep, attacked):
    def leaks(frame):
        kept = frame[(frame["attack"] != "probe") & (frame["federation"] == "split")]
        return kept.set_index(["label", "seed"])["leak"].sort_index()

    ours = attacked.leaks()
    ours = leaks(ours[ours["method"] == "undefended"])
    theirs = leaks(sweep.leaks())
    shared = ours.index.intersection(theirs.index)
    assert len(shared) == 8  # norm and mean, of the last epoch and of all, two seeds
    # sums over epochs are added in another order
    np.testing.assert_allclose(ours[shared], theirs[shared], atol=1e-5)


def test_a_defense_of_which_nothing_is_known_is_compared_and_never_recommended(attacked):
    verdicts = attacked.verdicts().set_index("method")
    assert set(verdicts.index) == {"undefended", "defended"}
    assert not verdicts.loc["defended", "known_by"]
    assert not verdicts["recommended"].any()
    leaks = attacked.leaks().groupby(["method", "label"])["leak"].mean()
    assert leaks["defended", "norm/mean"] < leaks["undefended", "norm/mean"]


def test_utility_is_not_known_unless_it_is_given(attacked, sweep, tmp_path):
    page = (attacked.workdir / "report.html").read_text()
    assert "not known" in page
    assert "No figure is drawn" in page
    utility = {"utility": (0.9, 0.92), "alone": (0.8, 0.85)}
    runs = [recorded(sweep, seed) for seed in range(2)]
    known = vfljax.attack_wire(runs, tmp_path, attacks=("norm",), say=quiet, **utility)
    trials = known.judged.trials.set_index("seed")
    assert trials["test_utility"].to_dict() == {0: 0.9, 1: 0.92}
    assert trials["alone_test"].to_dict() == {0: 0.8, 1: 0.85}


@pytest.mark.slow
def test_attacks_that_read_what_is_missing_are_skipped(attacked, sweep, tmp_path):
    assert any("the bottom models" in line for line in attacked.not_attacked())
    names = ("norm", "probe", "spectral", "global_median")
    bare = recorded(
        sweep, 0, party0_embeddings=None, order=None, batch_size=None, party0_columns=None
    )
    found = vfljax.attack_wire(bare, tmp_path, attacks=names, say=quiet)
    skipped = {line.split(":")[0]: line for line in found.not_attacked()}
    assert "embeddings" in skipped["probe/both/epoch=-1"]
    assert "which rows shared a batch" in skipped["global_median"]
    assert {"norm/epoch=-1", "probe/gradients/mean"} <= {*found.leaks()["label"]}
    # without columns nobody knows what the party reads alone
    assert not found.local_only.num_rows
    assert "Without the federation" not in found.report()


def test_without_labels_there_are_predictions_alone(sweep, tmp_path):
    labels = recorded(sweep, 0)["labels"]
    known = np.concatenate([np.flatnonzero(labels == c)[:10] for c in (0, 1)])
    wire = recorded(sweep, 0, labels=None, known_rows=known, known_labels=labels[known])
    found = vfljax.attack_wire(wire, tmp_path, attacks=("probe",), say=quiet)
    assert not found.attacks.num_rows
    table = pq.read_table(tmp_path / wires.PREDICTIONS).to_pandas()
    assert table["row"].tolist() == [*range(len(labels))]
    right = (table["probe/both/epoch=-1"].to_numpy() == labels).mean()
    assert right > 0.8
    assert (table["probe/both/epoch=-1: margin"] >= 0).all()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"federation": "both"}, "federation='both'"),
        ({"federation": "no_split"}, "width 4 for 2 classes"),
        ({"after": ("a.npz", "b.npz")}, "names 2 recordings of 1 runs"),
        ({"attacks": ("nrom",)}, "nrom"),
        ({"utility": (1.5,)}, "is no utility"),
        ({"after_utility": (0.5,)}, "give after, or leave it out"),
        ({"known": 1}, "give from 2 to 284"),
        ({"alone": (0.5, 0.6)}, "give one from 0 to 1, or one for each of the 1 runs"),
    ],
)
def test_what_cannot_be_meant_gives_one_line(changes, line, sweep, tmp_path):
    (path,) = wires.written(recorded(sweep, 0), tmp_path / "run.npz")
    with pytest.raises(UserError, match=line) as error:
        wires.attack(WireRequest((path,), **changes), tmp_path / "out", "test", quiet)
    assert "\n" not in error.value.line()
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_without_a_top_model_every_party_reads_the_sign_of_its_gradients(tmp_path):
    random = np.random.default_rng(0)
    labels = np.arange(60) % 2
    received = random.uniform(0.1, 0.9, size=(1, 60, 1)) * (1 - 2 * np.eye(2)[labels])
    wire = {f"party{p}_gradients": received * (p + 1) for p in range(2)} | {"labels": labels}
    asked = {"federation": "no_split", "attacks": ("direct",), "say": quiet}
    leaks = vfljax.attack_wire(wire, tmp_path, **asked).leaks().set_index("label")["leak"]
    for label in ("direct/most_negative/epoch=0", "direct/most_negative/epoch=0/parties=1"):
        assert leaks[label] == 1


def test_a_defended_run_is_of_the_same_rows(sweep, tmp_path):
    runs = [recorded(sweep, seed) for seed in range(2)]
    first, other = wires.written(runs, tmp_path / "run.npz")
    with pytest.raises(UserError, match="differs from the run without a defense in labels"):
        wires.attack(WireRequest((first,), (other,)), tmp_path / "out", "test", quiet)
