"""Figures in the papers' form, from a stored sweep whose config names one (``config.reproduces``).

The figures show means over seeds with 95 % intervals. Diamonds are printed numbers: those of the paper's data
and training, even if the sweep has less of them. Sun et al. draw leaks over the course of training. Ours are
of the trained model, so the horizontal axis has its layers, and the test AUC is a horizontal line.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from analysis.reproduction import SPECTRAL, gafm_gradients, our_figures, papers
from analysis.reproduction.seed_figures import SeedFigures, over_seeds, seed_figures
from vfljax.config import Config, Reproduces
from vfljax.errors import UserError
from vfljax.report import tables
from vfljax.report.figures import COLORS, MARKERS, STYLE
from vfljax.report.limits import Limits
from vfljax.store import StoredSweep
from vfljax.types import MALICIOUS, SPLIT, HostArray

ATTACKS = {"passive": SPLIT, "active": MALICIOUS}  # attack -> federation
SUCCESS = {"metric": "asr_top1", "split": "train"}  # fields of the printed numbers of an attack
GRADIENT_ATTACKS = ("norm", "mean", "median")
OPERATING_POINTS = {
    "noise": "noise.scale",
    "compression": "compression.keep_rate",
    "ppdl": "ppdl.theta",
    "discrete_sgd": "discrete_sgd.intervals",
    "kdk": "kdk.epsilon",
}  # KDk's Figure 7 has a panel per defense; its horizontal axis is this knob
PRINTED_DEFENSES = {"none": "", "marvell": "marvell", "label_dp": "label_dp"}
Points = Iterable[tuple[float, float]]  # (x, y)


def draw(sweep: StoredSweep, reproduces: Reproduces) -> Figure:
    """Returns the paper's figure that the sweep reproduces.

    Args:
      sweep: a finished sweep.
      reproduces: of its config; its ``table`` is a key of ``FIGURES``.

    Raises:
      UserError: if the sweep lacks what the figure shows.
    """
    with mpl.rc_context(STYLE):
        figure = FIGURES[reproduces.table](sweep, reproduces)
        figure.tight_layout()
    return figure


def extend(sweep: StoredSweep, experiment: Config) -> tables.Extra:
    """Returns what ``our_figures.extend`` adds to a sweep's report, and the paper's figure if there is one.

    Args:
      sweep: a finished sweep.
      experiment: the sweep's.

    Raises:
      UserError: if the config names a table that no paper has.
    """
    extra, reproduces = our_figures.extend(sweep, experiment), experiment.reproduces
    if reproduces is None or reproduces.table not in FIGURES:
        return extra
    return extra._replace(draw=functools.partial(draw, sweep, reproduces))


def _panels(
    count: int, width: float, height: float, columns: int = 8, shared: bool = True
) -> tuple[Figure, list[Axes]]:
    """Returns a figure and its ``count`` panels, at least one; ``shared`` panels have one vertical axis."""
    wide = min(columns, max(1, count))
    high = max(1, -(-count // wide))
    figure = Figure(figsize=(width * wide, height * high))
    axes = figure.subplots(high, wide, sharey=shared, squeeze=False)
    for ax in axes.ravel()[max(1, count) :]:
        ax.axis("off")
    return figure, list(axes.ravel())


def _line(ax: Axes, x: Sequence[float], values: Sequence[Limits], label: str, number: int) -> None:
    """Draws means with intervals, in the color and with the marker that have this number."""
    mean = np.array([float(v.mean) for v in values])
    half = np.nan_to_num([float(v.upper - v.mean) for v in values])
    color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
    ax.errorbar(x, mean, half, marker=marker, ms=4, capsize=2, lw=1.2, color=color, label=label)


def _printed(ax: Axes, points: Points, number: int) -> None:
    if pairs := list(points):
        color = COLORS[number % len(COLORS)]
        ax.plot(*zip(*pairs), "D", ms=7, mfc="none", color=color, ls="", label="printed")


def _attack_line(
    ax: Axes, x: Sequence[float], found: SeedFigures, of: pd.Index, attack: str, number: int
) -> None:
    """Draws the attack's success on the configurations ``of`` that it ran on."""
    successes = [found.attack(c, attack, ATTACKS[attack], "success") for c in of]
    pairs = [(at, success) for at, success in zip(x, successes, strict=True) if success.count]
    if pairs:
        _line(ax, [at for at, _ in pairs], [v for _, v in pairs], f"{attack} attack", number)


