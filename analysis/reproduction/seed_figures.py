"""The figures of a sweep by seed, as papers score them, for the papers' figures and the evidence on claims."""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.reproduction.our_figures import published_figures
from vfljax.report.frames import read_frames
from vfljax.report.limits import SHOWN_LEVEL, Limits, limits
from vfljax.report.points import points_of
from vfljax.store import StoredSweep
from vfljax.types import SPLIT, federation_of


class SeedFigures(NamedTuple):
    """The figures of a sweep by seed; ``kind`` is that of a federation."""

    points: (
        pd.DataFrame
    )  # by configuration: label, method, defenses, and the knobs, NaN if another method's
    trials: (
        pd.DataFrame
    )  # configuration, kind, seed, trial, accuracy, auc; NaN where training diverged
    attacks: (
        pd.DataFrame
    )  # configuration, kind, seed, label, attack, signal, and the stored figures

    def utility(self, configuration: int, column: str, kind: str = SPLIT) -> Limits:
        """Returns the mean of "accuracy" or "auc" with its 95 % t-interval; ``count`` is 0 without figures."""
        of = self.trials
        found = of[(of["configuration"] == configuration) & (of["kind"] == kind)]
        return over_seeds(found[column])

    def attack(self, configuration: int, label: str, kind: str, column: str) -> Limits:
        """Returns the mean of an attack's figure with its interval; ``count`` is 0 if it was not run."""
        of = self.attacks
        found = of[(of["configuration"] == configuration) & (of["label"] == label)]
        found = found[found["kind"] == kind]
        return over_seeds(found[column] if column in found else pd.Series(dtype=float))


def seed_figures(sweep: StoredSweep) -> SeedFigures:
    """Returns the figures of a stored sweep."""
    trials = read_frames(sweep).trials
    points = points_of(trials).sort_index()
    points = points.join(pd.DataFrame.from_dict(points.pop("knobs").to_dict(), orient="index"))
    oriented = "oriented_" if "test_oriented_accuracy" in trials else ""
    auc = trials.get("test_oriented_auc", np.nan)
    trials = trials.assign(
        kind=[federation_of(name).kind for name in trials["federation"]],
        accuracy=trials[f"test_{oriented}accuracy"],
        auc=pd.Series(auc, trials.index, dtype=float),
    )
    attacks = published_figures(sweep)
    if len(attacks):
        place = trials.set_index("trial")["configuration"]
        signals = [json.loads(text).get("signal", "") for text in attacks["options"]]
        attacks = attacks.assign(configuration=attacks["trial"].map(place), signal=signals)
    else:
        attacks = pd.DataFrame(columns=["configuration", "kind", "seed", "label", "signal"])
    names = ["configuration", "kind", "seed", "trial", "diverged", "accuracy", "auc"]
    return SeedFigures(points, trials[names], attacks)


def over_seeds(values: pd.Series) -> Limits:
    """Returns the mean over seeds with its 95 % t-interval, NaN for fewer than 2; NaN is left out."""
    return limits(values.to_numpy(float), level=SHOWN_LEVEL, fewest=2)
