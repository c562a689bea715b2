"""MID: the top model reads each passive party through a bottleneck of bounded information (Zou et al. 2023).

In front of the top model the label party puts a network for every passive party that turns the
embedding z into a random T (``vfljax.models.bottleneck``), and adds to its loss

    lambda * sum over passive parties of mean_j sum_d 1/2 (mu^2 + sigma^2 - 1 - 2 ln sigma)

the KL divergence of T's law N(mu, sigma^2) from N(0, I), a variational bound on the information
I(z; T). What the top model cannot read from T, gradients cannot carry back. Predictions take T = mu.

What the divergence trains:

    path="full"      MID's weights and, through the gradients sent, the passive parties   default
    path="released"  the passive parties alone: in the released code MID's weights follow the cross
                     entropy only

Reference: Zou, Liu, Zhang. "Mutual Information Regularization for Vertical Federated Learning", 2023
(arXiv 2301.01142), and its released code: offset .5, or 5 on MNIST, NUS-WIDE and CIFAR; expansion 5,
or 2 on NUS-WIDE; a final ReLU. There MID's weights have a learning rate of their own, 1e-4 to 5e-2;
here they are weights of the top model and have its optimizer and rate.

Guarantee: none. The bound is on the information of T about z. It does not bound what z or the
gradients reveal about labels.

Scale: the divergence is a sum over D numbers and the parties, in nats, and does not depend on the
batch's size. The released code's default for lambda is .001.

Edge cases
    lambda = 0       not neutral: the noise, sigma >= softplus(-offset), and the network remain, so
                     that MID never reduces to no defense
    offset -> inf    sigma -> 0: training steps read T = mu, as predictions do
    path="released"  without the cross entropy MID's weights would stay as they are

MID is not trained without model splitting. It is not for use beside GAFM, which reads the aggregated
embeddings themselves.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.defenses import core
from vfljax.defenses.rows import DefenseRow, Knower, Strengths
from vfljax.models.bottleneck import Bottleneck, Law, law_name
from vfljax.models.parties import AGGREGATIONS
from vfljax.types import Array, PyTree, Spec


def divergence(mu: Array, sigma: Array, log_sigma: Array) -> Array:
    """KL(N(mu, sigma^2) || N(0, I)) in nats, its mean over the rows of [B, D] arguments: []."""
    chex.assert_rank([mu, sigma, log_sigma], 2)
    chex.assert_equal_shape([mu, sigma, log_sigma])
    return jnp.mean(jnp.sum(0.5 * (mu**2 + sigma**2 - 1) - log_sigma, axis=1))


def mid(
    lambda_kl: Array | float,
    *,
    offset: float = 0.5,
    expansion: int = 5,
    output: str = "relu",
    path: str = "full",
) -> core.Defense:
    """MID with lambda = ``lambda_kl`` >= 0, with model splitting.

    ``offset`` in [-50, 50] is subtracted from the argument of softplus, and so sets the noise at the
    start. The network that reads T has ``expansion`` * D hidden units and ends in ``output``,
    "relu" (released) or "identity". All four options are static.

    Raises ``ValueError`` for a knob out of range or an unknown option; ``init`` does without a top model.
    """
    errors.check("lambda_kl", lambda_kl, 0.0, jnp.inf)
    _check_number("offset", offset)
    errors.check("offset", offset, -50.0, 50.0)
    _check_number("expansion", expansion)
    errors.check("expansion", expansion, 1, 1000, whole=True)
    errors.check_choice("output", output, ("relu", "identity"))
    errors.check_choice("path", path, ("full", "released"))

    def loss(loss_fn: core.LossFn) -> core.LossFn:
        def defended(active, f, embeddings, targets, context, state):
            value, aux = loss_fn(active, f, embeddings, targets, context, state)
            params = active["params"]
            if path == "released":
                params = jax.lax.stop_gradient(params)
            for p, z in enumerate(embeddings):
                law: Any = Law(offset).apply({"params": _law_of(params, p)}, z)
                value += lambda_kl * divergence(*law)
            return value, aux

        return defended

    init = core.stateless(
        lambda data: core.require_top_model("mid", "bottleneck stands before", data)
    )
    return core.Defense(init=init, loss=loss)


def _law_of(params: PyTree, p: int) -> PyTree:
    if law_name(p) not in params:
        raise ValueError(
            "mid finds no bottleneck in the top model: build the spec by defenses.with_networks(spec)."
        )
    return params[law_name(p)]


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name}={value!r} is not a number: choose a number {name}.")


def network(
    spec: Spec, *, offset: float = 0.5, expansion: int = 5, output: str = "relu", path: str = "full"
) -> Spec:
    """The ``spec`` with a bottleneck for each passive party before its top model.

    The bottlenecks stand before the aggregation, so that the top model receives the embeddings
    concatenated and aggregates them itself. Without a top model the spec stays as it is.
    """
    del path
    if spec.top is None:
        return spec
    top = Bottleneck(
        top=spec.top,
        widths=spec.cut_layer.widths,
        passive=spec.passive,
        aggregate=AGGREGATIONS[spec.aggregation],
        offset=float(offset),
        expansion=int(expansion),
        output=output,
        weights=getattr(spec.top, "weights", "default"),
    )
    return dataclasses.replace(spec, top=top, aggregation="concatenate")


ROW = DefenseRow(
    factory=mid,
    example={"lambda_kl": 0.01},
    not_for_numbers="",
    known_by={
        # rows of one class still receive like gradients and send like embeddings
        "split": (Knower("similarity"), Knower("joint"), Knower("probe"))
    },
    needs_top=True,
    network=network,
    strengths=Strengths("lambda_kl", (1e-3, 1e-2, 0.03, 0.1, 1.0)),
)
