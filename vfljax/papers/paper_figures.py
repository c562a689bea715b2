"""The papers' figures in their form, from a stored sweep; what a paper prints as a number stands in them.

What enters: a stored sweep whose config names a figure (``config.reproduces``). What leaves: a Matplotlib
figure, by ``draw``. Means over seeds with 95 % intervals; printed numbers are open diamonds, and are those
of the paper's data and training, whatever the sweep is a run of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from vfljax import papers
from vfljax.papers import gafm_gradients
from vfljax.papers import paper_figures_sun as sun
from vfljax.report.configurations import ConfigurationSummary, stored_configurations
from vfljax.report.figures import COLORS, MARKERS, STYLE, plt
from vfljax.report.intervals import Interval
from vfljax.store import Sweep
from vfljax.sweep.records import Reproduces
from vfljax.types import MALICIOUS, SPLIT, HostArray

ATTACKS = {"passive": SPLIT, "active": MALICIOUS}  # attack -> federation
GRADIENT_ATTACKS = ("norm", "mean", "median")
STRENGTHS = {
    "noise": "noise.scale",
    "compression": "compression.keep_rate",
    "ppdl": "ppdl.theta",
    "discrete_sgd": "discrete_sgd.intervals",
    "kdk": "kdk.epsilon",
}  # KDk's Figure 7: a panel a defense, and its axis


def draw(sweep: Sweep, reproduces: Reproduces) -> Figure | None:
    """The figure that the sweep is a run of; None for a table."""
    one = FIGURES.get(reproduces.table)
    return one(sweep, reproduces) if one else None


def _line(
    ax: Axes, x: Sequence[float], values: Sequence[Interval], label: str, number: int
) -> None:
    mean = np.array([v.mean for v in values])
    half = np.nan_to_num([v.half for v in values])
    color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
    ax.errorbar(x, mean, half, marker=marker, ms=4, capsize=2, lw=1.2, color=color, label=label)


def _printed(ax: Axes, pairs: Iterable[tuple[float, float]], number: int) -> None:
    pairs = list(pairs)
    if pairs:
        x, y = zip(*pairs, strict=True)
        color = COLORS[number % len(COLORS)]
        ax.plot(x, y, "D", ms=7, mfc="none", color=color, ls="", label="printed")


def _attack_line(
    ax: Axes, x: Sequence[float], points: Sequence[ConfigurationSummary], attack: str, number: int
) -> None:
    """The attack's success at the points where it ran."""
    reached = [p.figures_of(attack, ATTACKS[attack]) for p in points]
    attacked = [(at, v["success"]) for at, v in zip(x, reached, strict=True) if v is not None]
    if attacked:
        at, values = [a for a, _ in attacked], [v for _, v in attacked]
        _line(ax, at, values, f"{attack} attack", number)


def _kdk_numbers(
    dataset: str, metric: str, attack: str, split: str, k: int
) -> list[tuple[float, float]]:
    """(epsilon, value) of KDk's own printed rows."""
    return [
        (float(n.setting["epsilon"]), n.value)
        for n in papers.numbers()
        if n.table.startswith("kdk/")
        and (n.dataset, n.metric, n.attack, n.split) == (dataset, metric, attack, split)
        and n.defense == "kdk"
        and n.setting.get("k") == k
    ]


