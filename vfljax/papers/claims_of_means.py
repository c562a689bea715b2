"""Claims that are weighed by stored means of leaks: of figures without printed numbers, and of worst cases.

What enters: a sweep's name -> its rows (``reproduction.leaks``), means over seeds without intervals. What
leaves: (for, against or open; a sentence). A threshold that is ours stands in the claim's wording.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from vfljax.papers.reproduction import WORST

Rows = list[dict[str, str]]
Leaks = Mapping[str, Rows]
Weighed = Iterator[tuple[str, str]]

FOR, AGAINST, OPEN, MEASURED = "for", "against", "open", "measured"
KNOWING = {"probe", "joint", "fusion"}  # attackers who use all they have
SPECTRAL = "spectral/signed"  # algorithm 1 of Sun et al.
BENCHMARKS = ("noise", "compression", "ppdl", "discrete_sgd")
MATTERS = 0.05  # of top-1 success: what k may change
KEEPS_ACCURACY, HALF = 0.04, 0.5


def _of(leaks: Leaks, prefix: str) -> Iterator[tuple[str, Rows]]:
    for name, rows in sorted(leaks.items()):
        if name.startswith(prefix):
            yield name, rows


def _number(row: Mapping[str, str], figure: str) -> float | None:
    return float(row[figure]) if row.get(figure) else None


def _one(rows: Iterable[dict[str, str]], attack: str, setting: str) -> dict[str, str] | None:
    return next((r for r in rows if r["attack"] == attack and r["setting"] == setting), None)


def _undefended(rows: Rows, attack: str) -> dict[str, str] | None:
    return _one(rows, attack, "undefended")


def _settings(rows: Iterable[dict[str, str]], pattern: str) -> list[str]:
    return [s for s in dict.fromkeys(r["setting"] for r in rows) if re.match(pattern, s)]


def _k_panels(rows: Rows) -> dict[str, dict[int, float]]:
    """epsilon -> k -> the passive attack's success."""
    out: dict[str, dict[int, float]] = {}
    for row in rows:
        k = re.search(r"\bk(?:dk_k|=)(\d+)", row["setting"])
        epsilon = re.search(r"epsilon=([\d.]+)", row["setting"])
        success = _number(row, "success")
        if row["attack"] == "passive" and k and epsilon and success is not None:
            out.setdefault(epsilon[1], {})[int(k[1])] = success
    return out


def k_matters_little(leaks: Leaks) -> Weighed:
    """At each epsilon, the range of the passive attack's success over the k below C."""
    for name, rows in _of(leaks, "kdk_figure6"):
        for epsilon, by_k in _k_panels(rows).items():
            fewer = {k: v for k, v in by_k.items() if k < max(by_k)}
            if len(fewer) > 1:
                spread = max(fewer.values()) - min(fewer.values())
                words = ", ".join(f"k = {k} {v:.3f}" for k, v in sorted(fewer.items()))
                says = FOR if spread <= MATTERS else AGAINST
                yield (
                    says,
                    f"{name}, epsilon {epsilon}: passive success {words} (here: within {MATTERS}).",
                )


def k_of_all_classes(leaks: Leaks) -> Weighed:
    """The passive attack's success at k = C beside that of the smallest k and undefended."""
    for name, rows in _of(leaks, "kdk_figure6"):
        plain = _undefended(rows, "passive")
        for epsilon, by_k in _k_panels(rows).items():
            most, least = max(by_k), min(by_k)
            if plain is None or most < 10 or most == least:
                continue
            before = float(plain["success"])
            says = FOR if by_k[most] > by_k[least] + MATTERS else OPEN
            yield (
                says,
                f"{name}, epsilon {epsilon}: passive success {by_k[most]:.3f} with k = {most}, "
                f"{by_k[least]:.3f} with k = {least}, {before:.3f} undefended.",
            )


def defenses_fail(leaks: Leaks) -> Weighed:
    """The least success that each of Fu et al.'s four defenses leaves at strengths that keep the accuracy."""
    for prefix, attack in (("kdk_figure7", "passive"), ("kdk_8", "direct")):
        for name, rows in _of(leaks, prefix):
            labels = {r["attack"] for r in rows if r["attack"].split("/")[0] == attack}
            label = min(labels, default="")
            plain = _undefended(rows, label)
            if plain is None:
                continue
            for defense in BENCHMARKS:
                kept = [
                    row
                    for setting in _settings(rows, rf"{defense}\b")
                    if (row := _one(rows, label, setting)) is not None
                    and float(row["accuracy"]) >= float(plain["accuracy"]) - KEEPS_ACCURACY
                ]
                if not kept:
                    yield OPEN, f"{name}, {defense}: no strength that was run keeps the accuracy."
                    continue
                least = min(kept, key=lambda row: float(row["success"]))
                before, after = float(plain["success"]), float(least["success"])
                yield (
                    FOR if after > HALF * before else AGAINST,
                    f"{name}, {least['setting']}: {label} succeeds on {after:.3f}, undefended on {before:.3f}; "
                    f"accuracy {float(least['accuracy']):.3f} against {float(plain['accuracy']):.3f}.",
                )


