"""The request of an audit: the table, the parties' columns, the attackers and the time.

Texts of a command line, or a JSON file, become a ``Request``, or raise a ``UserError`` of one line.
"""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from vfljax import attacks
from vfljax.datasets import TABLE
from vfljax.datasets import options as asking
from vfljax.errors import Field, UserError, unknown, user_path
from vfljax.sweep.grid import check_text
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT

FEDERATIONS = {
    "split": (SPLIT, MALICIOUS),
    "no_split": (NO_SPLIT,),
    "both": (SPLIT, MALICIOUS, NO_SPLIT),
}
"""The federations that are trained for each value of ``--federation``."""
JOURNAL = "audit.json"  # of an audit, in its folder
FRAME = "table.parquet"  # the file to which ``vfljax.audit`` writes a data frame
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
LEAST_BUDGET = 60.0  # seconds: no attack suite is compiled in less


def of_audit(name: str) -> Field:
    """Returns a field of the request, which messages name by the flag of `vfljax audit`."""
    return Field(f"audit.{name}", f"--{name}")


PARTIES, ATTACKERS, WORKDIR = (of_audit(n) for n in ("parties", "attackers", "workdir"))
EXAMPLE = (PARTIES, "='bank: LIMIT_BAL, AGE; telco: PAY_*, BILL_*'")


@dataclasses.dataclass(frozen=True)
class Request:
    """The request of one audit; every field can be written as JSON.

    Raises:
      UserError: for missing, unknown or contradictory values.
    """

    data: str  # the table's file
    label: str
    parties: Mapping[str, tuple[str, ...]]  # name -> names or globs of its columns
    label_party: str
    federation: str = "split"
    attackers: tuple[str, ...] = ()  # each attacks alone; (): every party without the labels
    known: int = 0  # labels that attackers know; 0: the default (``suite.known_labels``)
    budget: float = 600.0  # seconds
    max_leak: float | None = None  # None: any, and the verdicts say whether a defense protects
    max_cost: float = 1.0  # test utility that may be lost; 1: any
    keep_gain: float = 0.5  # share of the federation's gain over the label party alone to be kept
    seeds: int = 5
    fewest_seeds: int = 0  # seeds that suffice if time is short; 0: no fewer than ``seeds``
    confirm: bool = False  # whether the recommended defense is judged on fresh seeds
    canaries: bool = False  # whether claimed epsilons are audited with label canaries
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the table's loader

    def __post_init__(self) -> None:
        needed = {
            "data": "the file of a table (CSV, Parquet or .npz)",
            "label": "the column that holds the labels",
        }
        for name, remedy in needed.items():
            if not getattr(self, name):
                raise UserError("is needed", field=of_audit(name), remedy=remedy)
        if self.federation not in FEDERATIONS:
            raise unknown(of_audit("federation"), self.federation, FEDERATIONS)
        if len(self.parties) < 2:
            what = f"names {len(self.parties)} party"
            raise UserError(what, field=PARTIES, remedy=("give two or more, such as ", *EXAMPLE))
        if self.label_party not in self.parties:
            raise unknown(("party in ", of_audit("label_party")), self.label_party, self.parties)
        for name in self.attackers:
            if name not in self.parties:
                raise unknown(("party in ", ATTACKERS), name, self.parties)
        if self.label_party in self.attackers:
            what = f"names {self.label_party!r}, who has the labels"
            raise UserError(what, field=ATTACKERS, remedy="name parties that lack them")
        if len(set(self.attackers)) < len(self.attackers):
            raise UserError((ATTACKERS, f"={','.join(self.attackers)} names a party twice."))
        for name, columns in self.parties.items():
            if not columns and name != self.label_party:
                what = f"gives {name!r} no columns"
                raise UserError(what, field=PARTIES, remedy="name some, or leave the party out")
        if not LEAST_BUDGET <= self.budget < math.inf:
            raise UserError(
                (of_audit("budget"), f"={self.budget:g}s is no time that an audit can keep"),
                remedy=f"give {LEAST_BUDGET:g}s or more, such as 10m",
            )
        share = 0, 1, "a number from 0 to 1"
        limits = {
            "known": (0, math.inf, "the number of labels that attackers know"),
            "seeds": (1, math.inf, "1 or more; verdicts need 3"),
            **dict.fromkeys(("max_leak", "max_cost", "keep_gain"), share),
        }
        for name, (least, most, what) in limits.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise UserError(field=of_audit(name), value=value, remedy=f"give {what}")

    @property
    def passive(self) -> tuple[str, ...]:
        """The parties without labels, in order."""
        return tuple(name for name in self.parties if name != self.label_party)

    @property
    def attacking(self) -> tuple[str, ...]:
        """The parties that attack, each alone."""
        return self.attackers or self.passive

    def stored(self) -> dict[str, Any]:
        """Returns the fields as they are after writing and reading JSON."""
        return json.loads(json.dumps(dataclasses.asdict(self)))