def kdk_figure6(sweep: Sweep, reproduces: Reproduces) -> Figure:
    """KDk's Figure 6: accuracy, and the passive attack's top-1 success on training rows, over epsilon;
    a panel a k, undefended at epsilon 0."""
    points = stored_configurations(sweep)
    plain = [p for p in points if not p.defended]
    by_k: dict[int, list[ConfigurationSummary]] = {}
    for point in points:
        if "kdk" in point.defenses:
            by_k.setdefault(int(point.knobs["kdk.k"]), []).append(point)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, max(1, len(by_k)), figsize=(3.6 * max(1, len(by_k)), 3.4), sharey=True, squeeze=False
        )
        for ax, (k, members) in zip(axes[0], sorted(by_k.items()), strict=False):
            drawn = [*plain, *sorted(members, key=lambda p: p.knobs["kdk.epsilon"])]
            x = [p.knobs.get("kdk.epsilon", 0.0) for p in drawn]
            _line(ax, x, [p.accuracy[SPLIT] for p in drawn], "accuracy", 0)
            _attack_line(ax, x, drawn, "passive", 1)
            dataset = reproduces.dataset
            _printed(ax, _kdk_numbers(dataset, "asr_top1", "passive", "train", k), 1)
            _printed(ax, _kdk_numbers(dataset, "top1_accuracy", "", "", k), 0)
            ax.set(title=f"k = {k}", xlabel="ε", ylim=(0, 1.03))
        axes[0][0].set_ylabel("accuracy, attack success (top-1)")
        axes[0][-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        figure.tight_layout()
    return figure


def kdk_figure7(sweep: Sweep, reproduces: Reproduces) -> Figure:
    """KDk's Figure 7: accuracy and the passive and active attacks' success over each defense's strength; a
    panel a defense, the undefended figures as lines."""
    points = stored_configurations(sweep)
    plain = next((p for p in points if not p.defended), None)
    panels = {
        name: sorted(
            (p for p in points if p.defenses == (name,)), key=lambda p, c=column: p.knobs[c]
        )
        for name, column in STRENGTHS.items()
    }
    panels = {name: members for name, members in panels.items() if members}
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1,
            max(1, len(panels)),
            figsize=(2.9 * max(1, len(panels)), 3.4),
            sharey=True,
            squeeze=False,
        )
        for ax, (name, members) in zip(axes[0], panels.items(), strict=False):
            x = [float(p.knobs[STRENGTHS[name]]) for p in members]
            _line(ax, x, [p.accuracy[SPLIT] for p in members], "accuracy", 0)
            for number, attack in enumerate(ATTACKS, 1):
                _attack_line(ax, x, members, attack, number)
                before = plain.figures_of(attack, ATTACKS[attack]) if plain else None
                if before:
                    ax.axhline(before["success"].mean, color=COLORS[number], lw=0.8, ls=":")
                if name == "kdk":
                    numbers = _kdk_numbers(reproduces.dataset, "asr_top1", attack, "train", 3)
                    _printed(ax, numbers, number)
            if plain:
                ax.axhline(plain.accuracy[SPLIT].mean, color=COLORS[0], lw=0.8, ls=":")
            if min(x) > 0 and max(x) / min(x) > 20:
                ax.set_xscale("log")
                ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set(title=name, xlabel=STRENGTHS[name].split(".")[1], ylim=(0, 1.03))
        axes[0][0].set_ylabel("accuracy, attack success (top-1)")
        axes[0][-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        figure.tight_layout()
    return figure


def gafm_figure3(sweep: Sweep, reproduces: Reproduces) -> Figure:
    """GAFM's Figure 3: test AUC and the gradient attacks' leak AUC of GAFM, of its GAN loss alone and of
    its cross entropy alone; bars, one a seed as dots."""
    points = [p for p in stored_configurations(sweep) if SPLIT in p.auc]
    results = [
        row
        for row in sweep.results.to_pylist()
        if row["status"] == "ok" and row["federation"] == SPLIT
    ]
    attacks = sweep.attacks.to_pylist()
    labels = {name: reproduces.attacks.get(name, name) for name in GRADIENT_ATTACKS}
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7.2, 3.6))
        width = 0.8 / max(1, len(points))
        for number, point in enumerate(points):
            ids = {row["setting"] for row in results if row["point"] == point.number}
            groups = [[r["test_oriented_auc"] for r in results if r["setting"] in ids]]
            groups += [
                [a["leak"] for a in attacks if a["setting"] in ids and a["label"] == label]
                for label in labels.values()
            ]
            x = np.arange(len(groups)) + (number - (len(points) - 1) / 2) * width
            means = [float(np.mean(group)) if group else np.nan for group in groups]
            color = COLORS[number % len(COLORS)]
            ax.bar(x, means, width * 0.9, color=color, alpha=0.5, label=point.label)
            for at, group in zip(x, groups, strict=True):
                ax.plot([at] * len(group), group, ".", ms=3, color=color)
        ax.axhline(0.5, color="gray", lw=0.8, ls=":")
        ax.set_xticks(range(len(labels) + 1), ["test AUC", *(f"{name} attack" for name in labels)])
        ax.set(ylabel="AUC, leak AUC", ylim=(0.4, 1.03), title=reproduces.dataset)
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        figure.tight_layout()
    return figure


