"""The visible table of defenses: a new one is one file, one row here, one contract row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from vfljax.defenses import (
    compression,
    dcor,
    discrete_sgd,
    gafm,
    kdk,
    label_dp,
    marvell,
    max_norm,
    noise,
    ppdl,
)
from vfljax.defenses.core import Defense, TrainingData, chain
from vfljax.types import DefenseSpec

TABLE: dict[str, Callable[..., Defense]] = {
    "kdk": kdk.kdk,
    "label_dp": label_dp.label_dp,
    "dcor": dcor.dcor,
    "gafm": gafm.gafm,
    "noise": noise.noise,
    "compression": compression.compression,
    "ppdl": ppdl.ppdl,
    "discrete_sgd": discrete_sgd.discrete_sgd,
    "max_norm": max_norm.max_norm,
    "marvell": marvell.marvell,
}

# Knob values at which a defense changes nothing, bit for bit; defenses without any are absent.
# They hold at default options: KDk anchored at its teacher changes labels at epsilon = 0 too.
NEUTRAL: dict[str, dict[str, float]] = {
    "kdk": {"epsilon": 0.0, "k": 1.0},
    "label_dp": {"epsilon": math.inf},
    "dcor": {"alpha": 0.0},
    "noise": {"scale": 0.0},
    "compression": {"keep_rate": 1.0},
    "marvell": {"power": 0.0, "error": 0.25},
}
NEEDS_TOP = frozenset({"gafm"})  # not trained without model splitting: the top model is part of it


def build(specs: tuple[DefenseSpec, ...], knobs: Mapping[str, Mapping[str, Any]]) -> Defense:
    """The chain of a spec's defenses with these knobs (traced or concrete), by name."""
    return chain(**{s.name: TABLE[s.name](**knobs[s.name], **dict(s.options)) for s in specs})


__all__ = ["TABLE", "Defense", "TrainingData", "build", "chain"]
