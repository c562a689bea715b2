"""What the papers claim, and what our runs say for it and against it.

What enters: stored comparisons and leaks (``Evidence``). What leaves: lines of Markdown. The wording of a
claim and what would count for or against it are written here; every figure comes from a stored run. A
difference between two settings is paired by seed, with its 95 % t-interval over seeds.
"""

from __future__ import annotations

import csv
import math
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from vfljax.papers import PAPERS
from vfljax.papers import claims_of_means as means
from vfljax.papers.reproduction import Compared

HEAD = """Each claim is in the paper's sense and our words. Where a paper prints numbers, **for**, **against**
and **open** say where a paired difference over seeds and its 95 % interval lie. Where it prints none, lines
name the sweep that they are of, and means over seeds are held against a threshold of ours, without an
interval: with two or three seeds this is a hint. Runs that are reduced or of a sample are named as such, bear
on the order of methods only, and prove nothing about the published setting."""

FOR, AGAINST, OPEN = "for", "against", "open"
SIMILAR = 0.05  # of AUC: what "similar utility" may cost


class Evidence(NamedTuple):
    """What is stored of all runs."""

    compared: Sequence[Compared]
    leaks: Mapping[str, list[dict[str, str]]]  # a sweep's name -> rows of ``reproduction.leaks``

    def pick(self, **fields: str) -> list[Compared]:
        """The comparisons without a variant whose number (or own field) has these values."""
        beside = set(Compared._fields)
        return [
            one
            for one in self.compared
            if not one.variant
            and all(
                str(getattr(one if f in beside else one.number, f)) == v for f, v in fields.items()
            )
        ]


class Line(NamedTuple):
    """One piece of evidence."""

    says: str
    text: str


class Claim(NamedTuple):
    """What a paper says, and what weighs it."""

    paper: str
    text: str
    weigh: Callable[[Evidence], Iterable[Line]]


