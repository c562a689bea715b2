"""The malicious local optimizer of the active attack (Fu et al. 2022).

A passive party that wants the top model to lean on its embedding amplifies, element by
element, the direction its optimizer would have taken:

    r_t = clip(1 + gamma v_t / (s_{t-1} + 1e-7), 1, 5),   s_t = r_t v_t,   s_1 = v_1

with v_t the momentum direction of honest SGD; the parameters move by -rate * s_t.

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX
Security 2022, section 4.2, algorithm 1. This is the intended rule; the released class aliases
gradient and momentum buffer and steps differently. For g = 1, momentum .9, gamma 1, rate 1 the
first five steps are 1, 5.51, 4.04, 6.36, 6.73; gamma = 0 is plain momentum SGD.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from vfljax.types import Array, PyTree


class MaliciousState(NamedTuple):
    count: Array  # [] int32
    scaled: PyTree  # s_{t-1}, like the parameters


def scale_by_malicious(gamma: Array | float) -> optax.GradientTransformation:
    """Amplify updates element-wise by the rule above; ``gamma`` >= 0 may be traced."""

    def init(params: PyTree) -> MaliciousState:
        return MaliciousState(jnp.zeros([], jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(updates: PyTree, state: Any, params: PyTree | None = None) -> tuple[PyTree, Any]:
        del params

        def one(v: Array, s: Array) -> Array:
            denominator = s + 1e-7
            # s = -1e-7 exactly would give 0 * inf = NaN at gamma = 0
            ratio = v / jnp.where(denominator == 0, 1e-7, denominator)
            r = jnp.clip(1 + gamma * ratio, 1.0, 5.0)
            return jnp.where(state.count == 0, v, r * v)

        scaled = jax.tree.map(one, updates, state.scaled)
        return scaled, MaliciousState(state.count + 1, scaled)

    return optax.GradientTransformation(init, update)