def both_losses(leaks: Leaks) -> Weighed:
    """GAFM's ablations: the AUC of its GAN loss alone, the mean attack's leak under its CE alone."""
    for name, rows in (*_of(leaks, "gafm_figure3"), *_of(leaks, "gafm_text")):
        by_arm = {
            arm: row
            for arm in ("gafm", "gan_only", "ce_only")
            for setting in _settings(rows, rf"{arm}\b")
            if (row := _one(rows, "mean/oracle", setting)) is not None
        }
        if len(by_arm) < 3:
            continue
        gan, ce, both = by_arm["gan_only"], by_arm["ce_only"], by_arm["gafm"]
        worse = float(gan["auc"]) < float(both["auc"]) - 0.05
        yield (
            FOR if worse else AGAINST,
            f"{name}: test AUC {float(gan['auc']):.3f} with the GAN loss alone, "
            f"{float(both['auc']):.3f} with both.",
        )
        leaks_more = float(ce["leak"]) > float(both["leak"]) + 0.05
        yield (
            FOR if leaks_more else AGAINST,
            f"{name}: the mean attack's leak AUC is {float(ce['leak']):.3f} with the cross entropy alone, "
            f"{float(both['leak']):.3f} with both.",
        )


def _dcor(leaks: Leaks) -> Iterator[tuple[str, str, dict[str, str], dict[str, str]]]:
    """(Sweep, setting, its spectral row, the undefended one) with alpha_d from .002 to .005."""
    for name, rows in _of(leaks, "sun_"):
        plain = _undefended(rows, SPECTRAL)
        for setting in _settings(rows, r"dcor(_\d+)? alpha=0\.00[2-5]$|dcor_00[2-5]$"):
            row = _one(rows, SPECTRAL, setting)
            if row is not None and plain is not None:
                yield name, setting, row, plain


def dcor_hides(leaks: Leaks) -> Weighed:
    """The spectral attack under dCor at small weights."""
    for name, setting, row, plain in _dcor(leaks):
        leak = float(row["leak"])
        yield (
            FOR if leak <= 0.55 else AGAINST,
            f"{name}, {setting}: leak AUC {leak:.3f}, undefended {float(plain['leak']):.3f}.",
        )


def dcor_costs_nothing(leaks: Leaks) -> Weighed:
    """The test AUC there."""
    for name, setting, row, plain in _dcor(leaks):
        lost = float(plain["auc"]) - float(row["auc"])
        yield (
            FOR if lost <= 0.01 else AGAINST,
            f"{name}, {setting}: test AUC {float(row['auc']):.3f}, undefended {float(plain['auc']):.3f}.",
        )


def others_do_not_stop_it(leaks: Leaks) -> Weighed:
    """The spectral attack under Marvell and label DP."""
    for name, rows in _of(leaks, "sun_"):
        plain = _undefended(rows, SPECTRAL)
        for setting in _settings(rows, r"(marvell|label_dp)\b"):
            row = _one(rows, SPECTRAL, setting)
            if row is None or plain is None:
                continue
            before, after = float(plain["leak"]) - 0.5, float(row["leak"]) - 0.5
            yield (
                FOR if after > HALF * before else AGAINST,
                f"{name}, {setting}: leak AUC {after + 0.5:.3f}, undefended {before + 0.5:.3f}.",
            )


def bounded_by_utility(leaks: Leaks) -> Weighed:
    """The spectral attack beside the test AUC, undefended."""
    for name, rows in _of(leaks, "sun_"):
        row = _undefended(rows, SPECTRAL)
        if row is not None:
            leak, auc = float(row["leak"]), float(row["auc"])
            says = FOR if leak <= auc + 0.01 else AGAINST
            yield says, f"{name}: leak AUC {leak:.3f}, test AUC {auc:.3f}."


def worst_cases(prefix: str) -> Callable[[Leaks], Weighed]:
    """Of every setting of the sweeps whose name begins so, the worst case and its excess over staying
    away."""

    def weigh(leaks: Leaks) -> Weighed:
        for name, rows in _of(leaks, prefix):
            if not KNOWING & {row["attack"].split("/")[0] for row in rows}:
                continue  # published attacks alone: no worst case
            for row in rows:
                if row["attack"].startswith(WORST):
                    excess = _number(row, "excess")
                    over = "" if excess is None else f", {excess:+.3f} over staying away"
                    yield (
                        MEASURED,
                        f"{name}, {row['setting']}, {row['federation']}: {float(row['leak']):.3f} by "
                        f"{row['attack'].removeprefix(WORST + ': ')}{over}.",
                    )

    return weigh