def _kdk_numbers(dataset: str, k: int, **fields: str) -> list[tuple[float, float]]:
    """Returns (epsilon, value) of KDk's own printed rows with these fields."""
    return [
        (float(n.setting["epsilon"]), n.value)
        for n in papers.numbers()
        if papers.paper_of(n.table) == "kdk" and n.defense == "kdk"
        if n.dataset == dataset and n.setting.get("k") == k
        if all(getattr(n, name) == value for name, value in fields.items())
    ]


def _kdk_figure6(sweep: StoredSweep, reproduces: Reproduces) -> Figure:
    """Draws KDk's Figure 6: accuracy, and the passive attack's top-1 success on training rows, over epsilon.
    There is a panel per k; undefended is at epsilon 0."""
    found = seed_figures(sweep)
    points = found.points
    undefended = points[points["defenses"] == ""]
    with_kdk = points[points["defenses"].str.split("+").map(lambda chain: "kdk" in chain)]
    by_k = list(with_kdk.groupby(with_kdk["kdk.k"].astype(int))) if len(with_kdk) else []
    figure, axes = _panels(len(by_k), 3.6, 3.4)
    for ax, (k, members) in zip(axes, by_k, strict=False):
        drawn = pd.concat([undefended, members.sort_values("kdk.epsilon", kind="stable")])
        x = drawn["kdk.epsilon"].fillna(0.0).tolist()
        _line(ax, x, [found.utility(c, "accuracy") for c in drawn.index], "accuracy", 0)
        _attack_line(ax, x, found, drawn.index, "passive", 1)
        _printed(ax, _kdk_numbers(reproduces.dataset, k, **SUCCESS, attack="passive"), 1)
        _printed(ax, _kdk_numbers(reproduces.dataset, k, metric="top1_accuracy"), 0)
        ax.set(title=f"k = {k}", xlabel="ε", ylim=(0, 1.03))
    _legend(axes, "accuracy, attack success (top-1)")
    return figure


def _legend(axes: Sequence[Axes], title: str) -> None:
    axes[0].set_ylabel(title)
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def _kdk_figure7(sweep: StoredSweep, reproduces: Reproduces) -> Figure:
    """Draws KDk's Figure 7: accuracy and the passive and active attacks' success over each defense's
    operating points. There is a panel per defense; dotted lines are the undefended figures."""
    found = seed_figures(sweep)
    points = found.points
    undefended = points.index[points["defenses"] == ""][:1]
    panels = {name: points[points["defenses"] == name] for name in OPERATING_POINTS}
    panels = {name: members for name, members in panels.items() if len(members)}
    figure, axes = _panels(len(panels), 2.9, 3.4)
    for ax, (name, members) in zip(axes, panels.items(), strict=False):
        knob = OPERATING_POINTS[name]
        members = members.sort_values(knob, kind="stable")
        x = members[knob].astype(float).tolist()
        _line(ax, x, [found.utility(c, "accuracy") for c in members.index], "accuracy", 0)
        for c in undefended:
            mean = float(found.utility(c, "accuracy").mean)
            ax.axhline(mean, color=COLORS[0], lw=0.8, ls=":")
        for number, (attack, federation) in enumerate(ATTACKS.items(), 1):
            _attack_line(ax, x, found, members.index, attack, number)
            for c in undefended:
                before = found.attack(c, attack, federation, "success")
                if before.count:
                    ax.axhline(float(before.mean), color=COLORS[number], lw=0.8, ls=":")
            if name == "kdk":
                printed = _kdk_numbers(reproduces.dataset, 3, **SUCCESS, attack=attack)
                _printed(ax, printed, number)
        if min(x) > 0 and max(x) / min(x) > 20:
            ax.set_xscale("log")
            ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set(title=name, xlabel=knob.split(".")[1], ylim=(0, 1.03))
    _legend(axes, "accuracy, attack success (top-1)")
    return figure