def read_leaks(path: pathlib.Path) -> list[dict[str, str]]:
    """The rows of a sweep's stored leaks."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def text(evidence: Evidence) -> list[str]:
    """Every claim with its evidence, as Markdown."""
    lines: list[str] = []
    for paper, title in PAPERS.items():
        lines += [f"### {title}", ""]
        for claim in CLAIMS:
            if claim.paper == paper:
                weighed = list(claim.weigh(evidence))
                lines += [f"*{claim.text}*", ""]
                lines += [f"- **{line.says}**: {line.text}" for line in weighed] or ["- not run."]
                lines.append("")
    return lines


def difference(a: ArrayLike, b: ArrayLike) -> tuple[float, float, float]:
    """(mean, lower, upper) of a - b, paired by seed; NaN limits of one seed."""
    d = np.subtract(a, b)
    if len(d) < 2:
        return float(d.mean()), math.nan, math.nan
    half = float(stats.t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / math.sqrt(len(d)))
    return float(d.mean()), float(d.mean()) - half, float(d.mean()) + half


def _below(values: tuple[float, float, float], limit: float) -> str:
    _, low, high = values
    return OPEN if math.isnan(low) or low <= limit <= high else FOR if high < limit else AGAINST


def _words(values: tuple[float, float, float]) -> str:
    mean, low, high = values
    return f"{mean:+.3f}" + ("" if math.isnan(low) else f" ({low:+.3f} to {high:+.3f})")


def _where(one: Compared) -> str:
    scale = "" if one.scale == "full" else f", {one.scale}"
    return f"{one.number.table}, {one.number.dataset}{scale}"


def _pairs(
    evidence: Evidence, treated: str, plain: str, **fields: str
) -> list[tuple[Compared, ...]]:
    """(treated, plain) of the same table, data set, attack, split and scale, seeds paired."""
    out = []
    for one in evidence.pick(defense=treated, **fields):
        for other in evidence.pick(defense=plain, **fields):
            same = all(
                getattr(one.number, f) == getattr(other.number, f)
                for f in ("table", "dataset", "attack", "split", "metric")
            )
            if same and one.scale == other.scale and len(one.ours) == len(other.ours):
                out.append((one, other))
    return out


def _less(
    treated: str, plain: str, share: float = 1.0, **fields: str
) -> Callable[[Evidence], list[Line]]:
    """Weighs "``treated`` has less than ``share`` of the figure that ``plain`` has"."""

    def weigh(evidence: Evidence) -> list[Line]:
        lines = []
        for one, other in _pairs(evidence, treated, plain, **fields):
            by = difference(one.ours, share * np.asarray(other.ours))
            against = f"{share:g} times " if share != 1 else ""
            lines.append(
                Line(
                    _below(by, 0.0),
                    f"{_where(one)}, {one.number.figure}: {np.mean(one.ours):.3f} against {against}"
                    f"{np.mean(other.ours):.3f}, {_words(by)}.",
                )
            )
        return lines

    return weigh


def _similar(
    treated: str, plain: str, limit: float, **fields: str
) -> Callable[[Evidence], list[Line]]:
    """Weighs "the utility of ``treated`` is that of ``plain``": a loss of at most ``limit``."""

    def weigh(evidence: Evidence) -> list[Line]:
        lines = []
        for one, other in _pairs(evidence, treated, plain, **fields):
            lost = difference(other.ours, one.ours)
            lines.append(
                Line(
                    _below(lost, limit),
                    f"{_where(one)}, {one.number.figure}: {np.mean(one.ours):.3f} against "
                    f"{np.mean(other.ours):.3f}, {_words(lost)} lost.",
                )
            )
        return lines

    return weigh


def _steadier(a: str, b: str) -> Callable[[Evidence], list[Line]]:
    """Weighs "the AUC of ``a`` varies less over runs than that of ``b``" by an F-test of the variances."""

    def weigh(evidence: Evidence) -> list[Line]:
        lines = []
        for one, other in _pairs(evidence, a, b, metric="auc", split="test"):
            count = len(one.ours)
            if count < 3:
                continue
            spreads = [float(np.std(x.ours, ddof=1)) for x in (one, other)]
            ratio = (spreads[0] / spreads[1]) ** 2 if spreads[1] else math.inf
            limits = stats.f.ppf([0.025, 0.975], count - 1, count - 1)
            says = FOR if ratio < limits[0] else AGAINST if ratio > limits[1] else OPEN
            lines.append(
                Line(
                    says,
                    f"{_where(one)}: test AUC deviates by {spreads[0]:.3f} over {count} seeds, and by "
                    f"{spreads[1]:.3f} with {b}.",
                )
            )
        return lines

    return weigh


def _more_active(evidence: Evidence) -> list[Line]:
    """Weighs "the active attack succeeds more often than the passive one", undefended."""
    lines = []
    for one in evidence.pick(defense="none", attack="active"):
        for other in evidence.pick(defense="none", attack="passive"):
            same = all(
                getattr(one.number, f) == getattr(other.number, f)
                for f in ("table", "dataset", "split", "metric")
            )
            if same and one.scale == other.scale and len(one.ours) == len(other.ours):
                by = difference(other.ours, one.ours)
                lines.append(
                    Line(
                        _below(by, 0.0),
                        f"{_where(one)}, {one.number.metric} {one.number.split}: active "
                        f"{np.mean(one.ours):.3f}, passive {np.mean(other.ours):.3f}, passive less active "
                        f"{_words(by)}.",
                    )
                )
    return lines


def _larger_loses_less(evidence: Evidence) -> list[Line]:
    """Weighs "with dCor a larger model of the label party loses less AUC" (Sun et al., appendix B)."""
    lines = []
    size = "label_party_model"
    for one in evidence.pick(table="sun/1"):
        for other in evidence.pick(table="sun/1"):
            a, b = one.number.setting, other.number.setting
            pair = (a.get(size), b.get(size)) == ("large", "small")
            if pair and a["alpha_d"] == b["alpha_d"] and one.scale == other.scale:
                by = difference(other.ours, one.ours)
                lines.append(
                    Line(
                        _below(by, 0.0),
                        f"{_where(one)}, alpha_d {a['alpha_d']:g}: test AUC {np.mean(one.ours):.3f} with three "
                        f"layers, {np.mean(other.ours):.3f} with one, one less three {_words(by)}.",
                    )
                )
    return lines


def _of_leaks(
    weigh: Callable[[Mapping[str, list[dict[str, str]]]], Iterable[tuple[str, str]]],
) -> Callable[[Evidence], list[Line]]:
    """A claim that is weighed by stored means (``claims_of_means``)."""
    return lambda evidence: [Line(*line) for line in weigh(evidence.leaks)]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "kdk",
        "The published attacks' success falls by more than 60 %.",
        _less("kdk", "none", share=0.4, metric="asr_top1"),
    ),
    Claim(
        "kdk",
        "The accuracy falls by less than 4 points.",
        _similar("kdk", "none", 0.04, metric="top1_accuracy"),
    ),
    Claim("kdk", "k does not matter much.", _of_leaks(means.k_matters_little)),
    Claim("kdk", "k = C is ineffective.", _of_leaks(means.k_of_all_classes)),
    Claim(
        "kdk",
        "Not claimed: what attackers who know the defense read, and what staying away reads.",
        _of_leaks(means.worst_cases("kdk_")),
    ),
    Claim("fu", "The active attack beats the passive one.", _more_active),
    Claim(
        "fu",
        "Noisy gradients, compression, PPDL and DiscreteSGD fail: where they keep the accuracy (here: at most "
        "4 points lost), the attack keeps most of its success (here: half).",
        _of_leaks(means.defenses_fail),
    ),
    Claim(
        "fu",
        "Not claimed: what attackers who use all they have read, and what staying away reads.",
        _of_leaks(means.worst_cases("fu_")),
    ),
    Claim(
        "gafm",
        "Attacks on gradients leak less with GAFM than undefended.",
        _less("gafm", "none", metric="leak_auc"),
    ),
    Claim(
        "gafm",
        "They leak less with GAFM than with MaxNorm.",
        _less("gafm", "max_norm", metric="leak_auc"),
    ),
    Claim(
        "gafm",
        f"At a similar AUC (here: at most {SIMILAR} lost).",
        _similar("gafm", "none", SIMILAR, metric="auc"),
    ),
    Claim("gafm", "GAFM's utility is more stable than Marvell's.", _steadier("gafm", "marvell")),
    Claim(
        "gafm",
        "The GAN loss alone has no utility, the cross entropy alone leaks.",
        _of_leaks(means.both_losses),
    ),
    Claim(
        "gafm",
        "Not claimed: what attackers who know the defense read, and what staying away reads (Table 2, with "
        "`--attacks=residual,probe,spectral`).",
        _of_leaks(means.worst_cases("gafm_2_")),
    ),
    Claim(
        "sun",
        "With alpha_d from .002 to .005 the spectral attack's leak AUC is near .5 (here: at most .55).",
        _of_leaks(means.dcor_hides),
    ),
    Claim(
        "sun",
        "... with the test AUC unchanged (here: at most .01 lost).",
        _of_leaks(means.dcor_costs_nothing),
    ),
    Claim(
        "sun",
        "Marvell and label DP do not stop the spectral attack (here: it keeps most of what exceeds .5).",
        _of_leaks(means.others_do_not_stop_it),
    ),
    Claim(
        "sun",
        "The spectral attack's leak AUC is bounded by the test AUC (here: undefended, by at most .01 more).",
        _of_leaks(means.bounded_by_utility),
    ),
    Claim("sun", "A larger model of the label party loses less.", _larger_loses_less),
    Claim(
        "sun",
        "Not claimed: what attackers who know the defense read, and what staying away reads.",
        _of_leaks(means.worst_cases("sun_")),
    ),
)
