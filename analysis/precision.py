"""Accuracies, leaks and verdicts in bfloat16 beside those in float32.

    python -m analysis.precision --workdir=runs/precision --out=analysis/results/benchmark/precision
    python -m analysis.precision --images=DIR --workdir=runs/precision_images \
        --out=analysis/results/benchmark/precision/images

Runs configs/precision.py in both precisions, as two sweeps below ``workdir`` (what is there already is not
run again), and writes the tables of ``analysis/results/benchmark/precision``: tables.md for people and
precision.csv with a line per configuration, federation, seed and figure. Trials of one seed have the same rows,
batches and initial weights in both, so that differences are paired by seed.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import argparse
import csv
import io
import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

import vfljax
from configs.precision import get_config
from vfljax import store
from vfljax.report import tables
from vfljax.report.judged import Judged, judged
from vfljax.report.limits import SHOWN_LEVEL, limits
from vfljax.report.rows import PANELS
from vfljax.sweep.grid import experiment_of

EXACT, ROUNDED = "float32", "bfloat16"
ACCURACY, LEAK = "accuracy", "strongest attack"
PLACE = ["configuration", "panel"]


class Interval(NamedTuple):
    """A mean over seeds, and half the width of its 95 % t-interval (NaN for one seed)."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half:.3f}"


def interval(values: pd.Series) -> Interval:
    """The interval of a figure by seed."""
    found = limits(values.to_numpy(float), level=SHOWN_LEVEL, fewest=2)
    return Interval(float(found.mean), float(found.upper - found.mean))


class Pair(NamedTuple):
    """One figure of a configuration in both precisions, by seed."""

    configuration: str
    federation: str  # a panel
    figure: str
    exact: pd.Series
    rounded: pd.Series

    @property
    def change(self) -> Interval:
        """bfloat16 less float32, paired by seed."""
        return interval((self.rounded - self.exact).dropna())

    @property
    def certain(self) -> bool:
        """Whether the interval of the change excludes 0."""
        return abs(self.change.mean) > self.change.half

    @property
    def cells(self) -> list[str]:
        change = self.change
        return [
            *(self.configuration, PANELS[self.federation], self.figure),
            *(str(interval(values)) for values in (self.exact, self.rounded)),
            f"{change.mean:+.3f} ± {change.half:.3f}{' *' if self.certain else ''}",
        ]


def figures(sweep: Judged) -> dict[str, pd.Series]:
    """Test accuracy, and what the strongest attack of each run reads, by configuration, panel and seed."""
    rows, honest = sweep.rows, sweep.trials[sweep.trials["federation"] == sweep.trials["panel"]]
    attacks = rows[(rows["role"] == "attack") & (rows["known"] <= sweep.facts.known)]
    leaks = attacks.groupby([*PLACE, "seed"])["leak"].max()
    learners = rows[(rows["role"] == "learner") & (rows["known"] == sweep.facts.known)]
    alone = learners.groupby("seed")["leak"].max().reindex(leaks.index.get_level_values("seed"))
    leaks = leaks.where(leaks.isna(), np.fmax(leaks, alone.to_numpy()))
    utility = honest.set_index([*PLACE, "seed"])["test_utility"].sort_index()
    return {ACCURACY: utility, LEAK: leaks}


def pairs(exact: Judged, rounded: Judged) -> Iterator[Pair]:
    """Test accuracy, and the leak of the strongest attack, of every configuration and panel of both sweeps."""
    one, other = figures(exact), figures(rounded)
    attacked = exact.leading[exact.leading["leak"].notna()]
    for c, panel, label in attacked[[*PLACE, "label"]].itertuples(index=False, name=None):
        for name in (ACCURACY, LEAK):
            yield Pair(label, panel, name, *(of[name].loc[c, panel] for of in (one, other)))


def by_attack(exact: Judged, rounded: Judged) -> pd.DataFrame:
    """A row of text per attack and panel: its leak, mean over all configurations, in either precision, and the
    configuration in which its mean over seeds changes most."""
    names = ["panel", "label", "configuration"]
    leaks = [
        sweep.rows[sweep.rows["role"] == "attack"].groupby(names, sort=False)["leak"].mean()
        for sweep in (exact, rounded)
    ]
    both = pd.concat(leaks, axis=1, join="inner", keys=[EXACT, ROUNDED])
    label = exact.leading.drop_duplicates("configuration").set_index("configuration")["label"]
    rows = []
    for (panel, attack), of in both.groupby(["panel", "label"], sort=False):
        changes = (of[ROUNDED] - of[EXACT]).droplevel(["panel", "label"])
        most = changes.abs().idxmax()
        words = f"{changes[most]:+.3f} ({label[most]})" if changes[most] else "none"
        means = (f"{of[name].mean():.3f}" for name in (EXACT, ROUNDED))
        rows.append([attack, PANELS[str(panel)], *means, words])
    return pd.DataFrame(rows, columns=["attack", "federation", EXACT, ROUNDED, "largest change"])


