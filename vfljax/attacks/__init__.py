"""The visible table of attacks: name -> factory(bottom, num_classes, *, static options) -> Attack."""

from collections.abc import Callable

from vfljax.attacks.completion import active, passive
from vfljax.attacks.core import Attack
from vfljax.attacks.direct import direct
from vfljax.attacks.norm import norm

TABLE: dict[str, Callable[..., Attack]] = {
    "passive": passive,
    "active": active,
    "direct": direct,
    "norm": norm,
}

__all__ = ["TABLE", "Attack"]