def _gafm_figure3(sweep: StoredSweep, reproduces: Reproduces) -> Figure:
    """Draws GAFM's Figure 3: test AUC and leak AUC of the gradient attacks under GAFM, its GAN loss alone and
    its cross entropy alone. Bars are means over seeds, and each dot is a seed."""
    found = seed_figures(sweep)
    split = found.trials[(found.trials["kind"] == SPLIT) & found.trials["auc"].notna()]
    every = found.points.loc[found.points.index.isin(split["configuration"])]
    labels = {name: reproduces.attacks.get(name, name) for name in GRADIENT_ATTACKS}
    figure = Figure(figsize=(7.2, 3.6))
    ax = figure.subplots()
    width = 0.8 / max(1, len(every))
    for number, (c, name) in enumerate(every["label"].items()):
        trials = split[split["configuration"] == c]
        groups = [trials["auc"].tolist()]
        for label in labels.values():
            attacked = found.attacks[found.attacks["label"] == label]
            attacked = attacked[attacked["trial"].isin(trials["trial"])] if len(attacked) else []
            groups.append(attacked["leak"].tolist() if len(attacked) else [])
        x = np.arange(len(groups)) + (number - (len(every) - 1) / 2) * width
        means = [float(np.mean(group)) if group else np.nan for group in groups]
        color = COLORS[number % len(COLORS)]
        ax.bar(x, means, width * 0.9, color=color, alpha=0.5, label=name)
        for at, group in zip(x, groups, strict=True):
            ax.plot([at] * len(group), group, ".", ms=3, color=color)
    ax.axhline(0.5, color="gray", lw=0.8, ls=":")
    ax.set_xticks(range(len(labels) + 1), ["test AUC", *(f"{name} attack" for name in labels)])
    ax.set(ylim=(0.4, 1.03), title=reproduces.dataset)
    _legend([ax], "AUC, leak AUC")
    return figure


def _gafm_figure2(sweep: StoredSweep, reproduces: Reproduces) -> Figure:
    """Draws GAFM's Figure 2: the gradients that a party received over the embeddings that it sent, undefended,
    with GAFM, and for GAFM's two losses, each in the first such trial. Class 1 is orange. Cuts are summed."""
    del reproduces
    found = seed_figures(sweep)
    trials = found.trials[~found.trials["diverged"]]
    chains = trials["configuration"].map(found.points["defenses"])
    panels: list[tuple[str, HostArray, HostArray, HostArray]] = []
    for undefended in trials.loc[chains == "", "trial"][:1].tolist():
        stored, splits = sweep.trial(undefended), sweep.splits()
        exchange = stored.exchange()
        sent = np.asarray(exchange["sent"][-1])
        labels = splits["labels"][splits["train"][stored.row["seed"]]][sent]
        f, g = (exchange[f"party0_{name}"][-1][sent] for name in ("embeddings", "gradients"))
        panels.append(("undefended", f, g, labels))
    for gafm in trials.loc[chains == "gafm", "trial"][:1].tolist():
        p = gafm_gradients.parts(sweep, gafm)
        of_parts = {"GAFM": p.gan + p.ce, "its GAN loss": p.gan, "its cross entropy": p.ce}
        panels += [(title, p.f, g, p.labels) for title, g in of_parts.items()]
    figure, axes = _panels(len(panels), 3, 3, shared=False)
    for ax, (title, f, g, labels) in zip(axes, panels, strict=False):
        x, y = np.asarray(f).sum(axis=1), np.asarray(g).sum(axis=1)
        for label in (0, 1):
            rows = labels == label
            ax.plot(x[rows], y[rows], ".", ms=2, alpha=0.5, color=COLORS[label])
            ax.axhline(float(y[rows].mean()), color=COLORS[label], lw=1)
        ax.set(title=title, xlabel="f, what the party sent")
    axes[0].set_ylabel("gradient it received")
    return figure


def _layers(attacks: pd.DataFrame, passive: bool) -> list[tuple[str, Limits]]:
    """Returns (layer, leak of the spectral attack on it) from the input on; if ``passive``, without the top."""
    layers = attacks["signal"].where(attacks["attack"] == "spectral", "")
    members = layers.str.contains(".", regex=False) & layers.str.startswith("party" * passive)
    by_layer = attacks[members].groupby("signal")["leak"]
    found = [(str(layer), over_seeds(of)) for layer, of in by_layer]
    return sorted(found, key=lambda pair: _depth(pair[0]))


def _depth(layer: str) -> tuple[bool, bool, int]:
    """Sorts passive parties before the label party's top, and hidden layers by number before the output."""
    number = layer.rpartition(".")[2]
    hidden = number.isdecimal()
    return layer.startswith("top."), not hidden, int(number) if hidden else 0


