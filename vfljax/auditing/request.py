"""What is asked of an audit: whose table it is, who owns which columns, and how much time there is.

What enters: texts of a command line, or a JSON file. What leaves: a ``Request``, or a ``UserError`` of one
line. The table itself is looked at in ``table``.
"""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from vfljax.datasets import TABLE
from vfljax.datasets import options as asking
from vfljax.errors import UserError, unknown
from vfljax.sweep.naming import check_name
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT

FEDERATIONS = {
    "split": (SPLIT, MALICIOUS),
    "no_split": (NO_SPLIT,),
    "both": (SPLIT, MALICIOUS, NO_SPLIT),
}
"""The federations that are trained for each value of ``--federation``."""
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
LEAST_BUDGET = 60.0  # seconds: no attack suite is compiled in less
EXAMPLE = "--parties='bank: LIMIT_BAL, AGE; telco: PAY_*, BILL_*'"


@dataclasses.dataclass(frozen=True)
class Request:
    """One audit, as it was asked for; every field can be written as JSON."""

    data: str  # the table's file
    label: str
    parties: Mapping[str, tuple[str, ...]]  # name -> names or globs of its columns
    label_party: str
    federation: str = "split"
    attackers: tuple[str, ...] = ()  # each attacks alone; (): every party without the labels
    known: int = 0  # labels that attackers know; 0: 40, or two a class
    budget: float = 600.0  # seconds
    max_leak: float = math.nan  # nan: any, and the verdicts say whether a defense protects
    max_cost: float = 0.02
    seeds: int = 5
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the table's loader

    def __post_init__(self) -> None:
        if not self.data:
            raise UserError("--data is needed: the file of a table (CSV, Parquet or .npz).")
        if not self.label:
            raise UserError("--label is needed: the column that holds the labels.")
        if self.federation not in FEDERATIONS:
            raise unknown("--federation", self.federation, FEDERATIONS)
        if len(self.parties) < 2:
            raise UserError(
                f"--parties names {len(self.parties)} party: give two or more, such as {EXAMPLE}."
            )
        if self.label_party not in self.parties:
            raise unknown("party in --label_party", self.label_party, self.parties)
        for name in self.attackers:
            if name not in self.parties:
                raise unknown("party in --attackers", name, self.parties)
        if self.label_party in self.attackers:
            raise UserError(
                f"--attackers names {self.label_party!r}, who has the labels: name parties that lack them."
            )
        if len(set(self.attackers)) < len(self.attackers):
            raise UserError(f"--attackers={','.join(self.attackers)} names a party twice.")
        for name, columns in self.parties.items():
            if not columns and name != self.label_party:
                raise UserError(
                    f"--parties: {name!r} has no columns: name some, or leave the party out."
                )
        if self.known < 0:
            raise UserError(f"--known={self.known}: give the number of labels that attackers know.")
        if self.seeds < 1:
            raise UserError(f"--seeds={self.seeds}: give 1 or more; verdicts need 3.")
        if not LEAST_BUDGET <= self.budget < math.inf:
            raise UserError(
                f"--budget={self.budget:g}s is no time that an audit can keep: give {LEAST_BUDGET:g}s or "
                "more, such as 10m."
            )
        for flag in ("max_leak", "max_cost"):
            value = getattr(self, flag)
            if not (0 <= value <= 1 or (flag == "max_leak" and math.isnan(value))):
                raise UserError(f"--{flag}={value:g}: give a number from 0 to 1.")

    @property
    def passive(self) -> tuple[str, ...]:
        """The parties without labels, in order."""
        return tuple(name for name in self.parties if name != self.label_party)

    @property
    def attacking(self) -> tuple[str, ...]:
        """Who attacks."""
        return self.attackers or self.passive

    def stored(self) -> dict[str, Any]:
        """As JSON reads it again; what is nan, as null."""
        fields = dataclasses.asdict(self)
        fields["max_leak"] = None if math.isnan(self.max_leak) else self.max_leak
        return json.loads(json.dumps(fields))


