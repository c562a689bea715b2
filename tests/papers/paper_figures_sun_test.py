"""Figures of Sun et al. 2022: what each panel draws, and where there is nothing to draw."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tests.sweeps import assessment, identity
from vfljax.errors import UserError
from vfljax.papers import paper_figures_sun as sun
from vfljax.report.intervals import Interval

LEAKS = {
    "party0.deep.hidden.0": 0.6,
    "party0.deep.hidden.10": 0.7,
    "party0.cut": 0.8,
    "top.hidden.0": 0.85,
    "top.logits": 0.9,
}  # from the input on


@pytest.fixture
def stored(monkeypatch):
    """Makes the points of a sweep; figures are closed after the test."""

    def give(*points):
        monkeypatch.setattr(sun, "stored_configurations", lambda sweep: list(points))

    yield give
    plt.close("all")


def made(arm, auc, leaks, knobs=None):
    figures = {
        identity(f"spectral/{name}", federation="split"): {"leak": Interval(leak, 0.02, 5)}
        for name, leak in sorted(leaks.items())  # as stored
    }
    figures[identity("norm", federation="split")] = {"leak": Interval(1.0, 0.0, 5)}
    one = assessment(arm, 0.7, 0.8, knobs).configuration
    return one._replace(attacks=figures, auc={"split": Interval(auc, 0.01, 5)})


def lines(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


@pytest.mark.parametrize(("draw", "layers"), [(sun.figure2, 3), (sun.figure4, 3), (sun.figure7, 5)])
def test_a_panel_a_setting_shows_its_layers_and_its_test_auc(stored, draw, layers):
    stored(made("undefended", 0.66, LEAKS), made("dcor", 0.6, LEAKS, {"dcor.alpha": 0.003}))
    figure = draw(None, {"undefended": [(3, 0.78)]})
    first, second = figure.axes
    assert [ax.get_title() for ax in figure.axes] == ["undefended", "dcor alpha=0.003"]
    drawn = lines(first)
    assert drawn["leak AUC"].get_xdata().tolist() == list(range(1, layers + 1))
    assert drawn["leak AUC"].get_ydata().tolist() == [*LEAKS.values()][:layers]
    assert drawn["test AUC"].get_ydata()[0] == 0.66
    assert (drawn["published"].get_xdata()[0], drawn["published"].get_ydata()[0]) == (3, 0.78)
    assert "published" not in lines(second)
    shaded = [patch for patch in first.patches if patch.get_alpha() == 0.12]
    assert len(shaded) == (layers == 5)  # the label party's layers, where they are drawn


def test_leaks_and_utilities_stand_over_alpha_without_and_with_marvell(stored):
    power = {"marvell.power": 8.0}
    points = [
        made("dcor", 0.60, {"signed": 0.51}, {"dcor.alpha": 0.03}),
        made("undefended", 0.66, {"signed": 0.85}),
        made("marvell", 0.65, {"signed": 0.75}, power),
        made("dcor+marvell", 0.62, {"signed": 0.52}, {"dcor.alpha": 0.03, **power}),
        made("label_dp", 0.6, {"signed": 0.7}, {"label_dp.epsilon": 1.0}),  # no dCor beside it
    ]
    stored(*points)
    figure = sun.figure5(None, {"test AUC": [(0.03, 0.7)]})
    by_title = {ax.get_title(): lines(ax) for ax in figure.axes}
    assert list(by_title) == ["leak AUC", "test AUC", "leak AUC, marvell", "test AUC, marvell"]
    for title, values in (
        ("leak AUC", [0.85, 0.51]),
        ("test AUC", [0.66, 0.6]),
        ("leak AUC, marvell", [0.75, 0.52]),
        ("test AUC, marvell", [0.65, 0.62]),
    ):
        np.testing.assert_array_equal(by_title[title]["ours"].get_xdata(), [0, 0.03])
        np.testing.assert_array_equal(by_title[title]["ours"].get_ydata(), values)
    assert [title for title, drawn in by_title.items() if "published" in drawn] == ["test AUC"]


def test_a_sweep_without_what_is_drawn_is_one_line(stored):
    plain = made("undefended", 0.66, {"signed": 0.8})
    stored(plain)
    with pytest.raises(UserError, match=r"signal layers such as 'party0\.cut'"):
        sun.figure2(None)
    with pytest.raises(UserError, match="no arm with dcor"):
        sun.figure5(None)
    stored(plain, made("dcor", 0.6, {"absolute": 0.5}, {"dcor.alpha": 0.03}))
    with pytest.raises(UserError, match="no attack 'spectral/signed' on every setting"):
        sun.figure5(None)
