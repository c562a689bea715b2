"""Accuracies, leaks and verdicts in bfloat16, and of a control, beside those in float32.

    python -m analysis.precision --workdir=runs/precision --out=analysis/results/benchmark/precision
    python -m analysis.precision --images=DIR --workdir=runs/precision_images \
        --out=analysis/results/benchmark/precision/images

Runs the three variants of configs/precision.py as sweeps below ``workdir`` (what is there already is not run
again), and writes the tables of ``analysis/results/benchmark/precision``: tables.md for people, and
precision.csv with a line per configuration, federation, figure and seed. Trials of one seed have the same rows,
batches and initial weights in all, so that differences are paired by seed. The control is float32 with a
learning rate that is larger by a millionth: what differs there, rounding of any size may change.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

import vfljax
from configs.precision import get_config
from vfljax import store
from vfljax.report import tables
from vfljax.report.frames import PANELS
from vfljax.report.judged_sweep import Judged
from vfljax.report.limits import SHOWN_LEVEL, limits
from vfljax.report.sweep_answers import judge_stored
from vfljax.sweep.grid import experiment_of

EXACT, ROUNDED, CONTROL = "float32", "bfloat16", "control"
VARIANTS = EXACT, ROUNDED, CONTROL
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
    """One figure of a configuration in float32 and in another variant, by seed."""

    configuration: str
    federation: str  # a panel
    figure: str
    exact: pd.Series
    other: pd.Series

    @property
    def change(self) -> Interval:
        """The other variant less float32, paired by seed."""
        return interval((self.other - self.exact).dropna())

    @property
    def certain(self) -> bool:
        """Whether the interval of the change excludes 0."""
        return abs(self.change.mean) > self.change.half

    @property
    def cells(self) -> list[str]:
        change = self.change
        return [
            *(self.configuration, PANELS[self.federation], self.figure),
            *(str(interval(values)) for values in (self.exact, self.other)),
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


def pairs(exact: Judged, other: Judged) -> Iterator[Pair]:
    """Test accuracy, and the leak of the strongest attack, of every configuration and panel of both sweeps."""
    both = figures(exact), figures(other)
    attacked = exact.leading[exact.leading["leak"].notna()]
    for c, panel, label in attacked[[*PLACE, "label"]].itertuples(index=False, name=None):
        for name in (ACCURACY, LEAK):
            yield Pair(label, panel, name, *(of[name].loc[c, panel] for of in both))


def by_attack(exact: Judged, other: Judged, variant: str) -> pd.DataFrame:
    """A row of text per attack and panel: its leak, mean over all configurations, in either variant, and the
    configuration in which its mean over seeds changes most."""
    names = ["panel", "label", "configuration"]
    leaks = [
        sweep.rows[sweep.rows["role"] == "attack"].groupby(names, sort=False)["leak"].mean()
        for sweep in (exact, other)
    ]
    both = pd.concat(leaks, axis=1, join="inner", keys=[EXACT, variant])
    label = exact.leading.drop_duplicates("configuration").set_index("configuration")["label"]
    rows = []
    for (panel, attack), of in both.groupby(["panel", "label"], sort=False):
        changes = (of[variant] - of[EXACT]).droplevel(["panel", "label"])
        most = changes.abs().idxmax()
        words = f"{changes[most]:+.3f} ({label[most]})" if changes[most] else "none"
        means = (f"{of[name].mean():.3f}" for name in (EXACT, variant))
        rows.append([attack, PANELS[str(panel)], *means, words])
    return pd.DataFrame(rows, columns=["attack", "federation", EXACT, variant, "largest change"])


def verdicts(exact: Judged, other: Judged, variant: str) -> pd.DataFrame:
    """A row of text per defended configuration and panel: its verdict in either variant."""
    judgments = (
        sweep.leading[~sweep.leading["undefended"]].set_index([*PLACE, "label"])["verdict"]
        for sweep in (exact, other)
    )
    both = pd.concat(judgments, axis=1, join="inner", keys=[EXACT, variant]).reset_index()
    rows = [
        [label, PANELS[str(panel)], *map(str, said)]
        for panel, label, *said in both[["panel", "label", EXACT, variant]].to_numpy()
    ]
    return pd.DataFrame(rows, columns=["configuration", "federation", EXACT, variant])


def section(exact: Judged, other: Judged, variant: str, scale: str) -> str:
    """All tables of a variant beside float32 as Markdown, and what is largest in the first.

    ``scale`` is that of leaks.
    """
    every = list(pairs(exact, other))
    header = ["configuration", "federation", "figure", EXACT, variant, "change, paired by seed"]
    certain = [pair for pair in every if pair.certain]
    lines = [
        f"# {variant} beside {EXACT}",
        "",
        f"Means over {len(every[0].exact)} seeds with 95 % t-intervals. Accuracy is of test rows; the figure "
        f"of the strongest attack is the {scale} of the one that reads most in each run. *: the interval "
        f"of the change excludes 0, as {len(certain)} of {len(every)} do; by chance alone "
        f"{len(every) / 20:.1f} would.",
        "",
        tables.markdown(pd.DataFrame([pair.cells for pair in every], columns=header)),
        "",
    ]
    for figure in (ACCURACY, LEAK):
        pair = max((p for p in every if p.figure == figure), key=lambda p: abs(p.change.mean))
        at = f"{pair.configuration}, {PANELS[pair.federation]}"
        lines.append(f"- Largest change of the {figure}: {pair.change.mean:+.3f} ({at}).")
    lines += ["", "## Verdicts", "", tables.markdown(verdicts(exact, other, variant)), ""]
    means = f"{scale}, mean over all configurations and seeds."
    lines += ["## Every attack by itself", "", means, ""]
    return "\n".join([*lines, tables.markdown(by_attack(exact, other, variant))]) + "\n"


def by_seed(sweeps: Mapping[str, Judged]) -> pd.DataFrame:
    """A row per configuration, federation, figure and seed, with a column of each variant."""
    exact, *others = sweeps
    columns = {name: list(pairs(sweeps[exact], sweeps[name])) for name in others}
    rows = []
    for of in zip(*columns.values(), strict=True):
        named = {exact: of[0].exact} | dict(zip(columns, (pair.other for pair in of), strict=True))
        frame = pd.DataFrame(named).rename_axis("seed").reset_index()
        for place, name in enumerate(("configuration", "federation", "figure")):
            frame.insert(place, name, of[0][place])
        rows.append(frame)
    return pd.concat(rows)


def compared(workdir: pathlib.Path, images: str = "") -> dict[str, Judged]:
    """Runs the sweeps of all variants, and returns them judged."""
    sweeps = {}
    for name in VARIANTS:
        config = get_config(f"images-{name}" if images else name)
        config.update({"data": {"dir": images}})
        sweep = vfljax.run_sweep(config, workdir / name, command=f"analysis.precision, {name}")
        sweeps[name] = judge_stored(sweep, experiment_of(sweep))
    return sweeps


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare bfloat16 and a control with float32.")
    parser.add_argument("--workdir", type=pathlib.Path, required=True, help="folder of the sweeps")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the tables")
    parser.add_argument("--images", default="", help="folder of CIFAR-10, in place of digits")
    arguments = parser.parse_args()
    vfljax.use_this_machine()
    sweeps = compared(arguments.workdir, arguments.images)
    exact, *others = sweeps.values()
    scale = exact.facts.scale
    text = "\n".join(
        section(exact, other, name, scale) for name, other in zip(VARIANTS[1:], others, strict=True)
    )
    store.write_text(arguments.out / "tables.md", text)
    table = by_seed(sweeps).to_csv(index=False, lineterminator="\n", float_format="%.4f")
    store.write_text(arguments.out / "precision.csv", table)
    print(text)


if __name__ == "__main__":
    main()