FLAGS = (
    *((field, flag) for field, flag in asking.FLAGS if flag != "--data_dir"),
    (r"(config\.)?data\.dir\b", "--data"),
    (r"config\.attacks\.\w+: known=", "--known="),
    (r"config\.seeds\b", "--seeds"),
    (r"; lift all limits by launch\.sweep's --beyond_limits", ""),
    (r"give more rows or larger shares", "give more rows"),
    (
        r"^data: train, validation, test = .* of (\d+) rows: ",
        r"a table of \1 rows cannot be divided into training, validation and test rows: ",
    ),
)
"""What messages call by a field of a config, and what it is called here."""


def spoken(message: str) -> str:
    """A message as one who gave flags, and no config, can follow it.

    >>> spoken("config.attacks.probe: known=1 labels are fewer than the 2 classes")
    '--known=1 labels are fewer than the 2 classes'
    """
    said = asking.spoken(message, asking.of(TABLE["table"]), FLAGS)
    return said.replace("--option=label=", "--label=")


def parties_of(text: str) -> dict[str, tuple[str, ...]]:
    """The parties of ``"bank: LIMIT_BAL, AGE; telco: PAY_*"``, or of a JSON file {name: [columns]}.

    >>> parties_of("bank: LIMIT_BAL, AGE; telco: PAY_*")
    {'bank': ('LIMIT_BAL', 'AGE'), 'telco': ('PAY_*',)}
    """
    if not text.strip():
        raise UserError(f"--parties is needed: who owns which columns, such as {EXAMPLE}.")
    if text.lstrip().startswith(("{", "[")):
        raise UserError(
            "--parties is given as JSON: write that to a file, and give --parties=FILE.json."
        )
    if text.strip().lower().endswith(".json"):
        entries = _of_file(pathlib.Path(text.strip()))
    else:
        entries = [_entry(part) for part in text.split(";") if part.strip()]
    if len(entries) == 1 and text.count(":") > 1:
        raise UserError(f"--parties names one party: part them by semicolons, such as {EXAMPLE}.")
    parties: dict[str, tuple[str, ...]] = {}
    for name, columns in entries:
        check_name("--parties: the party", name)
        if name in parties:
            raise UserError(f"--parties names {name!r} twice: give each party one entry.")
        parties[name] = columns
    return parties


def _entry(text: str) -> tuple[str, tuple[str, ...]]:
    name, colon, columns = text.partition(":")
    if not colon:
        raise UserError(
            f"--parties: {text.strip()!r} has no colon after the party's name: write {EXAMPLE}."
        )
    return name.strip(), tuple(filter(None, map(str.strip, columns.split(","))))


def _of_file(path: pathlib.Path) -> list[tuple[str, tuple[str, ...]]]:
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=list)
    except FileNotFoundError:
        raise UserError(f"--parties={path} is missing: give a JSON file, or {EXAMPLE}.") from None
    except IsADirectoryError:
        raise UserError(f"--parties={path} is a folder: give a JSON file.") from None
    except (OSError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:160]
        raise UserError(f"--parties={path} is no JSON ({why}): correct it.") from error
    pairs = isinstance(value, list) and all(isinstance(one, tuple) for one in value)
    if not pairs or not value:
        raise UserError(
            f'--parties={path}: give an object {{"bank": ["AGE"], "telco": ["PAY_*"]}}.'
        )
    for name, columns in value:
        if not isinstance(columns, list) or not all(isinstance(one, str) for one in columns):
            raise UserError(f"--parties={path}: {name!r} must have a list of names or globs.")
    return [(name, tuple(columns)) for name, columns in value]


def seconds_of(text: str) -> float:
    """The seconds of "10m", "90s", "1.5h" or "600".

    >>> seconds_of("1.5m")
    90.0
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([smh]?)(?:in|ec|r|ours?)?\s*", text)
    if match is None:
        raise UserError(f"--budget={text!r} is no time: write 90s, 10m or 2h.")
    return float(match[1]) * UNITS[match[2] or "s"]


def options_of(texts: Sequence[str]) -> dict[str, Any]:
    """The loader's options of ``--option=name=value`` flags; the label has a flag of its own."""
    known = asking.of(TABLE["table"])
    options = asking.of_flags(texts, known)
    for name in options:
        if name == "label":
            raise UserError("--option=label=... has a flag of its own: --label.")
        if name not in known:
            raise unknown("option of a table", name, [one for one in known if one != "label"])
    return options
