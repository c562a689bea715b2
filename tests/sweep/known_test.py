"""Known labels: balanced, of different groups, and refused where there are not enough of them."""

import numpy as np
import pandas as pd
import pytest

from tests.refusals import refused
from tests.sweeps import TINY, plan_of, silent, tiny
from vfljax.datasets.core import SourceColumn
from vfljax.datasets.splits import Split, label_groups
from vfljax.scheduling import work
from vfljax.sweep import known, train
from vfljax.sweep.grid import parse


def test_known_rows_come_class_by_class():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    splits = [Split(rng.permutation(90)[:60], np.arange(5), np.arange(5, 9)) for _ in range(2)]
    arrays = known.split_arrays(labels, splits)
    for seed, split in enumerate(splits):
        order = arrays["known_order"][seed]
        assert sorted(order) == list(range(60))
        first = labels[split.train][order[:30]]
        assert np.bincount(first).tolist() == [10, 10, 10]  # the first n are balanced
    assert (arrays["known_order"][0] != arrays["known_order"][1]).any()


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The plan of a table in which each of sixty rows comes ten times."""
    folder = tmp_path_factory.mktemp("table")
    random = np.random.default_rng(0)
    rows = pd.DataFrame(random.normal(size=(60, 3)), columns=list("abc")).assign(y=[0, 1] * 30)
    pd.concat([rows] * 10).to_csv(folder / "t.csv", index=False)
    data = {"name": "table", "dir": str(folder / "t.csv"), "options": {"label": "y"}}
    shares = {"train": 0.6, "validation": 0.2, "test": 0.2}
    changes = {"data": data | shares, "canaries": 20, "grid": {"undefended": {}}, "attacks": {}}
    return plan_of(tiny(**changes))


def test_groups_of_copies_are_numbered_by_seed_and_canaries_have_their_own(copied):
    labels, groups = copied.dataset.labels, label_groups(copied.dataset)
    arrays = known.split_arrays(labels, copied.splits, 1, copied.candidates, groups)
    for of_seed, split in zip(arrays["groups"], copied.splits, strict=True):
        assert of_seed.max() < len(of_seed)
        names = groups[split.train]
        np.testing.assert_array_equal(of_seed[:, None] == of_seed, names[:, None] == names)
        is_canary = split.train >= 600
        assert len({*of_seed[is_canary]}) == is_canary.sum() == 20
        assert not {*of_seed[is_canary]} & {*of_seed[~is_canary]}
    # of each class the training part has some 18 different rows, and 20 labels of each are more
    assert known.known_error("mean", 30, copied) is None
    error = known.known_error("mean", 40, copied)
    assert error is not None
    assert "different groups" in str(error)


def test_a_header_counts_the_rows_of_different_groups_and_has_the_owner_of_each_column(copied):
    groups = label_groups(copied.dataset)
    sources = tuple(SourceColumn(name, "number") for name in ("a", "b", "c", "y"))
    filled = copied._replace(dataset=copied.dataset._replace(sources=sources))
    data = train.header(filled, "")["data"]
    assert data["distinct"] == min(len({*groups[split.train]}) for split in copied.splits)
    assert data["distinct"] < data["recorded"] == len(copied.splits[0].train)
    assert [source["owner"] for source in data["sources"]] == [0, 0, 1, None]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"attacks": {"direct": {}}, "federations": ("split",)},
            ("config.federations=['split']", "'no_split'", "leave 'direct' out of config.attacks"),
        ),
        (
            {"attacks": {"mean": {"known": (40, 9)}}},
            ("config.attacks.mean", "known=9", "10 classes", "one a class or more"),
        ),
    ],
)
def test_what_no_setting_could_serve_is_one_line_before_anything_is_written(
    changes, words, tmp_path
):
    experiment = parse(tiny(grid={"undefended": {}}, **changes))
    with refused(*words):
        work.begin(experiment, tmp_path / "new", "test", silent)
    assert not (tmp_path / "new").exists()


def test_what_can_be_served_or_is_for_two_classes_passes():
    """The norm attack, which is for two classes, is skipped and not refused."""
    attacks = {"norm": {}, "mean": {"known": 10}, "probe": {}}
    known.check_known_labels(plan_of(tiny(attacks=attacks, federations=("split",))))


def test_a_stored_sweep_is_never_asked(tiny_sweep, monkeypatch):
    monkeypatch.setattr(train, "check_known_labels", None)
    train.planned(parse(TINY), tiny_sweep)
