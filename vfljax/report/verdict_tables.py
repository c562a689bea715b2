"""The tables of verdicts: one row for each method or configuration, as frames of text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from vfljax.report.frames import PANELS
from vfljax.report.judged_sweep import Judged
from vfljax.report.limits import of_row
from vfljax.report.templates import paragraphs
from vfljax.report.verdict_frame import LOCAL_ONLY_LEADER
from vfljax.report.verdicts import LITTLE, MEANINGS, VERDICTS, Verdict
from vfljax.report.words import NONE, count, figure, points, share, signed, with_limits
from vfljax.types import SPLIT

ORDER = (
    *(Verdict.PROTECTS, Verdict.LEAKS_MUCH_LESS, Verdict.LEAKS_LESS, Verdict.UNCLEAR),
    *(Verdict.CANNOT_SAY, Verdict.NO_BASELINE, Verdict.NOTHING_TO_PROTECT, Verdict.NO_VERDICT),
    *(Verdict.LEAKS_AS_BEFORE, Verdict.IS_UNDEFENDED),
)
"""The verdicts in the order in which tables list them."""
REMARK = 60
"""The characters of a remark that the page and LaTeX show."""
AT_LEAST = "≥ "
"""Stands before a leak where dear attacks were not run, because cheap ones have rejected the point."""
NO_ATTACK = "no attack reads more"
"""Stands for the leading attack if none reads more than can be read without the federation."""
FAINT = "attacks that know it read little of planted labels at this strength"
"""Is said of a point that attacks which know its defense hardly test, by ``defenses.rows.Strengths.faint``."""
MEANING = "A verdict is the first of these that the limits allow."
KNOWLEDGE = (
    "The leak if attackers know at most so many labels, the attack that leads, and the excess: what it reads "
    "beyond what the same party learns from as many labels without the federation."
)
UNPUBLISHED = (
    "What published attacks read, and what those read that know the defense or learn from what crossed the "
    "wire. Listed are configurations on which the latter read more, on average over seeds. There published "
    "figures show how such an attack fails, not that labels are safe."
)


def caption(judged: Judged) -> str:
    """Returns the caption of the table of verdicts."""
    facts, goal = judged.facts, judged.facts.goal
    asked = [f"{share(goal.keep_gain)} of the federation's gain is kept"] * bool(goal.keep_gain)
    if goal.max_cost < 1:
        asked.append(f"at most {points(goal.max_cost).removeprefix('+')} are lost")
    (text,) = paragraphs(
        "verdicts",
        scale=facts.scale,
        chance=figure(facts.chance),
        asked=" and ".join(asked),
        at_least=judged.leading["at_least"].any(),
    )
    data = judged.experiment.data
    if data.permute_labels:
        of_rows = (
            f"\n\nControl: the labels of {share(data.permute_labels)} of the rows were permuted "
        )
        text += of_rows + (
            "before the split, among rows of equal scores of the passive parties' columns, so that what is "
            "read beyond the local-only baseline came through the federation."
            if data.permute_groups
            else "before the split. Columns carry no information on these, so that what is read above chance "
            "came through the federation."
        )
    return text


def methods(judged: Judged) -> pd.DataFrame:
    """Returns the table of the first screen: in each panel undefended, then a row for each method, the
    recommended one first. Each method has its operating point, or without one the point that costs least."""
    of = judged.leading[judged.leading["representative"]]
    rank = {verdict.value: place for place, verdict in enumerate(ORDER)}
    keys = of.assign(
        **{name: ~of[name] for name in ("undefended", "recommended", "chosen")},
        verdict=of["verdict"].map(rank),
        panel=of["panel"].map([*PANELS].index),
    )
    names = ["panel", "undefended", "recommended", "chosen", "verdict", "leak"]
    of = of.loc[keys.sort_values(names, kind="stable").index]
    return _texts(judged, of, brief=True)


def explored(judged: Judged) -> str:
    """Returns which seeds the table of the first screen has, if answers have others; else ""."""
    if not judged.stage2:
        return ""
    seeds = count(judged.experiment.seeds, "seed")
    return (
        f"On the {seeds} that explored, at uncorrected limits. The answers have seeds of their own."
    )


def verdict_table(judged: Judged) -> pd.DataFrame:
    """Returns a row for each configuration and panel, with all that its verdict rests on."""
    return _texts(judged, judged.leading)


def _texts(judged: Judged, verdicts: pd.DataFrame, brief: bool = False) -> pd.DataFrame:
    """Returns rows of the verdict frame as text.

    Args:
      judged: the sweep.
      verdicts: some of its rows.
      brief: whether to leave out limits of differences, and what is no decision.
    """
    facts, several = judged.facts, judged.verdicts["panel"].nunique() > 1
    columns: dict[str, Callable[[dict[str, Any]], str]] = {"configuration": lambda v: v["label"]}
    if several:
        columns["top model"] = lambda v: "yes" if v["panel"] == SPLIT else "no"
    columns |= {
        "verdict": _verdict,
        "leaks": lambda v: AT_LEAST * v["at_least"] + with_limits(*of_row(v, "leak")),
        "without the federation": lambda v: figure(v["local_only"]),
    }
    if not brief:
        columns["excess"] = _excess
        columns["change of the leak"] = _change
    columns |= {
        facts.utility: lambda v: _utility(v, brief),
        "change": lambda v: _points(v, brief),
        "gain kept": lambda v: gain_kept(v["share_kept"]),
        "cost": lambda v: NONE if v["undefended"] else v["cost"],
        "strongest attack": lambda v: leader(v, brief),
    }
    several_seeds = brief and verdicts["seeds"].nunique() > 1
    if not brief:
        columns["attacks tried"] = lambda v: f"{v['variants']} of {v['families']} families"
    if several_seeds or not brief:
        columns["seeds"] = lambda v: str(v["seeds"])
    columns["remark"] = lambda v: remark(v, facts.utility)
    rows = verdicts.to_dict("records")
    table = pd.DataFrame({title: [cell(row) for row in rows] for title, cell in columns.items()})
    kept = [title for title in table if title not in ("gain kept", "remark") or _said(table[title])]
    return table[kept]


def _verdict(v: dict[str, Any]) -> str:
    """Returns the verdict of a row as text. Where dear attacks were not run, nothing shows how much less leaks
    than undefended, nor that it is as much."""
    if v["undefended"]:
        return NONE
    return (
        "still leaks" if v["at_least"] and v["verdict"] == Verdict.LEAKS_AS_BEFORE else v["verdict"]
    )


def _said(column: pd.Series) -> bool:
    return not column.isin(["", NONE]).all()


def _possible(v: dict[str, Any], name: str, base: float) -> tuple[float, float]:
    """Returns the limits of a difference to a figure ``base`` in [0, 1], so that their sums stay in [0, 1]."""
    _, lower, upper = of_row(v, name)
    return max(lower, -base), min(upper, 1 - base)


def _excess(v: dict[str, Any]) -> str:
    # against the learner with the same attackers and draws, which may read less than ``local_only``
    return signed(v["e"], *_possible(v, "e", 0.0))


def _change(v: dict[str, Any]) -> str:
    if v["undefended"] or v["at_least"]:
        return NONE
    return signed(v["d"], *_possible(v, "d", v["leak"] - v["d"]))


def _utility(v: dict[str, Any], brief: bool) -> str:
    if brief:
        return figure(v["utility"], 3)
    return with_limits(*np.clip(of_row(v, "utility"), 0, 1), digits=3)


def _points(v: dict[str, Any], brief: bool) -> str:
    if v["undefended"]:
        return NONE
    change = v["utility_change"]
    limits = () if brief else _possible(v, "utility_change", v["utility"] - change)
    return points(change, *limits)


def gain_kept(value: float) -> str:
    """Returns the share of the gain that is kept as text; where less than nothing is, it is said in words."""
    return "loses more than the gain" if value < 0 else share(value)


def leader(v: dict[str, Any], brief: bool = True) -> str:
    """Returns the attack that leads a configuration; with the number of its seeds unless ``brief``."""
    if not v["leader"]:
        return NONE
    name = NO_ATTACK if v["leader"] == LOCAL_ONLY_LEADER else v["leader"]
    return name if brief else f"{name} (on {v['leader_seeds']} of {v['seeds']} seeds)"


def remark(v: dict[str, Any], utility: str) -> str:
    """Returns what a reader of a verdict must know besides: a dict of the verdict frame's columns.

    Args:
      v: the row.
      utility: the name of the utility.
    """
    parts = ["recommended"] * v["recommended"]
    if math.isnan(v["leak"]):
        parts.append("not attacked")
    elif v["defenses"] and not v["chosen"] and v["representative"]:
        parts.append(f"no operating point keeps enough {utility} on validation rows")
    if not v["recommended"] and v["chosen"]:
        parts.append("operating point")
    if v["author_says"]:
        parts.append("its author says that an attack knows it, and none reads more than others")
    elif not v["known_by"] and not v["at_least"]:
        parts.append("no attack that knows it was tried")
    elif v["faint"] and Verdict(v["verdict"]).helps:
        parts.append(FAINT)
    if v["missing"]:
        parts.append(f"no figure of {v['missing']}")
    if v["broken"]:
        parts.append(f"broken and not counted: {v['broken']}")
    if v["seeds_left_out"]:
        parts.append(f"{count(v['seeds_left_out'], 'seed')} left out")
    return "; ".join(parts)


def shortened(table: pd.DataFrame) -> pd.DataFrame:
    """Returns a table whose remarks have at most ``REMARK`` characters."""
    if "remark" not in table:
        return table
    short = [textwrap.shorten(text, REMARK, placeholder=" …") for text in table["remark"]]
    return table.assign(remark=short)


def meanings(judged: Judged) -> pd.DataFrame:
    """Returns a row for each verdict that is given: what it means, and on how many configurations."""
    given = judged.leading.loc[~judged.leading["undefended"], "verdict"].value_counts()
    rows = [(v.value, MEANINGS[v], str(given[v.value])) for v in VERDICTS if v.value in given]
    return pd.DataFrame(rows, columns=["verdict", "meaning", "configurations"])


def by_knowledge(judged: Judged) -> pd.DataFrame:
    """Returns a row for each configuration and panel, with a column for each number of known labels."""
    every = judged.verdicts
    if every["known"].nunique() < 2:
        return pd.DataFrame()
    cells = [
        f"{figure(v['leak'])} {leader(v)}, excess {signed(v['e'])}" if v["leader"] else NONE
        for v in every.to_dict("records")
    ]
    table = every.assign(cell=cells, federation=every["panel"].map(PANELS))
    table["configuration"] = table["label"]
    table["known"] = table["known"].map("{} labels".format)
    wide = table.pivot_table(
        "cell", ["configuration", "federation"], "known", aggfunc="first", sort=False
    )
    return wide.reset_index().rename_axis(columns=None)


def published(judged: Judged) -> pd.DataFrame:
    """Returns a row for each point that published attacks read less than others."""
    of = judged.leading
    of = of[(of["leak"] - of["published_leak"] > LITTLE) & (of["defenses"] != "")]
    return pd.DataFrame(
        {
            "configuration": of["label"],
            "federation": of["panel"].map(PANELS),
            "published attacks read": of["published_leak"].map(figure),
            "of these the strongest": [
                leader({"leader": name}) for name in of["published_leader"].fillna("")
            ],
            "all attacks read": of["leak"].map(figure),
            "the strongest": [leader(v) for v in of.to_dict("records")],
            "more by": (of["leak"] - of["published_leak"]).map(signed),
        }
    )
