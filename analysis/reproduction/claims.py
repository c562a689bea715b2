"""What the papers claim, and what our runs show for it and against it.

claims.json has the wording of each claim and its place in the paper. This module decides what counts for or
against it in stored runs (``Evidence``). Where numbers are printed, our figures for two of them are compared
by their difference, paired by seed, with a 95 % t-interval. Elsewhere means are compared with a threshold.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from analysis.reproduction import SPECTRAL
from analysis.reproduction.comparisons import Compared
from analysis.reproduction.evidence import SAME, Evidence, LeakRow, Support, below, difference

FILE = pathlib.Path(__file__).with_name("claims.json")
SIMILAR = 0.05  # AUC that "similar utility" may lose
MATTERS = 0.05  # least difference of top-1 success, AUC or leak AUC that matters
KEEPS_ACCURACY = 0.04  # accuracy that an operating point may lose
UNATTACKED = ("table", "dataset", "split", "metric")  # fields in which numbers of two attacks agree
ADAPTIVE = {"probe", "joint", "fusion"}  # attacks that use everything an attacker has
TEST_AUC: dict[str, Any] = {"metric": "auc", "split": "test"}
TITLES = {"leak": "leak AUC", "auc": "test AUC"}
BENCHMARKS = ("noise", "compression", "ppdl", "discrete_sgd")
EVERY_K = 0.6  # the largest epsilon at which KDk's Figure 6 has every k
NORM = "norm/epoch=-1"  # the attack of the notebooks' points, on the last epoch
LARGE_ALPHA = 0.005  # weight of dCor above which the claim on a larger model is tested


class Weighed(NamedTuple):
    """One piece of evidence."""

    support: Support
    text: str


Weigh = Callable[[Evidence], Iterable[Weighed]]


def _where(compared: Compared) -> str:
    scale = "" if compared.scale == "full" else f", {compared.scale}"
    return f"{compared.number.table}, {compared.number.dataset}{scale}"


def _pairs(
    evidence: Evidence,
    a: str,
    b: str,
    by: str = "defense",
    same: Sequence[str] = SAME,
    **fields: str,
) -> Iterator[tuple[Compared, Compared]]:
    return evidence.pairs({by: a, **fields}, {by: b, **fields}, same)


def _less(a: str, b: str, share: float = 1.0, excepted: Sequence[str] = (), **fields: Any) -> Weigh:
    """Weighs the claim that ``a`` has less than ``share`` times the figure of ``b``, but on excepted data."""

    def weigh(evidence: Evidence) -> Iterator[Weighed]:
        for x, y in _pairs(evidence, a, b, **fields):
            if x.number.dataset in excepted:
                continue
            by = difference(x.ours, share * np.asarray(y.ours))
            times = f"{share:g} times " if share != 1 else ""
            figures = f"{a} {np.mean(x.ours):.3f} against {times}{np.mean(y.ours):.3f} of {b}"
            yield Weighed(below(by, 0), f"{_where(x)}, {x.number.figure}: {figures}, {by.signed}.")

    return weigh


def _similar(defense: str, reference: str, limit: float, **fields: str) -> Weigh:
    """Weighs the claim that ``defense`` loses at most ``limit`` utility against ``reference``."""

    def weigh(evidence: Evidence) -> Iterator[Weighed]:
        for x, y in _pairs(evidence, defense, reference, **fields):
            lost = difference(y.ours, x.ours)
            figures = f"{np.mean(x.ours):.3f} against {np.mean(y.ours):.3f}, {lost.signed} lost"
            yield Weighed(below(lost, limit), f"{_where(x)}, {x.number.figure}: {figures}.")

    return weigh


def _steadier(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs the claim that GAFM's test AUC varies less over runs than Marvell's, by an F-test."""
    pairs = _pairs(evidence, "gafm", "marvell", table="gafm/2", **TEST_AUC)
    for x, y, count in ((x, y, len(x.ours)) for x, y in pairs if len(x.ours) > 2):
        spreads = [float(np.std(c.ours, ddof=1)) for c in (x, y)]
        ratio = (spreads[0] / spreads[1]) ** 2 if spreads[1] else math.inf
        low, high = stats.f.ppf([0.025, 0.975], count - 1, count - 1)
        yield Weighed(
            Support.FOR if ratio < low else Support.AGAINST if ratio > high else Support.OPEN,
            f"{_where(x)}: test AUC deviates by {spreads[0]:.3f} over {count} seeds, and by "
            f"{spreads[1]:.3f} with marvell.",
        )


