"""One panel of a report: its decision, its verdicts, and the point that is compared with undefended."""

from __future__ import annotations

from typing import NamedTuple

from vfljax.report.decision import Answer, Decided, Row
from vfljax.report.frames import Facts
from vfljax.report.judged_sweep import Judged
from vfljax.report.ruler import Conduct, by_conduct
from vfljax.report.verdict_frame import LOCAL_ONLY_LEADER
from vfljax.report.words import count, listed
from vfljax.types import NO_SPLIT, SPLIT

TITLES = {SPLIT: "With a top model", NO_SPLIT: "Without a top model"}


class Panel(NamedTuple):
    """What is told of one panel."""

    name: str
    judged: Judged
    competing: Judged  # the sweep of the decision's own seeds, or the sweep itself
    decided: Decided
    conduct: Conduct  # of undefended

    @property
    def facts(self) -> Facts:
        return self.judged.facts

    @property
    def table(self) -> list[Row]:
        """The panel's verdicts at the headline's number of known labels."""
        of = self.judged.leading
        return of[of["panel"] == self.name].to_dict("records")

    @property
    def shown(self) -> Row | None:
        """The point of which figures are given beside undefended's."""
        d = self.decided
        nearest = d.answer in (Answer.NONE_PROTECTS, Answer.OPEN)
        return d.point or d.leading or (d.keeps if nearest else None)


def panel_of(judged: Judged, name: str) -> Panel:
    """Returns what a report tells of a panel.

    Args:
      judged: the sweep.
      name: of the panel.
    """
    decided = judged.decisions[name]
    competing = judged.stage2.get(name, judged)
    bare = competing.leading
    labels = bare.loc[bare["undefended"] & (bare["panel"] == name), "label"]
    conduct = by_conduct(competing, name, labels.iloc[0] if len(labels) else "")
    return Panel(name, judged, competing, decided, conduct)


def attackers(p: Panel, v: Row) -> str:
    """Returns who runs the leading attack, such as "telco and shop together"; "" if none leads."""
    if v["leader"] in ("", LOCAL_ONLY_LEADER):
        return ""
    rows = p.competing.rows
    of = rows[(rows["label"] == v["leader"]) & (rows["panel"] == p.name)]
    names = [p.facts.parties[int(party)] for party in of["attackers"].iloc[0].split("+")]
    return listed(names) + " together" * (len(names) > 1)


def counts_tried(judged: Judged) -> str:
    """Returns how many defenses and points were tried, such as "2 defenses, 20 points"."""
    of = judged.leading[judged.leading["defenses"] != ""]
    methods, places = of["method"].nunique(), of["configuration"].nunique()
    return f"{count(methods, 'defense')}, {count(places, 'point')}"
