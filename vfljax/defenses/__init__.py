"""The visible table of defenses: a new one is one file, one row here, one contract row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vfljax.defenses.compression import compression
from vfljax.defenses.core import Defense, TrainingData, chain
from vfljax.defenses.dcor import dcor
from vfljax.defenses.kdk import kdk
from vfljax.defenses.noise import noise
from vfljax.types import DefenseSpec

TABLE: dict[str, Callable[..., Defense]] = {
    "kdk": kdk,
    "dcor": dcor,
    "noise": noise,
    "compression": compression,
}

# Knob values at which a defense changes nothing, bit for bit; defenses without any are absent.
# They hold at default options: KDk anchored at its teacher changes labels at epsilon = 0 too.
NEUTRAL: dict[str, dict[str, float]] = {
    "kdk": {"epsilon": 0.0, "k": 1.0},
    "dcor": {"alpha": 0.0},
    "noise": {"scale": 0.0},
    "compression": {"keep_rate": 1.0},
}
USE_TEACHER = frozenset({"kdk"})  # read teacher scores; the teacher is trained only for these


def build(specs: tuple[DefenseSpec, ...], knobs: Mapping[str, Mapping[str, Any]]) -> Defense:
    """The chain of a spec's defenses with these knobs (traced or concrete), by name."""
    return chain(**{s.name: TABLE[s.name](**knobs[s.name], **dict(s.options)) for s in specs})


__all__ = ["TABLE", "Defense", "TrainingData", "build", "chain"]