def _larger_loses_less(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs the claim that, under much dCor, a larger model of the label party loses less AUC."""
    table = {"table": "sun/1"}
    for x, y in evidence.pairs(table, table, ("table",)):
        a, b = x.number.setting, y.number.setting
        sizes = (a.get("label_party_model"), b.get("label_party_model"))
        if sizes == ("large", "small") and a["alpha_d"] == b["alpha_d"] > LARGE_ALPHA:
            by = difference(y.ours, x.ours)
            yield Weighed(
                below(by, 0),
                f"{_where(x)}, alpha_d {a['alpha_d']:g}: test AUC {np.mean(x.ours):.3f} with three "
                f"layers, {np.mean(y.ours):.3f} with one, one less three {by.signed}.",
            )


def _holds(condition: bool) -> Support:
    return Support.FOR if condition else Support.AGAINST


def _attacked(rows: Sequence[LeakRow], attack: str, *chain: str) -> list[LeakRow]:
    """Returns the rows of an attack under a chain of defenses, undefended by default."""
    return [r for r in rows if r.attack == attack and not r.strongest and r.defenses == chain]


def _undefended(rows: Sequence[LeakRow], attack: str) -> LeakRow | None:
    """Returns the attack's undefended row; None unless exactly one configuration has one."""
    found = _attacked(rows, attack)
    return found[0] if len(found) == 1 else None


def _by_epsilon(rows: Sequence[LeakRow]) -> dict[float, dict[int, LeakRow]]:
    """Returns the passive attack's rows under KDk, by epsilon and by k in increasing order."""
    out: dict[float, dict[int, LeakRow]] = {}
    for row in sorted(_attacked(rows, "passive", "kdk"), key=lambda row: row.knobs["kdk.k"]):
        out.setdefault(row.knobs["kdk.epsilon"], {})[int(row.knobs["kdk.k"])] = row
    return out


def _k_matters_little(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs how much the passive attack's success varies over k < C, at each epsilon up to ``EVERY_K``."""
    for name, rows in evidence.sweeps("kdk/figure6"):
        for epsilon, by_k in _by_epsilon(rows).items():
            fewer = {k: row.success for k, row in by_k.items() if k < row.classes}
            if len(fewer) > 1 and epsilon <= EVERY_K:
                spread = max(fewer.values()) - min(fewer.values())
                words = ", ".join(f"k = {k} {v:.3f}" for k, v in fewer.items())
                yield Weighed(
                    _holds(spread <= MATTERS),
                    f"{name}, epsilon {epsilon:g}: passive success {words} (here: within {MATTERS}).",
                )


def _k_of_all_classes(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs the claim that k = C does not lower the passive attack's success. An epsilon decides only if
    k = C keeps the accuracy there and the smallest k lowers the success."""
    for name, rows in evidence.sweeps("kdk/figure6"):
        before = _undefended(rows, "passive")
        for epsilon, by_k in _by_epsilon(rows).items():
            (least, of_least), (most, of_most) = min(by_k.items()), max(by_k.items())
            if before is not None and least < most == before.classes:
                kept = of_most.accuracy >= before.accuracy - KEEPS_ACCURACY
                protects = of_least.success < before.success - MATTERS
                useless = of_most.success >= before.success - MATTERS
                yield Weighed(
                    _holds(useless) if protects and kept else Support.OPEN,
                    f"{name}, epsilon {epsilon:g}: passive success {of_most.success:.3f} with k = {most}, "
                    f"{of_least.success:.3f} with k = {least}, {before.success:.3f} undefended.",
                )


def _defenses_fail(
    attacks: Sequence[str],
    defenses: Sequence[str],
    *tables: str,
    excepted: Sequence[tuple[str, int]] = (),
) -> Weigh:
    """Weighs the claim that attacks keep over half of their success at all operating points that keep the
    accuracy. ``excepted`` has the pairs of a defense and a number of classes that are left out."""

    def weigh(evidence: Evidence) -> Iterator[Weighed]:
        for attack_row, (name, rows) in itertools.product(attacks, evidence.sweeps(*tables)):
            attack = min((r.attack for r in rows if r.row == attack_row), default="")
            before = _undefended(rows, attack)
            if before is None:
                continue
            for defense in defenses:
                if (defense, before.classes) in excepted:
                    continue
                attacked = _attacked(rows, attack, defense)
                kept = [r for r in attacked if r.accuracy >= before.accuracy - KEEPS_ACCURACY]
                if not kept:
                    text = f"{name}, {defense}: no operating point that was run keeps the accuracy."
                    yield Weighed(Support.OPEN, text)
                    continue
                least = min(kept, key=lambda row: row.success)
                yield Weighed(
                    _holds(least.success > before.success / 2),
                    f"{name}, {least.configuration}: {attack} succeeds on {least.success:.3f}, undefended "
                    f"on {before.success:.3f}; accuracy {least.accuracy:.3f} against {before.accuracy:.3f}.",
                )

    return weigh


def _both_losses(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs GAFM's ablations: test AUC with its GAN loss alone, leak to the mean attack with its CE alone."""
    for name, rows in evidence.sweeps("gafm/figure3", "gafm/text"):
        by_method = {row.method: row for row in _attacked(rows, "mean/oracle", "gafm")}
        if not {"gafm", "gan_only", "ce_only"} <= set(by_method):
            continue
        gan, ce, both = (by_method[method] for method in ("gan_only", "ce_only", "gafm"))
        yield Weighed(
            _holds(gan.auc < both.auc - MATTERS),
            f"{name}: test AUC {gan.auc:.3f} with the GAN loss alone, {both.auc:.3f} with both.",
        )
        if gan.table == "gafm/figure3":  # of Spambase, which the claim on the cross entropy excepts
            continue
        yield Weighed(
            _holds(ce.leak > both.leak + MATTERS),
            f"{name}: the mean attack's leak AUC is {ce.leak:.3f} with the cross entropy alone, "
            f"{both.leak:.3f} with both.",
        )


def _spectral(
    under: Callable[[LeakRow], bool], figure: str, holds: Callable[[float, float], bool]
) -> Weigh:
    """Compares ``figure`` of the spectral attack's rows that satisfy ``under`` with the undefended figure."""

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


def _dcor(low: float, high: float) -> Callable[[LeakRow], bool]:
    return lambda row: row.defenses == ("dcor",) and low <= row.knobs["dcor.alpha"] <= high


def _gradient_defense(row: LeakRow) -> bool:
    """Whether a row is of Figure 2 (b) or (c): only Marvell, at s = 8, or only label DP, at epsilon = .5."""
    strengths = row.knobs.get("marvell.power"), row.knobs.get("label_dp.epsilon")
    return len(row.defenses) == 1 and strengths in ((8, None), (None, 0.5))


def _bounded_by_utility(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs the claim that the test AUC bounds the spectral leak, undefended and under gradient defenses."""
    for name, rows in evidence.sweeps("sun"):
        for defenses in ((), ("marvell",), ("label_dp",)):
            for row in _attacked(rows, SPECTRAL, *defenses):
                figures = f"leak AUC {row.leak:.3f}, test AUC {row.auc:.3f}"
                where = f"{name}, {row.configuration}"
                yield Weighed(_holds(row.leak <= row.auc + 0.01), f"{where}: {figures}.")


def _norm_reads(evidence: Evidence) -> Iterator[Weighed]:
    """Weighs the claim that undefended gradients give the labels to the norm attack."""
    for name, rows in evidence.sweeps("li"):
        if (undefended := _undefended(rows, NORM)) is not None:
            leak = undefended.leak
            yield Weighed(_holds(leak >= 0.9), f"{name}: leak AUC {leak:.3f}.")


def _marvell_trades_better(evidence: Evidence) -> Iterator[Weighed]:
    """Compares the leak under each ratio of isotropic noise with that under Marvell at the same test AUC, which
    is interpolated between strengths."""
    for name, rows in evidence.sweeps("li"):
        curve = sorted((row.auc, row.leak) for row in _attacked(rows, NORM, "marvell"))
        for noise in _attacked(rows, NORM, "noise") if curve else ():
            figures = f"{name}, {noise.configuration}: leak AUC {noise.leak:.3f} at test AUC {noise.auc:.3f}"
            if not curve[0][0] <= noise.auc <= curve[-1][0]:
                text = f"{figures}, which no strength of Marvell that was run has."
                yield Weighed(Support.OPEN, text)
                continue
            aucs, leaks = np.array(curve).T
            leak = float(np.interp(noise.auc, aucs, leaks))
            yield Weighed(_holds(leak < noise.leak), f"{figures}, under Marvell {leak:.3f}.")


def _strongest(table: str) -> Weigh:
    """Lists the strongest attack on every configuration of the sweeps of a table, or of a paper."""

    def weigh(evidence: Evidence) -> Iterator[Weighed]:
        for name, rows in evidence.sweeps(table):
            if not ADAPTIVE & {row.row for row in rows}:
                continue  # only published attacks were run
            for row in rows:
                if row.strongest:
                    over = f", {row.excess:+.3f} over the local-only baseline"
                    yield Weighed(
                        Support.MEASURED,
                        f"{name}, {row.configuration}, {row.federation}: {row.leak:.3f} by {row.attack}"
                        f"{'' if math.isnan(row.excess) else over}.",
                    )

    return weigh


SMALL_DCOR, LARGE_DCOR = _dcor(0.002, 0.005), _dcor(0.03, 0.03)
WEIGHED: dict[tuple[str, str], Weigh] = {
    ("kdk", "passive"): _less("kdk", "none", table="kdk/4"),
    ("kdk", "halved"): _less("kdk", "none", 0.5, ("Yahoo! Answers", "Criteo"), table="kdk/4"),
    ("kdk", "active"): _less("kdk", "none", table="kdk/5"),
    ("kdk", "direct"): _less("kdk", "none", 0.4, ("Criteo",), table="kdk/6", metric="asr_top1"),
    ("kdk", "accuracy"): _similar("kdk", "none", KEEPS_ACCURACY, table="kdk/7"),
    ("kdk", "k"): _k_matters_little,
    ("kdk", "k_all"): _k_of_all_classes,
    ("kdk", "others"): _defenses_fail(
        ["direct"], BENCHMARKS[1:], "kdk/8", "kdk/9", excepted=[("ppdl", 100)]
    ),
    ("kdk", "strongest"): _strongest("kdk"),
    ("fu", "active_passive"): _less(
        "passive", "active", by="attack", same=UNATTACKED, defense="none"
    ),
    ("fu", "defenses"): _defenses_fail(["passive", "active"], BENCHMARKS, "kdk/figure7"),
    ("fu", "strongest"): _strongest("fu"),
    ("gafm", "undefended"): _less("gafm", "none", metric="leak_auc"),
    ("gafm", "max_norm"): _less("gafm", "max_norm", metric="leak_auc"),
    ("gafm", "similar"): _similar("gafm", "none", SIMILAR, table="gafm/2", **TEST_AUC),
    ("gafm", "similar_max_norm"): _similar("gafm", "max_norm", SIMILAR, table="gafm/2", **TEST_AUC),
    ("gafm", "above_marvell_2"): _less("marvell", "gafm", table="gafm/2", **TEST_AUC),
    ("gafm", "above_marvell"): _less("marvell", "gafm", table="gafm/C.1", **TEST_AUC),
    ("gafm", "steadier"): _steadier,
    ("gafm", "losses"): _both_losses,
    ("gafm", "strongest"): _strongest("gafm/2"),
    ("sun", "dcor_leak"): _spectral(SMALL_DCOR, "leak", lambda leak, before: leak <= 0.55),
    ("sun", "dcor_auc"): _spectral(SMALL_DCOR, "auc", lambda auc, before: before - auc <= 0.01),
    ("sun", "dcor_large"): _spectral(LARGE_DCOR, "leak", lambda leak, before: leak <= 0.55),
    ("sun", "dcor_large_auc"): _spectral(
        LARGE_DCOR, "auc", lambda auc, before: before - auc <= 0.01
    ),
    ("sun", "gradients"): _spectral(
        _gradient_defense, "leak", lambda leak, before: leak - 0.5 > (before - 0.5) / 2
    ),
    ("sun", "bounded"): _bounded_by_utility,
    ("sun", "larger"): _larger_loses_less,
    ("sun", "strongest"): _strongest("sun"),
    ("li", "norm"): _norm_reads,
    ("li", "tradeoff"): _marvell_trades_better,
    ("li", "strongest"): _strongest("li"),
}


class Claim(NamedTuple):
    """What a paper claims, in our words and in its own."""

    paper: str
    id: str
    text: str
    place: str  # where the paper says so; "" if it makes no claim
    quote: str

    def weigh(self, evidence: Evidence) -> list[Weighed]:
        """Returns every piece of evidence for and against the claim."""
        return list(WEIGHED[self.paper, self.id](evidence))


@functools.cache
def claims() -> tuple[Claim, ...]:
    """Returns every claim, by paper."""
    return tuple(Claim(**record) for record in json.loads(FILE.read_text()))