def gafm_figure2(sweep: Sweep, reproduces: Reproduces) -> Figure:
    """GAFM's Figure 2: what a party receives over what it sent, of the first seed undefended and with GAFM,
    and GAFM's two parts, the gradients of the GAN loss and of the cross entropy. Class 1 is orange. Of a
    cut of several numbers, their sums."""
    del reproduces
    rows = [row for row in sweep.results.to_pylist() if row["status"] == "ok"]
    first = {
        chain: next((r["setting"] for r in rows if r["defenses"] == chain), None)
        for chain in ("", "gafm")
    }
    panels: list[tuple[str, HostArray, HostArray, HostArray]] = []
    if first[""] is not None:
        exchange = sweep.setting(first[""]).exchange()
        sent = np.asarray(exchange["sent"][-1])
        splits = sweep.splits()
        train = splits["train"][sweep.setting(first[""]).row["seed"]]
        f, g = (exchange[f"party0_{name}"][-1][sent] for name in ("embeddings", "gradients"))
        panels.append(("undefended", f, g, splits["labels"][train][sent]))
    if first["gafm"] is not None:
        parts = gafm_gradients.parts(sweep, first["gafm"])
        for title, g in (
            ("GAFM", parts.gan + parts.ce),
            ("its GAN loss", parts.gan),
            ("its cross entropy", parts.ce),
        ):
            panels.append((title, parts.f, g, parts.labels))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, max(1, len(panels)), figsize=(3 * max(1, len(panels)), 3), squeeze=False
        )
        for ax, (title, f, g, labels) in zip(axes[0], panels, strict=False):
            x, y = np.asarray(f).sum(axis=1), np.asarray(g).sum(axis=1)
            for label in (0, 1):
                mine = labels == label
                ax.plot(x[mine], y[mine], ".", ms=2, alpha=0.5, color=COLORS[label])
                ax.axhline(float(y[mine].mean()), color=COLORS[label], lw=1)
            ax.set(title=title, xlabel="f, what the party sent")
        axes[0][0].set_ylabel("gradient it received")
        figure.tight_layout()
    return figure


def _sun_layers(reproduces: Reproduces) -> dict[str, list[tuple[float, float]]]:
    """Panel -> what the text says of the last two layers of the passive party, the fourth and the cut."""
    panels = {
        "none": "undefended",
        "marvell": "marvell power=8",
        "label_dp": "label_dp epsilon=0.5",
    }
    return {
        panels[n.defense]: [(4.0, n.value), (5.0, n.value)]
        for n in papers.numbers_of("sun/text", reproduces.dataset)
        if "layers" in n.setting
    }


def _sun_alphas(reproduces: Reproduces) -> dict[str, list[tuple[float, float]]]:
    """What the text and Table 1 (the large model) print over alpha_d."""
    text = papers.numbers_of("sun/text", reproduces.dataset)
    table = papers.numbers_of("sun/1", reproduces.dataset)
    return {
        "leak AUC": [(n.setting["alpha_d"], n.value) for n in text if "alpha_d" in n.setting],
        "test AUC": [
            (n.setting["alpha_d"], n.value)
            for n in table
            if n.setting["label_party_model"] == "large"
        ],
    }


FIGURES: dict[str, Callable[[Sweep, Reproduces], Figure]] = {
    "kdk/figure6": kdk_figure6,
    "kdk/figure7": kdk_figure7,
    "gafm/figure2": gafm_figure2,
    "gafm/figure3": gafm_figure3,
    "gafm/text": gafm_figure3,  # what the text says of the same runs
    "sun/figure2": lambda sweep, of: sun.figure2(sweep, _sun_layers(of)),
    "sun/figure4": lambda sweep, of: sun.figure4(sweep),
    "sun/figure5": lambda sweep, of: sun.figure5(sweep, _sun_alphas(of)),
    "sun/figure7": lambda sweep, of: sun.figure7(sweep),
}
