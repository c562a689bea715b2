"""Class splitting: the parties learn flipped labels, each split into pseudo classes (PSLF; SecDT).

Before training, for every row of label y, the label party draws once

    a flipped label     y with probability e^eps / (e^eps + C - 1), else uniform over the other classes
    a pseudo class      uniform over those of its flipped label; class c has k_c = round(pi_c K) of the K
                        pseudo classes, at least one, and the k_c sum to K

The top model has two heads on the aggregated cut h. The cut gradients are those of the pseudo head alone:

    loss = CE(pseudo class, softmax(pseudo head(h))) + CE(y, softmax(true head(stop_gradient(h))))

    head="true"   predictions are the true head's                                            default
    head="sum"    there is no true head: a class scores the log of the sum of e^logit over its pseudo classes

``normalize=True`` scales each row's gradient to the mean norm of the batch's rows (SecDT). SecDT is
``epsilon=inf, head="sum", normalize=True`` here. It also adds dimensions of noise, which are not offered.

Reference: PSLF, after its released code, and SecDT, after its abstract: split learning whose labels are split.
"The mean norm" is our reading of SecDT's one norm a batch.

Guarantee: eps-label-DP of all that crosses the wire in training, against parties that know the shares pi. A cut
gradient is a function of embeddings, of the pseudo head and of draws that depend on the flipped labels
alone; a true head changes none of these, nor do labels that defenses listed later see, which are the flipped
ones. It does not cover

- the true head, which learns the true labels (or what a defense listed before makes of them): neither
  its weights nor its predictions are private. With head="sum" the released model is covered too.
- shares taken from the labels that are to be protected, as in the released code. Here the shares are
  equal, or fixed beforehand by ``shares``, which must be public knowledge.

Scale: epsilon has the scale of ``label_dp``. The loss is the sum of two means over the batch, but no gradient
of the second reaches a party. Class weights weigh a pseudo class as its class.

Edge cases
    epsilon = inf              no label is flipped, and nothing is guaranteed
    epsilon = inf and K = C    the parties train as without the defense, also with head="true"
    normalize=True             rows whose gradient is 0 stay 0

It is not trained without model splitting: the logits would be sums of embeddings, where a true head has
no place. It must be listed after other defenses on targets and before MID.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import errors, keys
from vfljax.defenses import core
from vfljax.defenses.label_dp import guess_text, randomized_response
from vfljax.defenses.rows import DefenseRow, Knower, Strengths, private_remarks
from vfljax.models import MLP, Head
from vfljax.models.two_heads import TwoHeads
from vfljax.types import Array, Context, PyTree, Spec


def counts_of(num_classes: int, pseudo: int = 0, shares: str = "equal") -> tuple[int, ...]:
    """How many of the K pseudo classes each class has, [C] numbers of at least 1 whose sum is K.

    The quotas pi_c K are rounded by largest remainders; of equal remainders that of the lower class counts as
    the larger. For two classes this is round(pi K).

    Args:
      num_classes: C.
      pseudo: K; 0 for 2 C.
      shares: pi, "equal" or numbers that are proportional to it, as in "1:3".

    Raises:
      ValueError: for fewer pseudo classes than classes, and for shares that are not C positive numbers.
    """
    pseudo = pseudo or 2 * num_classes
    if pseudo < num_classes:
        raise ValueError(f"pseudo={pseudo} is less than the {num_classes} classes: choose more.")
    parts = np.ones(num_classes) if shares == "equal" else np.asarray(_numbers(shares))
    if len(parts) != num_classes:
        raise ValueError(f"shares={shares!r} has {len(parts)} numbers: give {num_classes}.")
    quotas = pseudo * parts / parts.sum()
    counts = np.maximum(1, np.floor(quotas + 1e-9)).astype(int)
    while counts.sum() != pseudo:
        step = 1 if counts.sum() < pseudo else -1
        gaps = np.where((counts > 1) | (step > 0), step * (quotas - counts), -np.inf)
        counts[np.argmax(np.round(gaps, 9))] += step
    return tuple(map(int, counts))


def _numbers(shares: str) -> list[float]:
    try:
        numbers = [float(part) for part in shares.split(":")]
    except (AttributeError, ValueError):
        numbers = [0.0]
    if not all(0 < number < math.inf for number in numbers):
        raise ValueError(f"shares={shares!r}: choose 'equal' or positive numbers such as '1:3'.")
    return numbers


def pseudo_classes(key: Array, labels: Array, counts: Array) -> Array:
    """A pseudo class [N] for each of the ``labels`` [N], uniform over the ``counts`` [C] of its class."""
    chex.assert_rank([labels, counts], 1)
    first = jnp.cumsum(counts) - counts
    draw = jax.random.uniform(key, labels.shape) * counts[labels]
    return first[labels] + jnp.minimum(jnp.floor(draw).astype(jnp.int32), counts[labels] - 1)


def summed(logits: Array, counts: Array) -> Array:
    """Scores [M, C] from logits [M, K]: the log of the sum of e^logit over each class's pseudo classes."""
    chex.assert_rank([logits, counts], [2, 1])
    last = jnp.cumsum(counts)
    place = jnp.arange(logits.shape[1])[:, None]
    of_class = (place >= (last - counts)[None]) & (place < last[None])  # [K, C]
    return jax.nn.logsumexp(jnp.where(of_class[None], logits[:, :, None], -jnp.inf), axis=1)