def _sun_layers(sweep: StoredSweep, reproduces: Reproduces, passive: bool = True) -> Figure:
    """Draws Figures 2, 4 and 7 of Sun et al.: leaks by layer, with a panel per configuration. The label
    party's layers, which no attacker sees, are shaded."""
    found = seed_figures(sweep)
    of_point = found.attacks["configuration"]
    panels = [(c, _layers(found.attacks[of_point == c], passive)) for c in found.points.index]
    if not panels or not all(layers for _, layers in panels):
        raise UserError(
            "the sweep has no spectral attack on a layer: give config.attacks.spectral.signal layers such "
            "as 'party0.cut'."
        )
    # the text prints one number for the passive party's last two layers, the fourth and the cut
    printed = {
        PRINTED_DEFENSES[n.defense]: ((4.0, n.value), (5.0, n.value))
        for n in papers.numbers_of("sun/text", reproduces.dataset)
        if "layers" in n.setting and reproduces.table == "sun/figure2"
    }
    figure, axes = _panels(len(panels), 3.1, 2.7, columns=4)
    for ax, (c, layers) in zip(axes, panels, strict=False):
        x = range(1, len(layers) + 1)
        _line(ax, x, [leak for _, leak in layers], "leak AUC", 0)
        top = [at for at, (layer, _) in zip(x, layers, strict=True) if layer.startswith("top.")]
        if top:
            ax.axvspan(top[0] - 0.5, top[-1] + 0.5, color="gray", alpha=0.12, lw=0)
        auc = found.utility(c, "auc")
        if auc.count:
            ax.axhline(float(auc.mean), color="black", lw=0.9, ls="--", label="test AUC")
        ax.axhline(0.5, color="gray", lw=0.8, ls=":")
        point = found.points.loc[c]
        _printed(ax, printed.get(point["defenses"], ()), 1)
        ax.set(title=point["label"], xlabel="layer", xticks=x, ylim=(0.45, 1.02))
    axes[0].set_ylabel("spectral attack, leak AUC")
    axes[0].legend(loc="upper left", fontsize=7)
    return figure


def _sun_alphas(sweep: StoredSweep, reproduces: Reproduces) -> Figure:
    """Draws Figure 5 of Sun et al.: leak of the spectral attack and test AUC over dCor's weight, which is 0
    without dCor. There are two panels per set of other defenses."""
    found = seed_figures(sweep)
    alphas = found.points.reindex(columns=["dcor.alpha"])["dcor.alpha"].astype(float).fillna(0.0)
    series: dict[str, list[tuple[float, int]]] = {}
    for c, chain in found.points["defenses"].items():
        others = "+".join(name for name in chain.split("+") if name != "dcor")
        series.setdefault(others, []).append((float(alphas[c]), c))
    series = {others: s for others, s in series.items() if any(alpha > 0 for alpha, _ in s)}
    if not series:
        raise UserError(
            "the sweep has no method with dcor: give config.grid one with several alpha."
        )
    # numbers by alpha_d that the text and Table 1 (the large model) print
    text, table = (papers.numbers_of(name, reproduces.dataset) for name in ("sun/text", "sun/1"))
    large = [n for n in table if n.setting["label_party_model"] == "large"]
    printed = {
        "leak AUC": [(n.setting["alpha_d"], n.value) for n in text if "alpha_d" in n.setting],
        "test AUC": [(n.setting["alpha_d"], n.value) for n in large],
    }
    figure, axes = _panels(2 * len(series), 3.1, 2.8)
    for number, (others, pairs) in enumerate(series.items()):
        x = sorted(alpha for alpha, _ in pairs)
        members = [c for _, c in sorted(pairs, key=lambda pair: pair[0])]
        leaks = [found.attack(c, SPECTRAL, SPLIT, "leak") for c in members]
        if not all(leak.count for leak in leaks):
            raise UserError(
                f"the sweep has no attack {SPECTRAL!r} on every configuration: run `vfljax attack`."
            )
        values = {"leak AUC": leaks, "test AUC": [found.utility(c, "auc") for c in members]}
        for place, (name, intervals) in enumerate(values.items()):
            ax = axes[2 * number + place]
            _line(ax, x, intervals, "ours", place)
            _printed(ax, () if others else printed[name], place)
            ax.axhline(0.5, color="gray", lw=0.8, ls=":")
            ax.set_xscale("symlog", linthresh=1e-3)
            ax.set_xticks(x, [f"{alpha:g}" for alpha in x], rotation=60, fontsize=7)
            ax.minorticks_off()
            title = f"{name}, {others}" if others else name
            ax.set(title=title, xlabel="$\\alpha_d$", ylim=(0.45, 1.02))
            ax.tick_params(labelleft=True)
    axes[0].legend(loc="lower left", fontsize=7)
    return figure


FIGURES: dict[str, Callable[[StoredSweep, Reproduces], Figure]] = {
    "kdk/figure6": _kdk_figure6,
    "kdk/figure7": _kdk_figure7,
    "gafm/figure2": _gafm_figure2,
    "gafm/figure3": _gafm_figure3,
    "gafm/text": _gafm_figure3,  # the text prints numbers of the same runs
    "sun/figure2": _sun_layers,
    "sun/figure4": _sun_layers,
    "sun/figure5": _sun_alphas,
    "sun/figure7": functools.partial(_sun_layers, passive=False),
}
