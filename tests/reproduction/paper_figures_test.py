"""The papers' figures: what is drawn where, from stored sweeps."""

import numpy as np
import pandas as pd
import pytest

from analysis.reproduction import paper_figures
from analysis.reproduction.seed_figures import SeedFigures
from vfljax import store
from vfljax.config import Reproduces
from vfljax.errors import UserError


def drawn(ax):
    """The x and y of everything that has a label."""
    lines = {line.get_label(): line for line in ax.lines}
    lines |= {container.get_label(): container[0] for container in ax.containers}
    return {
        label: (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist())
        for label, line in lines.items()
        if not label.startswith("_")
    }


def test_figure_6_has_a_panel_a_k_and_begins_undefended(tiny_sweep):
    sweep = store.load(tiny_sweep)
    figure = paper_figures.draw(sweep, Reproduces("kdk/figure6", dataset="CIFAR-10"))
    rows = [r for r in sweep.results.to_pylist() if r["federation"] == "split"]
    ks = sorted({r["kdk.k"] for r in rows if r["kdk.k"] is not None})
    assert [ax.get_title() for ax in figure.axes] == [f"k = {k:g}" for k in ks]
    x, y = drawn(figure.axes[-1])["accuracy"]
    undefended = [r["test_accuracy"] for r in rows if r["method"] == "undefended"]
    assert (x[0], y[0]) == (0, pytest.approx(np.mean(undefended)))
    for at, mean in zip(x[1:], y[1:], strict=True):
        ours = [r for r in rows if (r["kdk.k"], r["kdk.epsilon"]) == (ks[-1], pytest.approx(at))]
        assert mean == pytest.approx(np.mean([r["test_accuracy"] for r in ours]))
    fields = {"metric": "asr_top1", "attack": "passive", "split": "train"}
    assert paper_figures._kdk_numbers("CIFAR-10", 3, **fields) == [(0.45, 0.439)]


LAYERS = {
    "party0.deep.hidden.0": 0.6,
    "party0.deep.hidden.10": 0.7,
    "party0.cut": 0.8,
    "top.hidden.0": 0.85,
    "top.logits": 0.9,
}  # from the input on
POWER = {"marvell.power": 8.0}


@pytest.fixture
def stored(monkeypatch):
    """Gives the figures the configurations of a sweep: method, test AUC, leaks of the spectral attack's
    signals, and knobs."""

    def give(*every):
        points, trials, attacks = [], [], []
        for number, (method, auc, leaks, knobs) in enumerate(every):
            label = " ".join([method, *(f"{k.split('.')[1]}={v}" for k, v in knobs.items())])
            chain = "+".join(dict.fromkeys(name.split(".")[0] for name in knobs))
            points.append({"label": label, "method": method, "defenses": chain, **knobs})
            at = {"configuration": number, "kind": "split", "seed": 0, "trial": number}
            trials.append({**at, "diverged": False, "accuracy": 0.7, "auc": auc})
            attacks += [
                {**at, "label": f"spectral/{signal}", "attack": "spectral"}
                | {"signal": signal, "leak": leak}
                for signal, leak in sorted(leaks.items())  # as stored
            ]
        found = SeedFigures(*(pd.DataFrame(table) for table in (points, trials, attacks)))
        monkeypatch.setattr(paper_figures, "seed_figures", lambda sweep: found)

    return give


def sun(number):
    return paper_figures.draw(None, Reproduces(f"sun/figure{number}", "Criteo"))


@pytest.mark.parametrize(("number", "layers"), [(2, 3), (7, 5)])
def test_a_panel_a_configuration_shows_its_layers_and_its_test_auc(stored, number, layers):
    stored(("undefended", 0.66, LAYERS, {}), ("dcor", 0.6, LAYERS, {"dcor.alpha": 0.003}))
    first, second, *empty = sun(number).axes
    assert (first.get_title(), second.get_title()) == ("undefended", "dcor alpha=0.003")
    assert not any(ax.axison for ax in empty)
    shown = drawn(first)
    assert shown["leak AUC"] == (list(range(1, layers + 1)), [*LAYERS.values()][:layers])
    assert shown["test AUC"][1][0] == 0.66
    # the text prints .78 for the undefended last two layers
    assert shown.get("printed") == (([4, 5], [0.78, 0.78]) if number == 2 else None)
    shaded = [patch for patch in first.patches if patch.get_alpha() == 0.12]
    assert len(shaded) == (layers == 5)  # the label party's layers, where they are drawn


def test_leaks_and_utilities_are_over_alpha_without_and_with_marvell(stored):
    stored(
        ("dcor", 0.60, {"signed": 0.51}, {"dcor.alpha": 0.03}),
        ("undefended", 0.66, {"signed": 0.85}, {}),
        ("marvell", 0.65, {"signed": 0.75}, POWER),
        ("dcor+marvell", 0.62, {"signed": 0.52}, {"dcor.alpha": 0.03, **POWER}),
        ("label_dp", 0.6, {"signed": 0.7}, {"label_dp.epsilon": 1.0}),  # never with dCor
    )
    by_title = {ax.get_title(): drawn(ax) for ax in sun(5).axes}
    assert {title: shown["ours"] for title, shown in by_title.items()} == {
        "leak AUC": ([0, 0.03], [0.85, 0.51]),
        "test AUC": ([0, 0.03], [0.66, 0.6]),
        "leak AUC, marvell": ([0, 0.03], [0.75, 0.52]),
        "test AUC, marvell": ([0, 0.03], [0.65, 0.62]),
    }
    assert by_title["leak AUC"]["printed"] == ([0.002], [0.5])


def test_a_sweep_without_what_is_drawn_is_one_line(stored):
    stored(("undefended", 0.66, {"signed": 0.8}, {}))
    with pytest.raises(UserError, match=r"signal layers such as 'party0\.cut'"):
        sun(2)
    with pytest.raises(UserError, match="no method with dcor"):
        sun(5)
