"""Descriptions of plugins' rows in a stored sweep, and the rows that are made from them."""

from __future__ import annotations

import inspect
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from vfljax import attacks, defenses
from vfljax.attacks import AttackRow
from vfljax.defenses import Defense, DefenseRow, Knower, Remarks
from vfljax.defenses.rows import Remark, plain_option
from vfljax.errors import UserError, not_in_use
from vfljax.plugins.use import all_rows
from vfljax.types import HostArray, Origin

OF_RECORDING = "a recording"
"""The plugin of defenses of which there are recordings alone. They need no code, and no module has the name."""
NO_CLASSES: HostArray = np.empty(0, np.float32)
"""The prior where no defense is described."""


def recorded(
    knobs: Mapping[str, float], known_by: Mapping[str, tuple[Knower, ...]], remarks: Remark
) -> DefenseRow:
    """Returns the row of a defense under which a federation was trained elsewhere.

    Args:
      knobs: its knobs, with a value of each.
      known_by: of ``DefenseRow``.
      remarks: likewise.
    """
    return DefenseRow(
        already,
        dict(knobs),
        known_by,
        not_for_numbers="",
        remarks=remarks,
        origin=Origin(OF_RECORDING, "", ""),
        parameters=_parameters(dict.fromkeys(knobs), {}),
    )


def already(*knobs: Any, **options: Any) -> Defense:
    """The factory of a defense of recordings, which has done already what it does."""
    del knobs, options
    return Defense()