def to_mean_norm(g: Array) -> Array:
    """Rows of ``g`` [B, D] scaled to the mean of their norms; rows of 0 stay."""
    chex.assert_rank(g, 2)
    largest = jnp.max(jnp.abs(g), axis=1, keepdims=True)  # squares of tiny numbers would be 0
    scale = jnp.where(largest > 0, largest, 1.0)
    norms = scale * jnp.linalg.norm(g / scale, axis=1, keepdims=True)
    return g / jnp.where(largest > 0, norms, 1.0) * jnp.mean(norms)


def class_splitting(
    epsilon: Array | float,
    *,
    pseudo: int = 0,
    shares: str = "equal",
    head: str = "true",
    normalize: bool = False,
) -> core.Defense:
    """Class splitting with ``epsilon`` in [0, inf], with model splitting.

    All options are static: K is ``pseudo``, 0 for two pseudo classes a class; ``shares``, "equal" or as in
    "1:3", are public. With head="sum" and K = C it reduces to no defense at infinity.

    Raises ``ValueError`` for an epsilon out of range or an unknown option; ``init`` does without a top model.
    """
    errors.check("epsilon", epsilon, 0.0, jnp.inf, infinite=True)
    errors.check("pseudo", pseudo, 0, whole=True)
    if shares != "equal":
        _numbers(shares)
    errors.check_choice("head", head, ("true", "sum"))
    if not isinstance(normalize, bool):
        raise ValueError(f"normalize={normalize!r} must be True or False.")

    def init(key: Array, data: core.TrainingData) -> PyTree:
        counts = jnp.asarray(counts_of(data.num_classes, pseudo, shares), jnp.int32)
        core.require_top_model("class_splitting", "heads are those of", data)
        flip = keys.fold(key, "flip")
        flipped = randomized_response(flip, data.labels, data.num_classes, epsilon)
        drawn = pseudo_classes(keys.fold(key, "pseudo"), flipped, counts)
        return {"counts": counts, "flipped": flipped, "pseudo": drawn}

    def targets(targets: Array, context: Context, state: PyTree) -> tuple[Array, Context, PyTree]:
        counts = counts_of(targets.shape[1], pseudo, shares)
        drawn = jax.nn.one_hot(state["pseudo"][context.index], sum(counts), dtype=targets.dtype)
        both = jnp.concatenate([drawn, targets], axis=1) if head == "true" else drawn
        return both, context._replace(labels=state["flipped"][context.index]), state

    def read(state: PyTree, logits: Array) -> Array:
        counts = state["counts"]
        return logits[:, -len(counts) :] if head == "true" else summed(logits, counts)

    defense = core.Defense(
        init=init,
        labels=lambda state, labels: state["flipped"],
        targets=targets,
        read=read,
        widens=True,
    )
    treated = core.per_party(lambda key, g, context: to_mean_norm(g))
    return defense._replace(gradient=treated) if normalize else defense


def network(
    spec: Spec,
    *,
    pseudo: int = 0,
    shares: str = "equal",
    head: str = "true",
    normalize: bool = False,
) -> Spec:
    """The ``spec`` whose top model has the pseudo head and, with head="true", the old top model as true head.
    Without a top model the spec stays as it is.

    For a top model that always has two logits the pseudo head is an MLP with its hidden layers. Raises
    ``ValueError`` for a top model that another defense has extended.
    """
    del normalize
    if spec.top is None:
        return spec
    if not hasattr(spec.top, "hidden"):
        raise ValueError(
            "class_splitting's heads replace the top model: list class_splitting before defenses that "
            "extend it."
        )
    counts = counts_of(spec.num_classes, pseudo, shares)
    top: Any = MLP(spec.top.hidden, sum(counts), "leaky_relu", weights=spec.top.weights)
    if isinstance(spec.top, (MLP, Head)):  # other top models always have two logits
        top = dataclasses.replace(spec.top, out=sum(counts))
    weights = tuple(np.repeat(spec.class_weights, counts).tolist()) if spec.class_weights else ()
    heads = (sum(counts),)
    if head == "true":
        top = TwoHeads(first=top, second=spec.top, weights=spec.top.weights)
        weights, heads = (*weights, *spec.class_weights), (*heads, spec.num_classes)
    return dataclasses.replace(spec, top=top, heads=heads, class_weights=weights)


ROW = DefenseRow(
    factory=class_splitting,
    example={"epsilon": 1.0},
    # flips that are drawn once are learned away, and pseudo classes of one class lie near each other. Linear
    # readers such as probe and joint read less of ten classes than columns tell by themselves
    known_by={"split": (Knower("spreading"),)},
    needs_top=True,
    network=network,
    strengths=Strengths("epsilon", (8.0, 4.0, 2.0, 1.0, 0.5)),
    remarks=private_remarks(
        lambda options: True,
        guess_text,
        "Class splitting bounds what crosses the wire in training: an attacker's posterior odds of two labels "
        "are at most e^epsilon times its prior odds, which include what it knows from features. The bound "
        "does not cover the true head, which learns the true labels, nor shares that were taken from them.",
    ),
)
