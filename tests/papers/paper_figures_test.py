"""The papers' figures: what is drawn where, from stored sweeps."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from vfljax import papers, store
from vfljax.papers import paper_figures
from vfljax.sweep.records import Reproduces


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def lines(axes, label):
    return [line for line in axes.get_lines() if line.get_label() == label]


def test_figure_6_has_a_panel_a_k_and_begins_undefended(tiny_sweep):
    sweep = store.load(tiny_sweep)
    figure = paper_figures.draw(sweep, Reproduces("kdk/figure6", dataset="CIFAR-10"))
    assert figure is not None
    rows = [r for r in sweep.results.to_pylist() if r["federation"] == "split"]
    ks = sorted({r["kdk.k"] for r in rows if r["kdk.k"] is not None})
    assert [ax.get_title() for ax in figure.axes] == [f"k = {k:g}" for k in ks]
    for ax, k in zip(figure.axes, ks, strict=True):
        (container,) = (c for c in ax.containers if c.get_label() == "accuracy")
        x, y = container[0].get_data()
        plain = [r["test_accuracy"] for r in rows if r["arm"] == "undefended"]
        assert (x[0], y[0]) == (0, pytest.approx(np.mean(plain)))
        for at, mean in zip(x[1:], y[1:], strict=True):
            ours = [r for r in rows if r["kdk.k"] == k and r["kdk.epsilon"] == pytest.approx(at)]
            assert mean == pytest.approx(np.mean([r["test_accuracy"] for r in ours]))


def test_printed_numbers_are_the_paper_s(tiny_sweep):
    ours = paper_figures._kdk_numbers("CIFAR-10", "asr_top1", "passive", "train", 3)
    assert ours == [(0.45, 0.439)]
    assert all(n.table == "kdk/4" for n in papers.numbers() if n.value == 0.439)


def test_figure_7_has_a_panel_a_defense(tiny_sweep):
    sweep = store.load(tiny_sweep)
    figure = paper_figures.draw(sweep, Reproduces("kdk/figure7", dataset="CIFAR-10"))
    assert figure is not None
    defenses = {row["defenses"] for row in sweep.results.to_pylist()} & set(paper_figures.STRENGTHS)
    assert {ax.get_title() for ax in figure.axes} == defenses


def test_figure_3_has_a_bar_an_arm_and_a_dot_a_seed(defended):
    one = Reproduces("gafm/figure3", attacks={"norm": "direct/most_negative"})
    figure = paper_figures.draw(defended, one)
    assert figure is not None
    (ax,) = figure.axes
    auc = [r for r in defended.results.to_pylist() if r["federation"] == "split"]
    arms = list(dict.fromkeys(r["point"] for r in auc))
    assert len(ax.containers) == len(arms)
    for bars, point in zip(ax.containers, arms, strict=True):
        mean = np.mean([r["test_oriented_auc"] for r in auc if r["point"] == point])
        assert bars[0].get_height() == pytest.approx(mean)


def test_a_table_is_no_figure(defended):
    assert paper_figures.draw(defended, Reproduces("gafm/2", "Criteo")) is None