def _parameters(
    knobs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[inspect.Parameter, ...]:
    """Returns the parameters of a factory with these defaults; None is none."""
    kind, empty = inspect.Parameter, inspect.Parameter.empty
    either, named = kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY
    of_knobs = [kind(n, either, default=empty if v is None else v) for n, v in knobs.items()]
    return *of_knobs, *(kind(n, named, default=v) for n, v in options.items())


def is_recorded(row: DefenseRow) -> bool:
    """Returns whether there are recordings alone of a defense, so that nothing can be trained under it."""
    return row.origin is not None and row.origin.plugin == OF_RECORDING


def described(
    names: Iterable[str], points: Mapping[str, Any] = {}, prior: HostArray = NO_CLASSES
) -> dict[str, dict[str, Any]]:
    """Returns what a sweep stores of the rows of plugins, as JSON values by name.

    Args:
      names: names of rows; rows of this library are left out.
      points: the sweep's pairs of knobs and options, by defense. The row's remarks on each pair are stored.
      prior: [C] the share of each class.
    """
    rows, out = all_rows(), {}
    for name in dict.fromkeys(names):
        row = rows[name]
        if row.origin is None:
            continue
        about = row.origin._asdict()
        if isinstance(row, AttackRow):
            about["kind"] = "attack"
            about["options"] = {
                option: plain_option(value) for option, value in row.options.items()
            }
            about |= {"published_steps": row.published_steps, "rule": row.rule}
        else:
            about |= _described_defense(row, points.get(name, ()), prior)
        out[name] = about
    return out


def _described_defense(row: DefenseRow, points: Iterable[Any], prior: HostArray) -> dict[str, Any]:
    stored = []
    for knobs, options in points:
        place = {"knobs": dict(knobs), "options": {n: plain_option(v) for n, v in options.items()}}
        remarks = row.remarks(knobs, options)
        texts = None if remarks.bound is None else remarks.bound(prior)
        labels = dict(remarks.knob_labels)
        stored.append(place | remarks._asdict() | {"bound": texts, "knob_labels": labels})
    return {
        "kind": "defense",
        "knobs": {n: None if p.default is p.empty else p.default for n, p in row.knobs.items()},
        "options": {name: plain_option(p.default) for name, p in row.options.items()},
        "example": dict(row.example),
        "neutral": None if row.neutral is None else dict(row.neutral),
        "known_by": {name: [list(k) for k in knowers] for name, knowers in row.known_by.items()},
        "needs_top": row.needs_top,
        "two_classes": row.two_classes,
        "remarks": stored,
    }


def _stored_remarks(stored: Iterable[Mapping[str, Any]]) -> Remark:
    """Returns the function of remarks that a sweep has stored, whose bounds are for the sweep's classes."""

    def remarks(knobs: Mapping[str, float], options: Mapping[str, Any]) -> Remarks:
        place = dict(knobs), {name: plain_option(value) for name, value in options.items()}
        found = [of for of in stored if (of["knobs"], of["options"]) == place]
        if not found:
            return Remarks()
        stored_texts = Remarks(**{name: found[0][name] for name in Remarks._fields})
        texts = found[0]["bound"]
        return stored_texts if texts is None else stored_texts._replace(bound=lambda prior: texts)

    return remarks


def stand_in(descriptions: Mapping[str, Mapping[str, Any]]) -> None:
    """Adds rows of a sweep's stored descriptions in place of rows of plugins that are not in use.

    They suffice to read and report the sweep, but have no factory with which it could be trained or attacked,
    unless they are of recordings.
    """
    rows = all_rows()
    for name, about in descriptions.items():
        of_recording = about["plugin"] == OF_RECORDING
        if name in rows and rows[name].factory is not None and not of_recording:
            continue
        origin = Origin(about["plugin"], about["version"], about["sha256"])
        if about["kind"] == "attack":
            attacks.TABLE[name] = AttackRow(
                None,
                about["published_steps"],
                rule=about["rule"],
                origin=origin,
                parameters=_parameters({}, about["options"]),
            )
            continue
        listed = about["known_by"].items()
        defenses.TABLE[name] = DefenseRow(
            already if of_recording else None,
            about["example"],
            {federation: tuple(Knower(*k) for k in knowers) for federation, knowers in listed},
            about["neutral"],
            about["needs_top"],
            not_for_numbers="",
            two_classes=about["two_classes"],
            origin=origin,
            parameters=_parameters(about["knobs"], about["options"]),
            remarks=_stored_remarks(about["remarks"]),
        )


def check_in_use(header: Mapping[str, Any], workdir: pathlib.Path) -> None:
    """Raises a UserError that names all plugins with which a sweep was made and which are not in use.

    Args:
      workdir: its folder, for the message.
    """
    records, rows = [header, *header["attacks"].values()], all_rows()
    stored = {row: of for record in records for row, of in record.get("plugins", {}).items()}
    absent: dict[str, None] = {}
    for name, about in stored.items():
        in_use = name in rows and rows[name].factory is not None
        if about["plugin"] != OF_RECORDING and not in_use:
            absent[about["plugin"]] = None
    if absent:
        what = f"{workdir} was made with {' and '.join(absent)}, which {'are' if len(absent) > 1 else 'is'}"
        flags = " ".join(f"--plugin={name}" for name in absent)
        remedy = f"give {flags}, or the path of each file (in Python, vfljax.plugins.use)"
        raise UserError(f"{what} not in use", remedy=remedy)


def required(
    names: Iterable[str], stored: Mapping[str, Mapping[str, Any]], workdir: pathlib.Path
) -> None:
    """Checks that a sweep can be trained or attacked with the plugins that are in use.

    Args:
      names: names of the rows that are needed.
      stored: the descriptions of the stored sweep.
      workdir: the folder of the sweep, for messages.

    Raises:
      UserError: for a row whose plugin is not in use, or whose file differs from that of the stored sweep.
    """
    rows = all_rows()
    for name in dict.fromkeys(names):
        origin = rows[name].origin
        if origin is None:
            continue
        if rows[name].factory is None:
            raise not_in_use(origin.plugin, name)
        before = stored.get(name)
        if before and before["sha256"] != origin.sha256:
            version = f" (version {before['version']})" if before["version"] else ""
            anew = f", or drop it (--drop={name}), or give its AttackRow the next rule"
            raise UserError(
                f"{workdir} was made with another file of the plugin {origin.plugin}: its SHA-256 was "
                f"{before['sha256'][:12]}...{version} and is {origin.sha256[:12]}...: restore that file, or "
                f"choose another --workdir{anew if isinstance(rows[name], AttackRow) else ''}."
            )