def verdicts(exact: Judged, rounded: Judged) -> pd.DataFrame:
    """A row of text per defended configuration and panel: its verdict in either precision."""
    one, other = (
        sweep.leading[~sweep.leading["undefended"]].set_index([*PLACE, "label"])["verdict"]
        for sweep in (exact, rounded)
    )
    both = pd.concat([one, other], axis=1, join="inner", keys=[EXACT, ROUNDED]).reset_index()
    rows = [
        [label, PANELS[str(panel)], *map(str, said)]
        for panel, label, *said in both[["panel", "label", EXACT, ROUNDED]].to_numpy()
    ]
    return pd.DataFrame(rows, columns=["configuration", "federation", EXACT, ROUNDED])


def text(every: Sequence[Pair], judgments: pd.DataFrame, attacks: pd.DataFrame, scale: str) -> str:
    """All tables as Markdown, and what is largest in the first; ``scale`` is that of leaks."""
    header = ["configuration", "federation", "figure", EXACT, ROUNDED, "change, paired by seed"]
    certain = [pair for pair in every if pair.certain]
    lines = [
        "# bfloat16 beside float32",
        "",
        f"Means over {len(every[0].exact)} seeds with 95 % t-intervals. Accuracy is of test rows; the figure "
        f"of the strongest attack is the {scale} of the one that reads most in each run. *: the interval "
        f"of the change excludes 0, as {len(certain)} of {len(every)} do; by chance alone "
        f"{len(every) / 20:.1f} would.",
        "",
        tables.markdown(pd.DataFrame([pair.cells for pair in every], columns=header)),
        "",
    ]
    last = [
        *("", "## Verdicts", "", tables.markdown(judgments)),
        *(
            "",
            "## Every attack by itself",
            "",
            f"{scale}, mean over all configurations and seeds.",
            "",
        ),
        tables.markdown(attacks),
    ]
    for figure in (ACCURACY, LEAK):
        pair = max((p for p in every if p.figure == figure), key=lambda p: abs(p.change.mean))
        at = f"{pair.configuration}, {PANELS[pair.federation]}"
        lines.append(f"- Largest change of the {figure}: {pair.change.mean:+.3f} ({at}).")
    return "\n".join(lines + last) + "\n"


def as_csv(every: Sequence[Pair]) -> str:
    """A line per configuration, federation, figure and seed."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["configuration", "federation", "figure", "seed", EXACT, ROUNDED])
    for pair in every:
        for seed, value in pair.exact.items():
            values = (value, pair.rounded.get(seed, float("nan")))
            writer.writerow([*pair[:3], seed, *(f"{v:.4f}" for v in values)])
    return file.getvalue()


def compared(workdir: pathlib.Path, images: str = "") -> tuple[list[Pair], str]:
    """Run both sweeps and pair their figures; and ``text`` of them."""
    sweeps = []
    for name in (EXACT, ROUNDED):
        config = get_config(f"images-{name}" if images else name)
        config.update({"data": {"dir": images}})
        command = f"analysis.precision, {name}"
        sweeps.append(vfljax.run_sweep(config, workdir / name, command=command))
    exact, rounded = (judged(sweep, experiment_of(sweep)) for sweep in sweeps)
    every = list(pairs(exact, rounded))
    attacks = by_attack(exact, rounded)
    return every, text(every, verdicts(exact, rounded), attacks, exact.facts.scale)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare bfloat16 with float32.")
    parser.add_argument("--workdir", type=pathlib.Path, required=True, help="folder of both sweeps")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the tables")
    parser.add_argument("--images", default="", help="folder of CIFAR-10, in place of digits")
    arguments = parser.parse_args()
    vfljax.use_this_machine()
    every, said = compared(arguments.workdir, arguments.images)
    store.write_text(arguments.out / "tables.md", said)
    store.write_text(arguments.out / "precision.csv", as_csv(every))
    print(said)


if __name__ == "__main__":
    main()
