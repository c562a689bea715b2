"""What the papers claim, and what our runs show for it and against it.

The wording of a claim and what counts for or against it are written here; every figure comes from a stored
run (``Evidence``). Where numbers are printed, a difference between two of them is paired by seed, with its
95 % t-interval; elsewhere means over seeds are held against a threshold of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from vfljax.papers.comparisons import Compared
from vfljax.papers.evidence import Evidence, LeakRow, Support, difference

SIMILAR = 0.05  # of AUC: what "similar utility" may cost
MATTERS = 0.05  # of top-1 success, AUC or leak AUC: a difference that matters
KEEPS_ACCURACY = 0.04  # accuracy that an operating point may lose
ADAPTIVE = {"probe", "joint", "fusion"}  # use everything an attacker has
SPECTRAL = "spectral/signed"  # algorithm 1 of Sun et al.
TITLES = {"leak": "leak AUC", "auc": "test AUC"}
BENCHMARKS = ("noise", "compression", "ppdl", "discrete_sgd")


class Weighed(NamedTuple):
    """One piece of evidence."""

    support: Support
    text: str


Weigh = Callable[[Evidence], Iterable[Weighed]]


def _where(compared: Compared) -> str:
    scale = "" if compared.scale == "full" else f", {compared.scale}"
    return f"{compared.number.table}, {compared.number.dataset}{scale}"


def _pairs(
    evidence: Evidence, defense: str, reference: str, **fields: str
) -> Iterator[tuple[Compared, Compared]]:
    return evidence.pairs({"defense": defense, **fields}, {"defense": reference, **fields})


def _less(defense: str, reference: str, share: float = 1.0, **fields: str) -> Weigh:
    """Weighs that ``defense`` has less than ``share`` of the figure that ``reference`` has."""

    def weigh(evidence: Evidence) -> Iterator[Weighed]:
        for x, y in _pairs(evidence, defense, reference, **fields):
            by = difference(x.ours, share * np.asarray(y.ours))
            times = f"{share:g} times " if share != 1 else ""
            figures = f"{np.mean(x.ours):.3f} against {times}{np.mean(y.ours):.3f}"
            yield Weighed(by.below(0), f"{_where(x)}, {x.number.figure}: {figures}, {by}.")

    return weigh


def _similar(defense: str, reference: str, limit: float, **fields: str) -> Weigh:
    """Weighs that ``defense`` loses at most ``limit`` of the utility of ``reference``."""

    def weigh(evidence: Evidence) -> Iterator[Weighed]:
        for x, y in _pairs(evidence, defense, reference, **fields):
            lost = difference(y.ours, x.ours)
            figures = f"{np.mean(x.ours):.3f} against {np.mean(y.ours):.3f}, {lost} lost"
            yield Weighed(lost.below(limit), f"{_where(x)}, {x.number.figure}: {figures}.")

    return weigh


def _steadier(a: str, b: str) -> Weigh:
    """Weighs that the AUC of ``a`` varies less over runs than that of ``b``, by an F-test of variances."""

    def weigh(evidence: Evidence) -> Iterator[Weighed]:
        pairs = _pairs(evidence, a, b, metric="auc", split="test")
        for x, y, count in ((x, y, len(x.ours)) for x, y in pairs if len(x.ours) > 2):
            spreads = [float(np.std(c.ours, ddof=1)) for c in (x, y)]
            ratio = (spreads[0] / spreads[1]) ** 2 if spreads[1] else math.inf
            low, high = stats.f.ppf([0.025, 0.975], count - 1, count - 1)
            yield Weighed(
                Support.FOR if ratio < low else Support.AGAINST if ratio > high else Support.OPEN,
                f"{_where(x)}: test AUC deviates by {spreads[0]:.3f} over {count} seeds, and by "
                f"{spreads[1]:.3f} with {b}.",
            )

    return weigh


def _active_beats_passive(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs that the active attack succeeds more often than the passive one, undefended."""
    active, passive = ({"defense": "none", "attack": name} for name in ("active", "passive"))
    for x, y in evidence.pairs(active, passive, ("table", "dataset", "split", "metric")):
        by = difference(y.ours, x.ours)
        yield Weighed(
            by.below(0),
            f"{_where(x)}, {x.number.metric} {x.number.split}: active {np.mean(x.ours):.3f}, passive "
            f"{np.mean(y.ours):.3f}, passive less active {by}.",
        )


