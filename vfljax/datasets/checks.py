"""Whether a loader's options are of the type of their defaults and within their limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vfljax.errors import UserError, unknown

MOST = 1_000_000_000  # rows


def checked(
    loader: Callable[..., Any], given: Mapping[str, Any], limits: Mapping[str, Any]
) -> dict[str, Any]:
    """``given`` over the loader's defaults. ``limits`` holds the least and the most of an integer
    (else 0 and ``MOST``) and the words that a text may be (else any); a float is a share of rows
    below 1, 0 for none. What has another default is not looked at. Raises UserError."""
    defaults = loader.__kwdefaults__ or {}
    values = {**defaults, **given}
    for option, value in values.items():
        kind, limit, name = (
            type(defaults[option]),
            limits.get(option),
            f"config.data.options.{option}",
        )
        wanted = ""
        if kind is bool and type(value) is not bool:
            wanted = "True or False"
        elif kind is int:
            least, most = limit or (0, MOST)
            if type(value) is not int or not least <= value <= most:
                wanted = f"an integer from {least} to {most:,}"
        elif kind is float:
            if type(value) not in (int, float) or not 0 <= value < 1:
                wanted = "a share above 0 and below 1, or 0 for none"
        elif kind is str and limit and value not in limit:
            raise unknown(name, value, limit)
        elif kind is str and not isinstance(value, str):
            wanted = "a text"
        if wanted:
            raise UserError(f"{name}={value!r}: give {wanted}.")
    return values
