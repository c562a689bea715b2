"""A stored sweep with its verdicts, as a record. ``sweep_answers`` makes it of a folder.

``verdict_frame`` and ``verdict_columns`` list the columns of the verdicts. One more is ``recommended``: whether
to switch it on, by the ``decision`` on its panel. At most one point of a panel is, at K = ``facts.known``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from vfljax.config import Config
from vfljax.report.decision import Decided
from vfljax.report.frames import Facts, Frames
from vfljax.report.limits import LEVEL
from vfljax.report.points import same_points
from vfljax.report.verdict_columns import with_columns
from vfljax.report.verdict_frame import verdict_frame
from vfljax.store import StoredSweep

CONFIRMED, STAGE2 = "confirmed", "decided"
"""The folders within a sweep's that have the sweep of what an answer names, on fresh seeds, and for each panel
that of the candidates of its decision, on seeds of their own."""


class Judged(NamedTuple):
    """A stored sweep with its verdicts."""

    sweep: StoredSweep
    experiment: Config
    rows: pd.DataFrame  # see ``report.frames``
    trials: pd.DataFrame
    facts: Facts
    attacks: Mapping[str, Mapping[str, Any]]
    verdicts: pd.DataFrame
    confirmed: Judged | None = None  # what was judged again, on fresh seeds
    decisions: Mapping[str, Decided] = {}  # by panel
    # on the decision's own seeds, by panel, at the limits that choose
    stage2: Mapping[str, Judged] = {}

    @property
    def frames(self) -> Frames:
        """The frames of which the verdicts are made."""
        return Frames(self.rows, self.trials, self.facts, self.attacks)

    @property
    def grown(self) -> bool:
        """Whether an audit has grown its trees on a table, whose columns it names. It stores them as recordings
        are, and those of others have no table."""
        data = self.sweep.header["data"]
        return bool(data.get("trees") and data.get("sources"))

    @property
    def leading(self) -> pd.DataFrame:
        """The verdicts of K = ``facts.known``, the number of known labels that the report leads with."""
        known = self.verdicts["known"] == self.facts.known
        return self.verdicts[known]


def judge_frames(
    sweep: StoredSweep,
    experiment: Config,
    frames: Frames,
    level: float = LEVEL,
    published: bool = True,
    other: Judged | None = None,
) -> Judged:
    """Returns a sweep with the verdicts on its frames, or on a part of them, without any decision.

    Args:
      sweep: the stored sweep.
      experiment: the sweep's.
      frames: as ``frames.read_frames`` returns them.
      level: of each limit on which a verdict or a cost rests.
      published: whether the columns of published attacks are computed.
      other: the same frames, judged at another level: what depends on none is taken from it.
    """
    verdicts = verdict_frame(frames.rows, frames.trials, frames.facts, level)
    out = with_columns(verdicts, frames, published, None if other is None else other.verdicts)
    return Judged(sweep, experiment, *frames, out.assign(recommended=False))


def of_same_points(found: Judged, other: Judged) -> pd.DataFrame:
    """Returns the verdicts of another sweep of some of the same configurations, with the first sweep's numbers
    and labels of these, at its headline's number of known labels.

    Args:
      found: the first sweep.
      other: the other one; configurations that the first does not have are left out.
    """
    number_of = same_points(found.trials, other.trials)
    out = other.leading[other.leading["configuration"].isin(number_of)]
    out = out.assign(configuration=out["configuration"].map(number_of), known=found.facts.known)
    first = found.verdicts.drop_duplicates("configuration")[["configuration", "label", "method"]]
    return out.drop(columns=["label", "method"]).merge(first, on="configuration")