def _larger_loses_less(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs that with dCor a larger model of the label party loses less AUC (Sun et al., appendix B)."""
    table = {"table": "sun/1"}
    for x, y in evidence.pairs(table, table, ("table",)):
        a, b = x.number.setting, y.number.setting
        sizes = (a.get("label_party_model"), b.get("label_party_model"))
        if sizes == ("large", "small") and a["alpha_d"] == b["alpha_d"]:
            by = difference(y.ours, x.ours)
            yield Weighed(
                by.below(0),
                f"{_where(x)}, alpha_d {a['alpha_d']:g}: test AUC {np.mean(x.ours):.3f} with three "
                f"layers, {np.mean(y.ours):.3f} with one, one less three {by}.",
            )


def _holds(condition: bool) -> Support:
    return Support.FOR if condition else Support.AGAINST


def _attacked(rows: Sequence[LeakRow], attack: str, *chain: str) -> list[LeakRow]:
    """Returns the rows of an attack under a chain of defenses, undefended by default."""
    return [r for r in rows if r.attack == attack and not r.strongest and r.defenses == chain]


def _undefended(rows: Sequence[LeakRow], attack: str) -> LeakRow | None:
    """Returns the undefended row; None where several configurations are undefended."""
    found = _attacked(rows, attack)
    return found[0] if len(found) == 1 else None


def _by_epsilon(rows: Sequence[LeakRow]) -> dict[float, dict[int, float]]:
    """Returns the passive attack's success under KDk, by epsilon and by k."""
    out: dict[float, dict[int, float]] = {}
    for row in _attacked(rows, "passive", "kdk"):
        by_k = out.setdefault(row.knobs["kdk.epsilon"], {})
        by_k[int(row.knobs["kdk.k"])] = row.success
    return out


def _k_matters_little(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs the range of the passive attack's success over the k below C, at each epsilon."""
    for name, rows in evidence.sweeps("kdk/figure6"):
        for epsilon, by_k in _by_epsilon(rows).items():
            fewer = {k: v for k, v in sorted(by_k.items()) if k < max(by_k)}
            if len(fewer) > 1:
                spread = max(fewer.values()) - min(fewer.values())
                words = ", ".join(f"k = {k} {v:.3f}" for k, v in fewer.items())
                yield Weighed(
                    _holds(spread <= MATTERS),
                    f"{name}, epsilon {epsilon:g}: passive success {words} (here: within {MATTERS}).",
                )


def _k_of_all_classes(evidence: Evidence) -> Iterator[Weighed]:
    """Compares the passive attack's success at k = C with that at the smallest k and undefended."""
    for name, rows in evidence.sweeps("kdk/figure6"):
        before = _undefended(rows, "passive")
        for epsilon, by_k in _by_epsilon(rows).items():
            most, least = max(by_k), min(by_k)
            if before is not None and most >= 10 and most > least:
                more = by_k[most] > by_k[least] + MATTERS
                yield Weighed(
                    Support.FOR if more else Support.OPEN,
                    f"{name}, epsilon {epsilon:g}: passive success {by_k[most]:.3f} with k = {most}, "
                    f"{by_k[least]:.3f} with k = {least}, {before.success:.3f} undefended.",
                )


def _defenses_fail(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs the least success that each defense of Fu et al. leaves where it keeps the accuracy."""
    attack_of = {"kdk/figure7": "passive", "kdk/8": "direct"}
    for name, rows in evidence.sweeps(*attack_of):
        attack = min((r.attack for r in rows if r.row == attack_of[r.table]), default="")
        before = _undefended(rows, attack)
        if before is None:
            continue
        for defense in BENCHMARKS:
            attacked = _attacked(rows, attack, defense)
            kept = [row for row in attacked if row.accuracy >= before.accuracy - KEEPS_ACCURACY]
            if not kept:
                text = f"{name}, {defense}: no operating point that was run keeps the accuracy."
                yield Weighed(Support.OPEN, text)
                continue
            least = min(kept, key=lambda row: row.success)
            yield Weighed(
                _holds(least.success > before.success / 2),
                f"{name}, {least.configuration}: {attack} succeeds on {least.success:.3f}, undefended on "
                f"{before.success:.3f}; accuracy {least.accuracy:.3f} against {before.accuracy:.3f}.",
            )


def _both_losses(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs GAFM's ablations: the AUC of its GAN loss alone, the mean attack's leak under its CE alone."""
    for name, rows in evidence.sweeps("gafm/figure3", "gafm/text"):
        by_method = {row.method: row for row in _attacked(rows, "mean/oracle", "gafm")}
        if not {"gafm", "gan_only", "ce_only"} <= set(by_method):
            continue
        gan, ce, both = (by_method[method] for method in ("gan_only", "ce_only", "gafm"))
        yield Weighed(
            _holds(gan.auc < both.auc - MATTERS),
            f"{name}: test AUC {gan.auc:.3f} with the GAN loss alone, {both.auc:.3f} with both.",
        )
        yield Weighed(
            _holds(ce.leak > both.leak + MATTERS),
            f"{name}: the mean attack's leak AUC is {ce.leak:.3f} with the cross entropy alone, "
            f"{both.leak:.3f} with both.",
        )


def _spectral(
    under: Callable[[LeakRow], bool], figure: str, holds: Callable[[float, float], bool]
) -> Weigh:
    """Compares a figure of the configurations that the spectral attack ran on with the undefended one."""

    def weigh(evidence: Evidence) -> Iterator[Weighed]:
        for name, rows in evidence.sweeps("sun"):
            undefended = _undefended(rows, SPECTRAL)
            for row in rows if undefended is not None else ():
                if row.attack == SPECTRAL and not row.strongest and under(row):
                    ours, before = getattr(row, figure), getattr(undefended, figure)
                    text = f"{TITLES[figure]} {ours:.3f}, undefended {before:.3f}"
                    yield Weighed(
                        _holds(holds(ours, before)), f"{name}, {row.configuration}: {text}."
                    )

    return weigh


def _small_dcor(row: LeakRow) -> bool:
    return row.defenses == ("dcor",) and 0.002 <= row.knobs["dcor.alpha"] <= 0.005


def _bounded_by_utility(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs the spectral attack's leak against the test AUC, undefended."""
    for name, rows in evidence.sweeps("sun"):
        row = _undefended(rows, SPECTRAL)
        if row is not None:
            figures = f"leak AUC {row.leak:.3f}, test AUC {row.auc:.3f}"
            yield Weighed(_holds(row.leak <= row.auc + 0.01), f"{name}: {figures}.")


def _strongest(table: str) -> Weigh:
    """Lists the strongest attack on every configuration of the sweeps of a table, or of a paper."""

    def weigh(evidence: Evidence) -> Iterator[Weighed]:
        for name, rows in evidence.sweeps(table):
            if not ADAPTIVE & {row.row for row in rows}:
                continue  # only published attacks, none of them strong
            for row in rows:
                if row.strongest:
                    over = f", {row.excess:+.3f} over the local-only baseline"
                    yield Weighed(
                        Support.MEASURED,
                        f"{name}, {row.configuration}, {row.federation}: {row.leak:.3f} by {row.attack}"
                        f"{'' if math.isnan(row.excess) else over}.",
                    )

    return weigh


NOT_CLAIMED = "Not claimed: what attackers who {} read, and what the local-only baseline reads{}."
KNOW = "know the defense"
CLAIMS: dict[str, dict[str, Weigh]] = {
    "kdk": {
        "The published attacks' success falls by more than 60 %.": (
            _less("kdk", "none", share=0.4, metric="asr_top1")
        ),
        "The accuracy falls by less than 4 points.": (
            _similar("kdk", "none", KEEPS_ACCURACY, metric="top1_accuracy")
        ),
        "k does not matter much.": _k_matters_little,
        "k = C is ineffective.": _k_of_all_classes,
        NOT_CLAIMED.format(KNOW, ""): _strongest("kdk"),
    },
    "fu": {
        "The active attack beats the passive one.": _active_beats_passive,
        "Noisy gradients, compression, PPDL and DiscreteSGD fail: where they keep the accuracy (here: at most "
        "4 points lost), the attack keeps most of its success (here: half).": _defenses_fail,
        NOT_CLAIMED.format("use all they have", ""): _strongest("fu"),
    },
    "gafm": {
        "Attacks on gradients leak less with GAFM than undefended.": (
            _less("gafm", "none", metric="leak_auc")
        ),
        "They leak less with GAFM than with MaxNorm.": _less("gafm", "max_norm", metric="leak_auc"),
        f"At a similar AUC (here: at most {SIMILAR} lost).": (
            _similar("gafm", "none", SIMILAR, metric="auc")
        ),
        "GAFM's utility is more stable than Marvell's.": _steadier("gafm", "marvell"),
        "The GAN loss alone has no utility, the cross entropy alone leaks.": _both_losses,
        NOT_CLAIMED.format(KNOW, " (Table 2, with `--attacks=residual,probe,spectral`)"): (
            _strongest("gafm/2")
        ),
    },
    "sun": {
        "With alpha_d from .002 to .005 the spectral attack's leak AUC is near .5 (here: at most .55).": (
            _spectral(_small_dcor, "leak", lambda leak, before: leak <= 0.55)
        ),
        "... with the test AUC unchanged (here: at most .01 lost).": (
            _spectral(_small_dcor, "auc", lambda auc, before: before - auc <= 0.01)
        ),
        "Marvell and label DP do not stop the spectral attack (here: it keeps most of what exceeds .5).": (
            _spectral(
                lambda row: row.defenses in (("marvell",), ("label_dp",)),
                "leak",
                lambda leak, before: leak - 0.5 > (before - 0.5) / 2,
            )
        ),
        "The spectral attack's leak AUC is bounded by the test AUC (here: undefended, by at most .01 more).": (
            _bounded_by_utility
        ),
        "A larger model of the label party loses less.": _larger_loses_less,
        NOT_CLAIMED.format(KNOW, ""): _strongest("sun"),
    },
}
"""What each paper claims, and what weighs it."""
