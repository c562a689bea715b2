"""Accuracies and leaks with products in bfloat16 beside those in float32.

    python -m analysis.precision --workdir=runs/precision --out=analysis/results/benchmark/precision

Runs configs/precision.py in both precisions, as two sweeps below ``workdir`` (what is there already is not
run again), and writes the tables of ``analysis/results/benchmark/precision``: tables.md for people and
precision.csv with a line per setting, federation, seed and figure. Settings of one seed have the same rows,
batches and initial weights in both, so that differences are paired by seed.
"""

from __future__ import annotations

import argparse
import csv
import io
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import vfljax
from configs.precision import get_config
from vfljax import store
from vfljax.report import stored_rows, tables
from vfljax.report.assessed import Assessed
from vfljax.report.assessment import assess
from vfljax.report.estimates import Interval, interval
from vfljax.report.stored_rows import FEDERATIONS, federation_of_kind

EXACT, ROUNDED = "float32", "bfloat16"
ACCURACY, LEAK = "accuracy", "strongest attack"


class Pair(NamedTuple):
    """One figure of a setting in both precisions, by seed."""

    setting: str
    federation: str
    figure: str
    exact: Mapping[int, float]
    rounded: Mapping[int, float]

    @property
    def change(self) -> Interval:
        """bfloat16 less float32, paired by seed."""
        return interval(self.rounded[s] - self.exact[s] for s in self.exact if s in self.rounded)

    @property
    def certain(self) -> bool:
        """Whether the interval of the change excludes 0."""
        return abs(self.change.mean) > self.change.half

    @property
    def cells(self) -> list[str]:
        change = self.change
        return [
            *(self.setting, FEDERATIONS[self.federation], self.figure),
            *(str(interval(values.values())) for values in (self.exact, self.rounded)),
            f"{change.mean:+.3f} ± {change.half:.3f}{' *' if self.certain else ''}",
        ]


def pairs(exact: Assessed, rounded: Assessed) -> Iterator[Pair]:
    """Test accuracy, and the leak of the strongest attack, of every assessment of both sweeps."""
    for one, other in zip(exact.attacked, rounded.attacked, strict=True):
        about = one.label, one.federation
        tests = (a.configuration.test[a.federation] for a in (one, other))
        yield Pair(*about, ACCURACY, *tests)
        yield Pair(*about, LEAK, *(a.strongest.by_seed for a in (one, other) if a.strongest))


def by_attack(exact: Assessed, rounded: Assessed) -> list[list[str]]:
    """A row of cells per attack and federation: its leak, mean over all configurations, in either precision,
    and the configuration in which its mean over seeds changes most."""
    rows, every = [], list(zip(exact.configurations, rounded.configurations, strict=True))
    for key in dict.fromkeys(key for c in exact.configurations for key in c.attacks):
        leaks = {
            one.label: (one.attacks[key]["leak"].mean, other.attacks[key]["leak"].mean)
            for one, other in every
            if key in one.attacks and key in other.attacks
        }
        means = (sum(values) / len(leaks) for values in zip(*leaks.values(), strict=True))
        changes = {label: after - before for label, (before, after) in leaks.items()}
        most = max(changes, key=lambda label: abs(changes[label]))
        words = f"{changes[most]:+.3f} ({most})" if changes[most] else "none"
        rows.append(
            [
                key.label,
                FEDERATIONS[federation_of_kind(key.federation)],
                *(f"{m:.3f}" for m in means),
                words,
            ]
        )
    return rows


def text(every: Sequence[Pair], attacks: Sequence[Sequence[str]], scale: str) -> str:
    """Both tables as Markdown, and what is largest in the first; ``scale`` is that of leaks."""
    header = ["setting", "federation", "figure", EXACT, ROUNDED, "change, paired by seed"]
    certain = [pair for pair in every if pair.certain]
    lines = [
        "# Products in bfloat16 beside float32",
        "",
        f"Means over {len(every[0].exact)} seeds with 95 % t-intervals. Accuracy is of test rows; the figure "
        f"of the strongest attack is its {scale}, chosen on the other seeds. *: the interval of the change "
        f"excludes 0, as {len(certain)} of {len(every)} do; by chance alone {len(every) / 20:.1f} would.",
        "",
        *tables.markdown(header, [pair.cells for pair in every]),
        "",
    ]
    last = [
        *("", "## Every attack by itself", "", f"{scale}, mean over all settings and seeds.", ""),
        *tables.markdown(["attack", "federation", EXACT, ROUNDED, "largest change"], attacks),
    ]
    for figure in (ACCURACY, LEAK):
        pair = max((p for p in every if p.figure == figure), key=lambda p: abs(p.change.mean))
        at = f"{pair.setting}, {FEDERATIONS[pair.federation]}"
        lines.append(f"- Largest change of the {figure}: {pair.change.mean:+.3f} ({at}).")
    return "\n".join(lines + last) + "\n"


def as_csv(every: Sequence[Pair]) -> str:
    """A line per setting, federation, figure and seed."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["setting", "federation", "figure", "seed", EXACT, ROUNDED])
    for pair in every:
        for seed, value in pair.exact.items():
            values = (value, pair.rounded.get(seed, float("nan")))
            writer.writerow([*pair[:3], seed, *(f"{v:.4f}" for v in values)])
    return file.getvalue()


def compared(workdir: pathlib.Path) -> tuple[list[Pair], str]:
    """Run both sweeps and pair their figures; and ``text`` of them."""
    sweeps = [
        vfljax.run_sweep(get_config(name), workdir / name, command=f"analysis.precision, {name}")
        for name in (EXACT, ROUNDED)
    ]
    exact, rounded = (assess(stored_rows.read(sweep, named=False)) for sweep in sweeps)
    every = list(pairs(exact, rounded))
    return every, text(every, by_attack(exact, rounded), exact.reference.scale)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare bfloat16 products with float32.")
    parser.add_argument("--workdir", type=pathlib.Path, required=True, help="folder of both sweeps")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the tables")
    arguments = parser.parse_args()
    vfljax.use_this_machine()
    every, said = compared(arguments.workdir)
    store.write_text(arguments.out / "tables.md", said)
    store.write_text(arguments.out / "precision.csv", as_csv(every))
    print(said)


if __name__ == "__main__":
    main()
