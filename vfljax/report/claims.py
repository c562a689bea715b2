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
from scipy import stats

from vfljax.papers import PAPERS
from vfljax.report.reproduction import Compared

HEAD = """Each claim is in the paper's sense and our words. **For**, **against** and **open** say where a
paired difference over seeds and its 95 % interval lie; runs that are reduced or of a sample are named as such,
bear on the order of methods only, and prove nothing about the published setting."""

FOR, AGAINST, OPEN = "for", "against", "open"
SIMILAR = 0.05  # of AUC: what "similar utility" may cost


class Evidence(NamedTuple):
    """What is stored of all runs."""

    compared: Sequence[Compared]
    leaks: Mapping[str, list[dict[str, str]]]  # a sweep's name -> rows of its ``leaks.csv``

    def pick(self, **fields: str) -> list[Compared]:
        """The comparisons without a variant whose number (or own field) has these values."""
        own = set(Compared._fields)
        return [
            one
            for one in self.compared
            if not one.variant
            and all(
                str(getattr(one if f in own else one.number, f)) == v for f, v in fields.items()
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


def difference(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
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
    treated: str, plain: str, limit: float = 0.0, **fields: str
) -> Callable[[Evidence], list[Line]]:
    """Weighs "``treated`` has less of a figure than ``plain``, by more than ``-limit``"."""

    def weigh(evidence: Evidence) -> list[Line]:
        lines = []
        for one, other in _pairs(evidence, treated, plain, **fields):
            by = difference(one.ours, other.ours)
            what = " ".join(
                w for w in (one.number.attack, one.number.metric, one.number.split) if w
            )
            lines.append(
                Line(
                    _below(by, limit),
                    f"{_where(one)}, {what}: {np.mean(one.ours):.3f} against {np.mean(other.ours):.3f}, "
                    f"{_words(by)}.",
                )
            )
        return lines

    return weigh


def _similar(treated: str, plain: str, **fields: str) -> Callable[[Evidence], list[Line]]:
    """Weighs "the utility of ``treated`` is that of ``plain``": a loss of at most ``SIMILAR``."""

    def weigh(evidence: Evidence) -> list[Line]:
        lines = []
        for one, other in _pairs(evidence, treated, plain, **fields):
            lost = difference(other.ours, one.ours)
            lines.append(
                Line(
                    _below(lost, SIMILAR),
                    f"{_where(one)}, {one.number.metric} {one.number.split}: {np.mean(one.ours):.3f} against "
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


CLAIMS: tuple[Claim, ...] = (
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
        _similar("gafm", "none", metric="auc"),
    ),
    Claim("gafm", "GAFM's utility is more stable than Marvell's.", _steadier("gafm", "marvell")),
)
