"""Descriptions of plugins' rows in a stored sweep, and the rows that are made from them."""

from __future__ import annotations

import inspect
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from vfljax.attacks import AttackRow
from vfljax.defenses import Defense, DefenseRow, Knower, Remarks
from vfljax.errors import UserError, not_in_use
from vfljax.plugins.use import all_rows, table_with
from vfljax.types import Origin

RECORDED = "a recording"
"""The plugin of defenses of which there are recordings alone. They need no code, and no module has the name."""


def recorded(
    knobs: Mapping[str, float], known_by: Mapping[str, tuple[Knower, ...]], remarks: Remarks
) -> DefenseRow:
    """Returns the row of a defense under which a federation was trained elsewhere.

    Args:
      knobs: its knobs, with a value of each.
      known_by: of ``DefenseRow``.
      remarks: likewise.
    """
    factory = _Recorded("", RECORDED, dict.fromkeys(knobs), {})
    origin = Origin(RECORDED, "", "")
    fields: Any = {"remarks": remarks, "origin": origin, "not_for_numbers": ""}
    return DefenseRow(factory, dict(knobs), known_by, **fields)


def is_recorded(row: DefenseRow) -> bool:
    """Returns whether there are recordings alone of a defense, so that nothing can be trained under it."""
    return row.origin is not None and row.origin.plugin == RECORDED


def described(
    names: Iterable[str], points: Mapping[str, Any] | None = None, prior: Any = None
) -> dict[str, dict[str, Any]]:
    """Returns what a sweep stores of the rows of plugins, as JSON values by name.

    Args:
      names: names of rows; rows of this library are left out.
      points: the sweep's pairs of knobs and options, by defense. The row's remarks on each pair are stored,
        because remarks are functions, which cannot be stored.
      prior: [C] the share of each class.
    """
    rows, out = all_rows(), {}
    for name in dict.fromkeys(names):
        row = rows[name]
        if row.origin is None:
            continue
        about = {k: v for k, v in row.origin._asdict().items() if k != "loaded"}
        if isinstance(row, AttackRow):
            about["kind"] = "attack"
            about["options"] = {option: _plain(value) for option, value in row.options.items()}
            about |= {"published_steps": row.published_steps, "rule": row.rule}
        else:
            about |= _described_defense(row, (points or {}).get(name, ()), prior)
        out[name] = about
    return out


def _described_defense(row: DefenseRow, points: Iterable[Any], prior: Any) -> dict[str, Any]:
    remarks = row.remarks
    stored = [
        {
            "knobs": dict(knobs),
            "options": {name: _plain(value) for name, value in options.items()},
            "bound": remarks.bound(knobs, options, prior),
            "epsilon": remarks.epsilon(knobs, options),
            "approximate": remarks.approximate(knobs, options),
            "bound_sentence": remarks.bound_sentence(options),
            "knob_labels": {knob: remarks.knob_label(knob, options) for knob in row.knobs},
        }
        for knobs, options in points
    ]
    return {
        "kind": "defense",
        "knobs": {n: None if p.default is p.empty else p.default for n, p in row.knobs.items()},
        "options": {name: _plain(p.default) for name, p in row.options.items()},
        "example": dict(row.example),
        "neutral": None if row.neutral is None else dict(row.neutral),
        "known_by": {name: [list(k) for k in knowers] for name, knowers in row.known_by.items()},
        "needs_top": row.needs_top,
        "two_classes": row.two_classes,
        "remarks": stored,
    }


def _plain(value: Any) -> Any:
    """Returns an option's value as a JSON value, or its ``repr`` if JSON has no such type."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def stand_in(descriptions: Mapping[str, Mapping[str, Any]]) -> None:
    """Adds rows made from a sweep's stored descriptions in place of rows of plugins that are not in use.

    They suffice to read and report the sweep, but not to train or attack it, unless they are of recordings.
    """
    rows = all_rows()
    for name, about in descriptions.items():
        present, of_recording = rows.get(name), about["plugin"] == RECORDED
        loaded = present is not None and (present.origin is None or present.origin.loaded)
        if loaded and not of_recording:
            continue
        origin = Origin(about["plugin"], about["version"], about["sha256"], loaded=of_recording)
        make = _Recorded if of_recording else _Absent
        factory = make(name, origin.plugin, about.get("knobs", {}), about["options"])
        if about["kind"] == "attack":
            row = AttackRow(factory, about["published_steps"], rule=about["rule"], origin=origin)
        else:
            same = {k: about[k] for k in ("example", "neutral", "needs_top", "two_classes")}
            known_by = {
                f: tuple(Knower(*k) for k in knowers) for f, knowers in about["known_by"].items()
            }
            same |= {"remarks": _remarks(about["remarks"]), "not_for_numbers": ""}
            row = DefenseRow(factory, known_by=known_by, origin=origin, **same)
        table_with(row)[name] = row


class _Absent:
    """A factory with the parameters of an absent plugin's factory. It raises an error when it is called."""

    def __init__(
        self, name: str, plugin: str, knobs: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        kind, empty = inspect.Parameter, inspect.Parameter.empty
        either, named = kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY
        self.name, self.plugin = name, plugin
        parameters = [kind(n, either, default=empty if v is None else v) for n, v in knobs.items()]
        parameters += [kind(n, named, default=v) for n, v in options.items()]
        self.__signature__ = inspect.Signature(parameters)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise not_in_use(self.name, self.plugin)


class _Recorded(_Absent):
    """The factory of a defense of recordings, in which it has done already what it does."""

    def __call__(self, *arguments: Any, **named: Any) -> Defense:
        del arguments, named
        return Defense()


def _remarks(stored: Iterable[Mapping[str, Any]]) -> Remarks:
    """Returns remarks that find the stored texts, and are empty for other knobs and options."""

    def find(knobs: Mapping[str, float] | None, options: Mapping[str, Any]) -> Mapping[str, Any]:
        values = {name: _plain(value) for name, value in options.items()}
        for remark in stored:
            if knobs in (None, remark["knobs"]) and remark["options"] == values:
                return remark
        return {}

    def bound(knobs: Any, options: Any, prior: Any) -> tuple[str, str] | None:
        del prior  # the stored text is for the prior of the stored sweep
        texts = find(knobs, options).get("bound")
        return None if texts is None else (texts[0], texts[1])

    def approximate(knobs: Any, options: Any) -> tuple[float, float] | None:
        pair = find(knobs, options).get("approximate")
        return None if pair is None else (pair[0], pair[1])

    return Remarks(
        bound=bound,
        epsilon=lambda knobs, options: find(knobs, options).get("epsilon"),
        approximate=approximate,
        bound_sentence=lambda options: find(None, options).get("bound_sentence", ""),
        knob_label=lambda knob, options: find(None, options).get("knob_labels", {}).get(knob, knob),
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
        origin = rows[name].origin if name in rows else None
        if about["plugin"] != RECORDED and (origin is None or not origin.loaded):
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
        if not origin.loaded:
            raise not_in_use(name, origin.plugin)
        before = stored.get(name)
        if before and before["sha256"] != origin.sha256:
            version = f" (version {before['version']})" if before["version"] else ""
            anew = f", or drop it (--drop={name}), or give its AttackRow the next rule"
            raise UserError(
                f"{workdir} was made with another file of the plugin {origin.plugin}: its SHA-256 was "
                f"{before['sha256'][:12]}...{version} and is {origin.sha256[:12]}...: restore that file, or "
                f"choose another --workdir{anew if isinstance(rows[name], AttackRow) else ''}."
            )
