"""The visible table of attacks: name -> factory(bottom, num_classes, *, static options) -> Attack."""

from collections.abc import Callable

from vfljax.attacks.centers import mean, median
from vfljax.attacks.completion import active, passive
from vfljax.attacks.core import Attack
from vfljax.attacks.direct import direct
from vfljax.attacks.hints import cosine, hint, inner
from vfljax.attacks.norm import norm

TABLE: dict[str, Callable[..., Attack]] = {
    "passive": passive,
    "active": active,
    "direct": direct,
    "norm": norm,
    "mean": mean,
    "median": median,
    "cosine": cosine,
    "inner": inner,
    "hint": hint,
}

__all__ = ["TABLE", "Attack"]
