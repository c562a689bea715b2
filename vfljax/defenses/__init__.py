"""The visible table of defenses. A new defense is one file that ends in its row, and one line of ``TABLE``.
The contract (``tests/defenses_contract_test.py``) needs test values: ``analysis/guide/add_a_defense.md``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vfljax.defenses import (
    adversary,
    alibi,
    cae,
    class_splitting,
    compression,
    dcor,
    discrete_sgd,
    dpzv,
    fedpass,
    gafm,
    grad_perturb,
    kdk,
    label_dp,
    marvell,
    max_norm,
    mid,
    noise,
    p3eft,
    pe_loss,
    ppdl,
    proj_pert,
    vlp,
)
from vfljax.defenses.core import Defense, TrainingData, chain
from vfljax.defenses.rows import AVERAGING, READING, DefenseRow, Knower, Remarks, Strengths
from vfljax.types import Array, DefenseSpec, PyTree, Spec

TABLE: dict[str, DefenseRow] = {
    "kdk": kdk.ROW,
    "label_dp": label_dp.ROW,
    "grad_perturb": grad_perturb.ROW,
    "class_splitting": class_splitting.ROW,
    "alibi": alibi.ROW,
    "vlp": vlp.ROW,
    "cae": cae.ROW,
    "dcor": dcor.ROW,
    "gafm": gafm.ROW,
    "noise": noise.ROW,
    "compression": compression.ROW,
    "ppdl": ppdl.ROW,
    "discrete_sgd": discrete_sgd.ROW,
    "max_norm": max_norm.ROW,
    "marvell": marvell.ROW,
    "proj_pert": proj_pert.ROW,
    "pe_loss": pe_loss.ROW,
    "mid": mid.ROW,
    "fedpass": fedpass.ROW,
    "p3eft": p3eft.ROW,
    "adversary": adversary.ROW,
    "dpzv": dpzv.ROW,
}


def build(specs: tuple[DefenseSpec, ...], knobs: Mapping[str, Mapping[str, Any]]) -> Defense:
    """The chain of the defenses in ``specs``, in their order.

    ``knobs`` holds the knobs of each by name; they may be traced. Raises ``ValueError`` for a concrete knob out
    of range, an unknown option, or an order in which one defense would discard what another does.
    """
    return chain(
        **{spec.name: TABLE[spec.name](**knobs[spec.name], **dict(spec.options)) for spec in specs}
    )


def having(slot: str, specs: tuple[DefenseSpec, ...]) -> tuple[DefenseSpec, ...]:
    """The defenses in ``specs`` that act in ``slot``, which is the name of a field of ``Defense``."""
    idle = getattr(Defense(), slot)
    return tuple(spec for spec in specs if getattr(_at_its_example(spec), slot) is not idle)


def readers(specs: tuple[DefenseSpec, ...]) -> tuple[DefenseSpec, ...]:
    """Defenses of ``specs`` through which predictions are read; their states are stored with the weights."""
    return having("read", specs)


def reader(specs: tuple[DefenseSpec, ...]) -> Callable[[Mapping[str, PyTree], Array], Array]:
    """Returns ``read(states, logits) -> scores [M, C]`` of the chain of ``specs``, where ``states`` holds the
    states of its ``readers`` by name. The values of knobs do not affect it."""
    return chain(**{spec.name: _at_its_example(spec) for spec in readers(specs)}).read


def reads_scores(specs: tuple[DefenseSpec, ...]) -> bool:
    """Whether one of ``specs`` needs a teacher's scores."""
    return any(_at_its_example(spec).reads_scores for spec in specs)


def _at_its_example(spec: DefenseSpec) -> Defense:
    row = TABLE[spec.name]
    return row(**row.example, **dict(spec.options))


def with_networks(spec: Spec) -> Spec:
    """The ``spec`` with what its defenses add to the label party's networks
    (``DefenseRow.network``), in their order."""
    for member in spec.defenses:
        spec = TABLE[member.name].network(spec, **dict(member.options))
    return spec


__all__ = [
    "AVERAGING",
    "READING",
    "TABLE",
    "Defense",
    "DefenseRow",
    "Knower",
    "Remarks",
    "Strengths",
    "TrainingData",
    "chain",
]