FLAGS = {
    "beyond_limits": "",  # an audit has no such flag, and its shares of rows are fixed
    "data.dir": "--data",
    "data.options.label": "--label",
    "data.options.options": "--options",
    "data.shares": "",
    "seeds": "--seeds",
    **{f"attacks.{name}.known": "--known" for name in attacks.TABLE},
}
"""Fields of the config -> flags of `vfljax audit` that set them, where the names differ; "" for no flag."""
AS_GIVEN = ("label", "federation", "known", "max_cost", "keep_gain", "seeds", "confirm", "canaries")
"""The fields of a request that `vfljax audit` and ``vfljax.audit`` pass on as they are given."""


def flag_of(field: Field) -> str:
    """Returns the name of a field in messages of `vfljax audit`, its flag.

    >>> flag_of(Field("attacks.probe.known")), flag_of(Field("data.options.drop"))
    ('--known', '--option=drop')
    """
    return asking.flag_of(field, FLAGS)


def argument_of(field: Field) -> str:
    """Returns the name of a field in messages of ``vfljax.audit``, its argument.

    >>> argument_of(Field("attacks.probe.known")), argument_of(Field("data.options.drop"))
    ('known', 'drop')
    """
    return "table" if field.path == "data.dir" else flag_of(field).rpartition("=")[2].lstrip("-")


def parties_of(text: str) -> dict[str, tuple[str, ...]]:
    """Returns the parties of a text, or of the JSON file {name: [columns]} whose path the text is.

    >>> parties_of("bank: LIMIT_BAL, AGE; telco: PAY_*")
    {'bank': ('LIMIT_BAL', 'AGE'), 'telco': ('PAY_*',)}
    """
    if not text.strip():
        remedy = ("who owns which columns, such as ", *EXAMPLE)
        raise UserError("is needed", field=PARTIES, remedy=remedy)
    if text.lstrip().startswith(("{", "[")):
        remedy = ("write that to a file, and give ", PARTIES, "=FILE.json")
        raise UserError("is given as JSON", field=PARTIES, remedy=remedy)
    if text.strip().lower().endswith(".json"):
        entries = _read_parties(user_path(text.strip(), PARTIES))
    else:
        entries = [_entry(part) for part in text.split(";") if part.strip()]
    if len(entries) == 1 and text.count(":") > 1:
        remedy = ("part them by semicolons, such as ", *EXAMPLE)
        raise UserError("names one party", field=PARTIES, remedy=remedy)
    parties: dict[str, tuple[str, ...]] = {}
    for name, columns in entries:
        try:
            check_text(Field("parties", "the party's name"), name)
        except UserError as error:
            raise UserError((PARTIES, ": ", *error.parts)) from error
        if name in parties:
            remedy = "give each party one entry"
            raise UserError(f"names {name!r} twice", field=PARTIES, remedy=remedy)
        parties[name] = columns
    return parties


def _entry(text: str) -> tuple[str, tuple[str, ...]]:
    name, colon, columns = text.partition(":")
    if not colon:
        what = f": {text.strip()!r} has no colon after the party's name"
        raise UserError((PARTIES, what), remedy=("write ", *EXAMPLE))
    return name.strip(), tuple(filter(None, map(str.strip, columns.split(","))))


def _read_parties(path: pathlib.Path) -> list[tuple[str, tuple[str, ...]]]:
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=list)
    except FileNotFoundError:
        remedy = ("give a JSON file, or ", *EXAMPLE)
        raise UserError((PARTIES, f"={path} is missing"), remedy=remedy) from None
    except IsADirectoryError:
        raise UserError((PARTIES, f"={path} is a folder: give a JSON file.")) from None
    except (OSError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:160]
        raise UserError((PARTIES, f"={path} is no JSON ({why}): correct it.")) from error
    pairs = isinstance(value, list) and all(isinstance(pair, tuple) for pair in value)
    if not pairs or not value:
        remedy = 'give an object {"bank": ["AGE"], "telco": ["PAY_*"]}'
        raise UserError((PARTIES, f"={path}"), remedy=remedy)
    for name, columns in value:
        if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
            what = f"={path}: {name!r} must have a list of names or globs."
            raise UserError((PARTIES, what))
    return [(name, tuple(columns)) for name, columns in value]


def seconds_of(text: str) -> float:
    """Returns the seconds of "10m", "90s", "1.5h" or "600".

    >>> seconds_of("1.5m")
    90.0
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([smh]?)(?:in|ec|r|ours?)?\s*", text)
    if match is None:
        remedy = "write 90s, 10m or 2h"
        raise UserError("is no time", field=of_audit("budget"), value=text, remedy=remedy)
    return float(match[1]) * UNITS[match[2] or "s"]


def options_of(texts: Sequence[str]) -> dict[str, Any]:
    """Returns the loader's options from ``--option=name=value`` flags; the label has a flag of its own."""
    known = asking.of(TABLE["table"])
    options = asking.of_flags(texts, known)
    for name in options:
        if name == "label":
            raise UserError("--option=label=... has a flag of its own: --label.")
        if name not in known:
            raise unknown("option of a table", name, [other for other in known if other != "label"])
    return options
