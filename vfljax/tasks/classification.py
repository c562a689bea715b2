"""Labels that are classes 0..C-1, and the cross entropy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from vfljax import metrics
from vfljax.tasks.certainty import certainty
from vfljax.tasks.core import Read, Task, Utility
from vfljax.types import Array

RARE = 0.3
"""If the rarer of two classes has a smaller share of the rows, utility is AUC."""


def cross_entropy(
    logits: Array, targets: Array, class_weights: tuple[float, ...] = (), delta: float = 0.0
) -> Array:
    """Returns the mean over the batch of CE(targets, softmax(logits)), [].

    Soft targets are allowed (rows summing to 1); for one-hot targets it is the usual CE. With class
    weights w it is sum_bc w_c t_bc (-log q_bc) / sum_bc w_c t_bc, which for one-hot targets is
    PyTorch's weighted mean (Fu et al. 2022, BHI: .3 and 1). Equal weights give the plain mean.

    Args:
      logits, targets: [B, C] each.
      class_weights: w, one per column of logits; () for the plain mean.
      delta: of Huber's loss of numbers; not read.
    """
    del delta
    log_q = jax.nn.log_softmax(logits)
    if not class_weights:
        return -jnp.mean(jnp.sum(targets * log_q, axis=-1))
    weighted = targets * jnp.asarray(class_weights, jnp.float32)[None]
    return -jnp.sum(weighted * log_q) / jnp.sum(weighted)


def credit(scores: Array, labels: Array) -> Array:
    """Returns the number of rows whose largest score is the label's, [] int32."""
    return jnp.sum(jnp.argmax(scores, -1) == labels, dtype=jnp.int32)


def evaluate(read: Read, num_classes: int, unit: Array | float) -> dict[str, Array]:
    """Returns accuracy, balanced accuracy and cross entropy on validation and test rows.

    For C = 2 it adds AUC, and whether the labels were learned inverted: a training AUC below 1/2, which the
    label party can see. The "oriented" figures undo an inversion; without one they equal the plain figures.
    For C > 10 it adds the top-5 accuracy on test rows.
    """
    del unit
    out, inverted = {}, jnp.asarray(False)
    if num_classes == 2:
        logits, labels = read("train")
        out["train_auc"] = metrics.auc(logits[:, 1] - logits[:, 0], labels)
        inverted = out["train_auc"] < 0.5
        out["inverted"] = inverted.astype(jnp.float32)
    for part in ("validation", "test"):
        logits, labels = read(part)
        out[f"{part}_accuracy"] = metrics.accuracy(logits, labels)
        out[f"{part}_balanced_accuracy"] = metrics.balanced_accuracy(logits, labels)
        out[f"{part}_loss"] = metrics.cross_entropy(logits, labels)
        if num_classes == 2:
            auc = metrics.auc(logits[:, 1] - logits[:, 0], labels)
            turned = jnp.where(inverted, logits[:, ::-1], logits)
            out[f"{part}_auc"] = auc
            out[f"{part}_oriented_auc"] = jnp.where(inverted, 1 - auc, auc)
            out[f"{part}_oriented_accuracy"] = metrics.accuracy(turned, labels)
        if num_classes > 10 and part == "test":  # as CIFAR-100 is reported
            out["test_top5_accuracy"] = metrics.topk(logits, labels, 5)
    return out


def named(scores: Array, names: Array) -> Array:
    """Returns the scores [n, C] with each column at the class that it stands for."""
    return jnp.zeros_like(scores).at[:, names].set(scores)


def figures(scores: Array, labels: Array, sent: Array, unlabeled: Array) -> dict[str, Array]:
    """Returns top-1 accuracy of the rows sent and of those of unknown label, F1 of the latter, and of more than
    five classes top-5 accuracies."""
    out = {
        "success": metrics.accuracy(scores, labels, sent),
        "success_unlabeled": metrics.accuracy(scores, labels, unlabeled),
        "f1": metrics.f1(scores, labels, unlabeled),
    }
    if scores.shape[1] > 5:
        out["success_top5"] = metrics.topk(scores, labels, 5, sent)
        out["success_top5_unlabeled"] = metrics.topk(scores, labels, 5, unlabeled)
    return out


def test_figures(scores: Array, labels: Array) -> dict[str, Array]:
    """Returns top-1 accuracy, of two classes F1, and of more than five top-5 accuracy."""
    out = {"test_success": metrics.accuracy(scores, labels)}
    if scores.shape[1] == 2:
        out["test_f1"] = metrics.f1(scores, labels)
    if scores.shape[1] > 5:
        out["test_success_top5"] = metrics.topk(scores, labels, 5)
    return out


def chance(num_classes: int) -> float:
    """Returns 1/2 for two classes, an AUC, and else 1/C, a balanced top-1."""
    return 0.5 if num_classes == 2 else 1 / num_classes


def utility(balance: Sequence[int]) -> Utility:
    """Returns accuracy, or AUC if the rarer of two classes has a share below ``RARE``; of two classes both are
    oriented."""
    oriented = "oriented_" if len(balance) == 2 else ""
    if len(balance) == 2 and min(balance) / sum(balance) < RARE:
        return Utility("AUC", "oriented_auc", "auc", 0.5)
    return Utility("accuracy", f"{oriented}accuracy", "accuracy", max(balance) / sum(balance))


def counted_rows(balance: Sequence[int], rows: int, tied: int = 0) -> int:
    """Returns the rows of the rarest class; of more than two classes those of as many rows of every class, all
    of which a balanced top-1 counts. ``tied`` is of numbers."""
    del tied
    share = min(balance) / sum(balance)
    return max(1, int(rows * share * (len(balance) if len(balance) > 2 else 1)))


def null_spread(num_classes: int, rows: int) -> float:
    """Returns the standard deviation of a share of ``rows`` rows that is chance on average."""
    guess = chance(num_classes)
    return math.sqrt(guess * (1 - guess) / rows)


CLASSIFICATION = Task(
    name="classification",
    credited="accuracy",
    label_type=jnp.int32,
    targets=jax.nn.one_hot,
    loss=cross_entropy,
    credit=credit,
    evaluate=evaluate,
    names=metrics.names,
    named=named,
    leak=metrics.leak,
    figures=figures,
    test_figures=test_figures,
    sure=certainty,
    least_known=lambda num_classes: num_classes,
    most_known=lambda num_classes, rarest, rows: num_classes * rarest,
    scale=lambda num_classes: "leak AUC" if num_classes == 2 else "balanced top-1",
    chance=chance,
    utility=utility,
    counted_rows=counted_rows,
    null_spread=null_spread,
)
