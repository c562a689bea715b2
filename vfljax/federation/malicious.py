"""The malicious local optimizer of the active attack (Fu et al. 2022).

A passive party that wants the top model to lean on its embedding amplifies, element by element, the
direction that its optimizer would have taken:

    r_t = clip(1 + gamma v_t / (s_{t-1} + 1e-7), 1, 5),   s_t = r_t v_t,   s_1 = v_1

Here v_t is the momentum direction of honest SGD, and the parameters move by -rate * s_t.

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX Security 2022,
section 4.2, algorithm 1. In the released class, the gradient and the momentum buffer are one tensor. Its v_t
therefore differs from the paper's and depends on how the gradient is cleared between steps. With
G_t = g_t + weight decay * theta and momentum mu, for t > 1:

===============  ===================================  ====================  =========================
rule             clearing                             v_t                   first five steps
===============  ===================================  ====================  =========================
intended                                              mu v_{t-1} + G_t      1, 5.51, 4.04, 6.36, 6.73
released         to zero in place, buffer and all     2 mu G_t              1, 5.04, 2.44, 3.13, 2.84
                 (torch before 2.0)
released_torch2  to None: the buffer keeps the        mu s_{t-1} + G_t      1, 5.51, 12.4, 24.1, 44.0
                 amplified step, and steps grow on
===============  ===================================  ====================  =========================

The steps are for g = 1, mu = .9, gamma = 1, rate = 1. Without momentum the class has no buffer: v_t = G_t,
and the three rules are the same. Here, gamma = 0 is plain momentum SGD of an honest party under each rule. The
released class at gamma = 0 is not plain momentum SGD if gradients are zeroed in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from vfljax.types import Array, PyTree


class _State(NamedTuple):
    """What the rules remember between steps."""

    count: Array  # [] int32, steps done
    scaled: PyTree  # s_{t-1}, like the parameters


def scale_by_malicious(gamma: Array | float) -> optax.GradientTransformation:
    """Amplifies the updates of an optimizer element by element: the intended rule.

    It follows a transformation that returns the momentum direction v_t, such as ``optax.trace``, and
    replaces v_t by s_t of the module's docstring.

    Args:
      gamma: the strength, a number >= 0 that may be traced. 0 changes nothing.

    Returns:
      A transformation of updates with the structure and shapes of the parameters.
    """
    return _amplify(lambda v, s, first: v, gamma)


def trace_released(momentum: Array | float, gamma: Array | float) -> optax.GradientTransformation:
    """Returns momentum and amplification of the released class if gradients are zeroed in place.

    The gradient G_t overwrites the buffer, which is the same tensor, so that ``mu * buffer + gradient`` is
    2 mu G_t. The only memory is s_{t-1}.

    Args:
      momentum: mu, which may be traced.
      gamma: as in ``scale_by_malicious``; at 0 this is ``optax.trace(momentum)``.
    """

    def direction(g: Array, s: Array, first: Array) -> Array:
        factor = jnp.where(first | (momentum == 0), 1.0, 2 * momentum)
        # for an honest party (gamma = 0), s is the momentum buffer
        return jnp.where(gamma > 0, factor * g, g + momentum * s)

    return _amplify(direction, gamma)


def trace_released_torch2(
    momentum: Array | float, gamma: Array | float
) -> optax.GradientTransformation:
    """Returns momentum and amplification of the released class if gradients are set to None.

    The amplified step s_t becomes the momentum buffer. On a constant gradient each step is
    mu (1 + gamma mu) times the one before, so that long runs diverge.

    Args:
      momentum: mu, which may be traced.
      gamma: as in ``scale_by_malicious``; at 0 this is ``optax.trace(momentum)``.
    """
    return _amplify(lambda g, s, first: g + momentum * s, gamma)


def _amplify(
    direction: Callable[[Array, Array, Array], Array], gamma: Array | float
) -> optax.GradientTransformation:
    """Returns the transformation s_t = r_t v_t, where v_t = direction(update, s_{t-1}, whether t = 1)."""
    chex.assert_rank(gamma, 0)

    def init(params: PyTree) -> _State:
        return _State(jnp.zeros([], jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(updates: PyTree, state: Any, params: PyTree | None = None) -> tuple[PyTree, Any]:
        del params
        chex.assert_trees_all_equal_structs(updates, state.scaled)
        chex.assert_trees_all_equal_shapes(updates, state.scaled)
        first = state.count == 0

        def amplify(g: Array, s: Array) -> Array:
            v = direction(g, s, first)
            denominator = s + 1e-7
            # s = -1e-7 exactly would give a ratio that is not finite
            ratio = v / jnp.where(denominator == 0, 1e-7, denominator)
            r = jnp.clip(1 + gamma * ratio, 1.0, 5.0)
            return jnp.where(first | (gamma == 0), v, r * v)

        scaled = jax.tree.map(amplify, updates, state.scaled)
        return scaled, _State(state.count + 1, scaled)

    return optax.GradientTransformation(init, update)
