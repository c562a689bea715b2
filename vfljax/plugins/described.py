"""What a stored sweep says of the rows of plugins, and what stands for them where it is read."""

from __future__ import annotations

import inspect
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from vfljax import attacks, defenses
from vfljax.attacks import AttackRow
from vfljax.attacks.core import Reading
from vfljax.defenses import DefenseRow, Knower, Remarks
from vfljax.errors import UserError, not_in_use
from vfljax.plugins.use import Row, table_of
from vfljax.types import Origin


def described(
    names: Iterable[str], points: Mapping[str, Any] | None = None, prior: Any = None
) -> dict[str, dict[str, Any]]:
    """What a sweep stores of the rows of plugins among ``names``, as JSON values by name.

    ``points`` are the knobs and options of every defense at the sweep's points, pairs by name, and
    ``prior`` [C] the classes' shares: what the row remarks of them is stored, because remarks are
    functions.
    """
    rows: dict[str, Row] = {**defenses.TABLE, **attacks.TABLE}
    out = {}
    for name in dict.fromkeys(names):
        row = rows[name]
        if row.origin is None:
            continue
        about = {k: v for k, v in row.origin._asdict().items() if k != "loaded"}
        if isinstance(row, AttackRow):
            out[name] = about | _described_attack(row)
        else:
            out[name] = about | _described_defense(row, (points or {}).get(name, ()), prior)
    return out


def _described_attack(row: AttackRow) -> dict[str, Any]:
    return {
        "kind": "attack",
        "options": {option: _plain(value) for option, value in row.options.items()},
        "published_steps": row.published_steps,
        "completion": row.completion,
        "reading": None if row.reading is None else list(row.reading),
        "rule": row.rule,
    }


def _described_defense(row: DefenseRow, points: Iterable[Any], prior: Any) -> dict[str, Any]:
    remarks = row.remarks
    said = [
        {
            "knobs": dict(knobs),
            "options": {name: _plain(value) for name, value in options.items()},
            "smallest_mass": remarks.smallest_mass(knobs),
            "bound": remarks.bound(knobs, options, prior),
            "epsilon": remarks.epsilon(knobs, options),
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
        "known_by": {kind: [list(one) for one in some] for kind, some in row.known_by.items()},
        "needs_top": row.needs_top,
        "two_classes": row.two_classes,
        "misread": remarks.misread,
        "smallest_mass_clause": remarks.smallest_mass_clause,
        "remarks": said,
    }


def _plain(value: Any) -> Any:
    """An option's value as JSON has it; what JSON has not is named by its text."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def stand_in(descriptions: Mapping[str, Mapping[str, Any]]) -> None:
    """Add rows in place of those of plugins that are not in use.

    They suffice to read and report a stored sweep, and are refused where it is trained or attacked.

    Args:
      descriptions: ``Sweep.plugins``, by the rows' names.
    """
    rows: dict[str, Row] = {**defenses.TABLE, **attacks.TABLE}
    for name, about in descriptions.items():
        present = rows.get(name)
        if present is not None and (present.origin is None or present.origin.loaded):
            continue
        row = (_attack if about["kind"] == "attack" else _defense)(name, about)
        table_of(row)[name] = row


class _Absent:
    """A factory with these parameters, for whoever asks which it has; called, it says what it needs."""

    def __init__(
        self, name: str, plugin: str, knobs: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        kind, empty = inspect.Parameter, inspect.Parameter.empty
        either, named = kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY
        self.name, self.plugin = name, plugin
        self.__signature__ = inspect.Signature(
            [
                *(kind(n, either, default=empty if v is None else v) for n, v in knobs.items()),
                *(kind(n, named, default=v) for n, v in options.items()),
            ]
        )

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise not_in_use(self.name, self.plugin)


def _origin(about: Mapping[str, Any]) -> Origin:
    return Origin(about["plugin"], about["version"], about["sha256"], loaded=False)


def _attack(name: str, about: Mapping[str, Any]) -> AttackRow:
    return AttackRow(
        _Absent(name, about["plugin"], {}, about["options"]),
        published_steps=about["published_steps"],
        completion=about["completion"],
        reading=None if about["reading"] is None else Reading(*about["reading"]),
        rule=about["rule"],
        origin=_origin(about),
    )


def _defense(name: str, about: Mapping[str, Any]) -> DefenseRow:
    return DefenseRow(
        _Absent(name, about["plugin"], about["knobs"], about["options"]),
        about["example"],
        {k: tuple(Knower(*one) for one in some) for k, some in about["known_by"].items()},
        about["neutral"],
        needs_top=about["needs_top"],
        two_classes=about["two_classes"],
        remarks=_remarks(about),
        origin=_origin(about),
    )


def _remarks(about: Mapping[str, Any]) -> Remarks:
    """What the row remarked of the stored points; of others, nothing."""
    said = about["remarks"]

    def of(knobs: Mapping[str, float] | None, options: Mapping[str, Any]) -> Mapping[str, Any]:
        plain = {name: _plain(value) for name, value in options.items()}
        for one in said:
            if (knobs is None or one["knobs"] == knobs) and one["options"] == plain:
                return one
        return {}

    def smallest_mass(knobs: Mapping[str, float]) -> bool:
        return any(one["smallest_mass"] for one in said if one["knobs"] == knobs)

    def bound(knobs: Any, options: Any, prior: Any) -> tuple[str, str] | None:
        del prior  # that of the stored sweep
        texts = of(knobs, options).get("bound")
        return None if texts is None else (texts[0], texts[1])

    return Remarks(
        misread=about["misread"],
        smallest_mass=smallest_mass,
        smallest_mass_clause=about["smallest_mass_clause"],
        bound=bound,
        epsilon=lambda knobs, options: of(knobs, options).get("epsilon"),
        bound_sentence=lambda options: of(None, options).get("bound_sentence", ""),
        knob_label=lambda knob, options: of(None, options).get("knob_labels", {}).get(knob, knob),
    )


def required(
    names: Iterable[str], stored: Mapping[str, Mapping[str, Any]], workdir: pathlib.Path
) -> None:
    """Refuse to train or attack with rows of plugins that are not in use, or are of other files than
    those that ``stored`` describes."""
    rows: dict[str, Row] = {**defenses.TABLE, **attacks.TABLE}
    for name in dict.fromkeys(names):
        origin = rows[name].origin
        if origin is None:
            continue
        if not origin.loaded:
            raise not_in_use(name, origin.plugin)
        before = stored.get(name)
        if before is not None and before["sha256"] != origin.sha256:
            version = f" (version {before['version']})" if before["version"] else ""
            anew = ", or give the row the next number (AttackRow(..., rule=2)) and --renew_rules"
            raise UserError(
                f"{workdir} was made with another file of the plugin {origin.plugin}: its SHA-256 was "
                f"{before['sha256'][:12]}...{version} and is {origin.sha256[:12]}...: restore that file, or "
                f"choose another --workdir{anew if isinstance(rows[name], AttackRow) else ''}."
            )
