"""The configurations of a sweep: their knobs, their labels, and the defenses of their chains."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from vfljax import defenses
from vfljax.report.words import number

NUMBERS = ("learning_rate", "momentum", "weight_decay", "decay", "strength")
"""The numbers of training that may be axes of a grid, and are then in labels."""


def points_of(trials: pd.DataFrame) -> pd.DataFrame:
    """Returns a row for each configuration, by its number, with the columns

        method, defenses
        knobs    a dict such as {"kdk.epsilon": .45}. Numbers of training are among them if they vary in the
                 sweep
        label    the method, with the knobs that vary in it or have no default. Texts that several
                 configurations would have are followed by the configuration's number

    Args:
      trials: ``frames.Frames.trials``.
    """
    points = trials.drop_duplicates("configuration").set_index("configuration")
    varied = [
        name for name in NUMBERS if name in trials and trials[name].fillna(0).nunique(False) > 1
    ]
    values = points[[name for name in trials if "." in name] + varied]
    values = values.fillna(dict.fromkeys(varied, 0)).to_dict("records")
    points = points[["method", "defenses"]].assign(
        knobs=[{name: of[name] for name in of if not pd.isna(of[name])} for of in values]
    )
    points["label"] = ""
    for _, of in points.groupby("method", sort=False):
        every = {name for knobs in of["knobs"] for name in knobs}
        in_label = {
            name
            for name in every
            if name in NUMBERS
            or _required(name)
            or len({knobs.get(name) for knobs in of["knobs"]}) > 1
        }
        given = of[["method", "defenses", "knobs"]].itertuples(index=False, name=None)
        points.loc[of.index, "label"] = [_label(*point, in_label) for point in given]
    numbered = points["label"] + " #" + points.index.astype(str)
    several = points["label"].duplicated(keep=False)
    return points.assign(label=points["label"].mask(several, numbered))


def _label(method: str, chain: str, knobs: Mapping[str, Any], in_label: Collection[str]) -> str:
    """Returns the method with "epsilon=.3" for each knob in the label; with its defense if two have a knob of
    that name."""
    named = [name for name in knobs if name in in_label]
    last = [name.split(".")[-1] for name in named]
    out = [method]
    for name, word in zip(named, last):
        defense, _, knob = name.partition(".")
        if last.count(word) > 1:
            word = name
        elif defense in members_of(chain):
            remarks = defenses.TABLE[defense].remarks(*_values_of(defense, knobs))
            word = remarks.knob_labels.get(knob, knob)
        value = knobs[name]
        out.append(value if isinstance(value, str) else f"{word}={number(value)}")
    return " ".join(out)


def _required(name: str) -> bool:
    """Returns whether a knob has no default, so that a label names it also where it does not vary."""
    defense, _, knob = name.partition(".")
    if defense == "model":  # a method has one model, which its name shows
        return False
    return bool(knob) and defense in defenses.TABLE and knob in defenses.TABLE[defense].required


class Member(NamedTuple):
    """A defense of a configuration's chain, with its knobs and options by their names in the defense."""

    configuration: int
    label: str  # of the configuration
    defense: str
    knobs: dict[str, float]
    options: dict[str, Any]


def members(points: pd.DataFrame) -> Iterator[Member]:
    """Yields the defenses of each configuration of ``points_of``."""
    columns = points[["label", "defenses", "knobs"]]
    for configuration, label, chain, knobs in columns.itertuples(name=None):
        for name in members_of(chain):
            yield Member(configuration, label, name, *_values_of(name, knobs))


def _values_of(defense: str, knobs: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    prefix = f"{defense}."
    values = {k.removeprefix(prefix): v for k, v in knobs.items() if k.startswith(prefix)}
    return defenses.TABLE[defense].knobs_and_options(values)


def members_of(chain: str) -> list[str]:
    """Returns the names of the defenses of a chain, the column ``defenses``."""
    return [name for name in chain.split("+") if name]


def same_points(trials: pd.DataFrame, others: pd.DataFrame) -> dict[int, int]:
    """Returns the number of the configuration with the same defenses and knobs, by that of another sweep.

    Args:
      trials: of a sweep.
      others: of another sweep; configurations that the first does not have are left out.
    """
    # of either: a point with a knob or option that the first sweep has nowhere is none of its points
    given = (name for table in (trials, others) for name in table if "." in name or name in NUMBERS)
    names = list(dict.fromkeys(["defenses", *given]))
    first, second = (
        table.drop_duplicates("configuration")
        .reindex(columns=[*names, "configuration"])
        .astype(dict.fromkeys(names, object))
        for table in (trials, others)
    )
    both = second.merge(first, on=names, suffixes=("_other", ""))
    return dict(zip(both["configuration_other"], both["configuration"]))
