"""The visible table of attacks: name -> factory(bottoms, num_classes, *, static options) -> Attack."""

from collections.abc import Callable

from vfljax.attacks.centers import global_median, mean, median
from vfljax.attacks.completion import active, passive, two_stage
from vfljax.attacks.core import Attack
from vfljax.attacks.direct import direct
from vfljax.attacks.hints import cosine, hint, inner
from vfljax.attacks.norm import norm
from vfljax.attacks.probe import probe
from vfljax.attacks.residual import residual
from vfljax.attacks.spectral import spectral

TABLE: dict[str, Callable[..., Attack]] = {
    "passive": passive,
    "active": active,
    "direct": direct,
    "two_stage": two_stage,
    "norm": norm,
    "mean": mean,
    "median": median,
    "global_median": global_median,
    "cosine": cosine,
    "inner": inner,
    "hint": hint,
    "spectral": spectral,
    "residual": residual,
    "probe": probe,
}

__all__ = ["TABLE", "Attack"]
