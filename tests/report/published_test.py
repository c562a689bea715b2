"""Published figures beside ours: what counts as inside, what is refused, what the report prints."""

import shutil

import pytest

from tests.sweeps import plan_of, tiny
from vfljax import store
from vfljax.errors import UserError
from vfljax.report import page, published
from vfljax.report.published import Cell
from vfljax.store.header import write_root
from vfljax.sweep.experiment import experiment_of
from vfljax.sweep.records import Published

RULE = "direct/most_negative"  # an attack of the stored sweep


def binary(**changes):
    data = {"name": "breast_cancer", "train": 300, "validation": 100, "test": 100}
    figures = {"source": "A table", "digits": 2, "rows": {"undefended": {"norm": (0.5, 0.1)}}}
    values = {
        "data": data,
        "grid": {"undefended": {}, "noise": {"noise": {"scale": 0.1}}},
        "attacks": {"norm": {}},
        "published": {**figures, **changes},
    }
    return tiny(**values)


@pytest.mark.parametrize(
    ("ours", "theirs", "inside"),
    [
        ((0.60, 0.62), (0.56, 0.04), True),  # .61 is .05 off: a spread of .04 and two roundings
        ((0.61, 0.63), (0.56, 0.04), False),
        ((0.9125,), (0.91, 0.0), True),
        ((0.921,), (0.91, 0.0), False),
        ((0.954,), (0.95, 0.95, 0.95), True),
        ((0.956,), (0.95, 0.95, 0.95), False),
        ((0.2, 0.9), (0.5, 0.4, 0.6), True),  # the mean counts
        ((), (0.5, 0.1), None),
        ((0.5,), (), None),
    ],
)
def test_our_mean_is_inside_what_the_printed_numbers_can_stand_for(ours, theirs, inside):
    assert Cell("x", "norm", ours, theirs).inside(digits=2) is inside


BAD = [
    ({"rows": {"undefinded": {}}}, "'undefinded'", "did you mean 'undefended'"),
    ({"rows": {"noise": {"nrom": (1, 1)}}}, "'nrom'", "did you mean 'norm'"),
    ({"rows": {"noise": {"norm": (1,)}}}, "rows.noise.norm=[1]", "(mean, spread)"),
    ({"rows": {"noise": {"norm": ("a", 1)}}}, "rows.noise.norm=['a', 1]", "(mean, spread)"),
    ({"rows": {"noise": 3}}, "rows.noise=3", "{figure: numbers}"),
    ({"rows": 3}, "rows=3", "{arm"),
    ({"digits": 0.5}, "digits=0.5", "whole number"),
    ({"more": 1}, "config.published", "source, digits, rows"),
]


@pytest.mark.parametrize(("changes", "value", "remedy"), BAD, ids=[b[1] for b in BAD])
def test_figures_of_what_the_sweep_has_not_are_refused(changes, value, remedy):
    with pytest.raises(UserError) as error:
        plan_of(binary(**changes))
    assert value in str(error.value)
    assert remedy in str(error.value)


@pytest.fixture(scope="module")
def compared(defended, tmp_path_factory):
    """A stored sweep whose config has figures of a paper."""
    workdir = shutil.copytree(defended.workdir, tmp_path_factory.mktemp("published") / "w")
    header = store.read_header(workdir)
    rows = {"undefended": {"AUC": (0.99, 0.0, 1.0), RULE: (0.0, 0.01)}}
    header["config"]["published"] = {"source": "A table", "digits": 2, "rows": rows}
    write_root(workdir, "sweep", header)
    return store.load(workdir)


def test_each_published_figure_stands_beside_the_same_statistic_of_ours(compared):
    auc, raw, direct = published.cells(compared, experiment_of(compared).published)
    rows = [r for r in compared.results.to_pylist() if r["arm"] == "undefended"]
    split = [r for r in rows if r["structure"] == "split"]
    assert auc.ours == tuple(r["test_oriented_auc"] for r in split)
    assert raw.ours == tuple(r["test_auc"] for r in split)
    leaks = {a["setting"]: a["leak"] for a in compared.attacks.to_pylist() if a["attack"] == RULE}
    others = [r for r in rows if r["structure"] == "no_split"]
    assert direct.ours == tuple(leaks[r["setting"]] for r in others)
    assert [len(cell.ours) for cell in (auc, raw, direct)] == [2, 2, 2]
    assert [c.inside(2) for c in (auc, raw, direct)] == [True, None, False]


def test_the_terminal_and_the_page_say_which_figures_are_inside(compared):
    text = page.present(compared.workdir)
    html = (compared.workdir / "report.html").read_text()
    for words in ("OUTSIDE", "0.99 (0.00 to 1.00)", "1 of 2 figures are inside", "A table"):
        assert words in text
        assert words in html


def test_a_config_without_published_figures_prints_no_such_table(defended):
    experiment = experiment_of(defended)
    assert published.table(defended, experiment)[1] == []
    assert published.caption(defended, experiment) == ""


def test_a_published_figure_is_of_the_federation_that_papers_attack(monkeypatch, defended):
    """Others that the attack ran on stand in other tables."""
    table = Published("A table", 2, {"undefended": {RULE: (0.5, 0.1)}})
    described = store.attack_summary(defended.workdir)
    kinds = {"no_split": 2, "split": 0, "malicious": 0}  # where its two rows are
    for first, count in kinds.items():
        about = {
            **described[RULE],
            "structure": [first, *(kind for kind in kinds if kind != first)],
        }
        monkeypatch.setattr(store, "attack_summary", lambda _, about=about: {RULE: about})
        (cell,) = published.cells(defended, table)
        assert len(cell.ours) == count
