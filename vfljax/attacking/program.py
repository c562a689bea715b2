"""The program of one attack on one setting: all that is compiled of it.

What enters: a form, and the group of settings that it attacks. What leaves: a static ``AttackProgram``, and
the pure function of one member that it stands for, which ``vfljax.sweep.batch_layout`` maps over trials.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax.numpy as jnp

from vfljax import attacks, keys
from vfljax.attacking.diagnostics import diagnosis
from vfljax.attacking.jobs import ViewGroup
from vfljax.attacking.view import AttackInput, CommonData, known_rows, view_of
from vfljax.attacks.core import Attack
from vfljax.sweep.attack_variants import AttackVariant
from vfljax.types import Agreed, Scores, Spec


class AttackProgram(NamedTuple):
    """All that decides an attack's program beside the shapes of its arguments; static."""

    name: str
    options: tuple[tuple[str, Any], ...]
    bottoms: tuple[nn.Module, ...]  # the attackers'
    num_classes: int
    agreed: Agreed
    attackers: tuple[int, ...] = ()  # where the attack needs a diagnostic of the whole federation
    spec: Spec | None = None  # likewise


def program_of(
    form: AttackVariant, group: ViewGroup, attack: Attack, num_classes: int
) -> AttackProgram:
    """The program of a form's attack on a group."""
    bottoms = tuple(group.spec.bottoms[p] for p in group.attackers)
    program = AttackProgram(
        attacks.TABLE[form.name].computed_as or form.name,
        tuple(form.options.items()),
        bottoms,
        num_classes,
        Agreed(group.spec.batch_size),
    )
    if attack.diagnostic:
        program = program._replace(attackers=group.attackers, spec=group.spec)
    return program


def make_attack_lane(static: AttackProgram) -> Callable[[AttackInput, CommonData], Scores]:
    """``attack(input, common) -> Scores`` of one setting. An oracle form is given every row's label."""
    attack = attacks.TABLE[static.name](static.bottoms, static.num_classes, **dict(static.options))
    diagnose = diagnosis(static.spec, attack.diagnostic, static.attackers)

    def one(run: AttackInput, common: CommonData) -> Scores:
        count = run.knobs.get("known")
        count = jnp.float32(0) if count is None else count
        rows = jnp.float32(common.known_order.shape[1])
        known = known_rows(common, run.seed, rows if attack.oracle else count)
        key = keys.fold(keys.run_key(run.seed), "attack", run.key_name)
        view = view_of(run, common, static.agreed, diagnose(run, common))
        return attack.run(key, view, known, run.knobs)

    return one
