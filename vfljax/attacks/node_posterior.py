"""The posterior of boosted trees under randomized labels (ours): the noisy label, weighed with its neighbors'.

    s_ic = a h_ic + epsilon 1[y~_i = c]

A federation of trees (``vfljax.federation.trees``) that sends gradients without encryption sends p - y~ of
every round, y~ being the label that randomized response left. The first round's smallest entry names y~
exactly, whatever p is, and epsilon is public. By the mechanism y~ adds epsilon to the log odds of its class (as
in ``vfljax.attacks.posterior``). h is what the noisy labels of other rows say of row i:

    smooth="nodes"   their means over the nodes of row i: A of ``vfljax.attacks.cohabitation``
    smooth="graph"   their propagation on the graph of ``vfljax.attacks.node_spreading``, which also reads the
                     attacker's own columns

Noise averages out over rows. Rows are drawn into ``FOLDS`` folds, and h of a fold is made of the labels of the
others, so that a row's own noise is not counted twice. h is centered by class, and divided by one number, for
a variance of 1. No label is known: of ``FACTORS`` a is the likeliest by

    prod_i sum_c softmax(a h_i + log pi)_c e^(epsilon 1[y~_i = c])

pi is the classes' shares among labels, which those among noisy labels tell: a noisy label is c with probability
(1 + (e^epsilon - 1) pi_c) / (e^epsilon + C - 1). Scores leave pi out: they weigh classes alike, as the scale of
leaks does.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax import errors, keys
from vfljax.attacks import core, neighbors
from vfljax.attacks.cohabitation import levels_of, means, told_nodes, weights_of
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.node_spreading import ALPHA, GRAPH_READS, NODE_WEIGHTS, graph_of
from vfljax.types import NO_SPLIT, Array, Known, Scores, View

FOLDS = 8
FACTORS = tuple(
    2 ** (step / 4) for step in range(-12, 21)
)  # 1/8 to 32, and two in 1.41 of each other
SMOOTH = ("nodes", "graph")


def shares(noisy: Array, epsilon: Array) -> Array:
    """The classes' shares pi [C] among labels, by those among noisy ones, ``noisy`` [N, C] as of ``likeliest``;
    each at least a tenth of the mean one."""
    classes = noisy.shape[1]
    of_noisy = jnp.sum(noisy, axis=0) / jnp.maximum(jnp.sum(noisy), 1.0)
    odds = jnp.expm1(epsilon)
    pi = ((odds + classes) * of_noisy - 1) / jnp.maximum(odds, 1e-6)
    pi = jnp.clip(pi, 0.1 / classes, 1.0)
    return pi / jnp.sum(pi)


def likeliest(h: Array, noisy: Array, epsilon: Array) -> Array:
    """The likeliest a [] in ``FACTORS``.

    Args:
      h: [N, C].
      noisy: [N, C] one-hot y~, or 0 for rows that do not count.
      epsilon: [].
    """

    log_pi = jnp.log(shares(noisy, epsilon))[None]

    def likelihood(factor: Array) -> Array:
        log_p = jax.nn.log_softmax(factor * h + log_pi)
        each = jax.nn.logsumexp(log_p + epsilon * noisy, axis=1)
        return jnp.sum(each * jnp.sum(noisy, axis=1))

    factors = jnp.array(FACTORS)
    return factors[jnp.argmax(jax.lax.map(likelihood, factors))]


def node_posterior(bottoms: Bottoms, num_classes: int, *, smooth: str = "nodes") -> Attack:
    """Score each row by the log posterior of its label, given the noisy labels of all rows.

    Knobs: ``epsilon``, that of the mechanism, the bases ``first`` and ``deep`` of the weights of nodes, and of
    a graph ``alpha``.

    Args:
      smooth: how the noisy labels of other rows are averaged, over "nodes" or on a "graph".

    Returns:
      An attack whose scores [N, C] are of either sign; NaN for rows of which no gradient was sent.

    Raises:
      ValueError: where columns to be read are codes or token ids.
    """
    errors.check_choice("smooth", smooth, SMOOTH)
    on_graph = smooth == "graph"
    if on_graph:
        core.check_numeric(bottoms, "choose smooth='nodes'")

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del known
        # every party receives the same gradients
        first = jnp.mean(core.by_party(view.gradients[0], num_classes), axis=1)
        sent = view.sums.count > 0
        named = (sent & jnp.any(first != 0, axis=1)).astype(jnp.float32)[:, None]
        noisy = jax.nn.one_hot(jnp.argmin(first, axis=1), num_classes) * named

        def centered(s: Array) -> Array:
            count = jnp.maximum(jnp.sum(named), 1.0)
            return (s - jnp.sum(s * named, axis=0, keepdims=True) / count) * named

        fold = jax.random.randint(keys.fold(key, "folds"), (len(sent),), 0, FOLDS)
        others = 1 - jax.nn.one_hot(fold, FOLDS)
        teachers = (others[:, :, None] * centered(noisy)[:, None]).reshape(len(sent), -1)
        if on_graph:
            graph = graph_of(key, view, num_classes, knobs, columns=True)
            averaged = neighbors.propagate(graph, teachers, knobs["alpha"])
        else:
            nodes = told_nodes(view)
            weights = weights_of(
                nodes, len(view.features), num_classes, knobs["first"], knobs["deep"]
            )
            averaged = means(teachers, levels_of(nodes), weights)
        by_fold = averaged.reshape(len(sent), FOLDS, num_classes)
        h = centered(jnp.take_along_axis(by_fold, fold[:, None, None], axis=1)[:, 0])
        spread = jnp.sqrt(jnp.sum(h * h) / jnp.maximum(num_classes * jnp.sum(named), 1.0))
        h = h / jnp.where(spread > 1e-6, spread, 1.0)
        epsilon = knobs["epsilon"]
        return core.scored(likeliest(h, noisy, epsilon) * h + epsilon * noisy, sent)

    return Attack(
        run,
        (NO_SPLIT,),
        {"epsilon": 1.0, **NODE_WEIGHTS, **({"alpha": ALPHA} if on_graph else {})},
        ranges={"first": (0.0, 2.0), **({"alpha": (0.0, 0.99)} if on_graph else {})},
        adaptive=True,
        reads=(*GRAPH_READS, "columns", "gradients") if on_graph else ("gradients", "nodes"),
        epoch=None,
    )


ROW = AttackRow(node_posterior, cost=core.SOLVE, rule=3)
