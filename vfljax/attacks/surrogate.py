"""The surrogate top: models of the top model and of the labels that explain the gradients (after ExPLoit).

Its attacker replays what the label party does. A surrogate h (D -> hidden -> C, tanh) stands for the top
model, and q_i = softmax(u_i) for row i's label. Both are trained such that h with the labels q would have
sent the gradients g_i that came back for the embeddings z_i. With p_i = softmax(h(z_i)),

    L(S) = mean_S || B g_i - grad_z CE(q_i, h(z_i)) || / mean || B g_i ||          (the gradients)
           + cross_entropy  mean_S CE(q_i, p_i) / H(prior)                         (the labels)

    minimize over h and u    L(all rows) + anchor L(known rows) + balance KL(prior || mean p_i)

Means without S are over all rows, so that a constant h has the gradient term 1 in L(all rows). B undoes the
mean over the batch; the last, shorter batch of an epoch is read as if it were whole.

Exchanging h's outputs exchanges q's classes and changes no gradient. Classes get their names from the known
rows, whose q is their label. Without known rows the uniform prior names none.

Reference: Kariyappa and Qureshi, "ExPLoit: Extracting Private Labels in Split Learning", arXiv 2112.01299.
Only its abstract was read. The loss is that of two restatements, of which SecretFlow's minimizes
|| grad - g ||, and the other || grad - g ||^2 and uses known rows.

Deviations:

* q starts uniform and is free for each row. SecretFlow's port gives its attacker the label party's rounded
  predictions, which is an oracle, and computes the gradient term on detached values, so that it matches
  nothing. Here it is differentiated.
* Embeddings are standardized by column, and gradients multiplied by the columns' spreads, which makes them
  those with respect to what h reads. The gradient term has no unit.
* All rows are read at each step (published: batches). The default width and steps are small, for suites
  of many trials; the port's width is 64. Weights were chosen on simulated top models.

Labels that are numbers (ours): q_i = u_i and p_i = h(z_i) are numbers, the cross entropy is their squared
difference, and the balance term is (mean q)^2 + (std q - 1)^2, because labels are standardized. If the parties
agreed on Huber's loss, the difference is clipped in the gradient term. Xie, Yang, Yao, Liu, Wang, Sun, "Label
Inference Attack against Split Learning under Regression Setting" (arXiv 2301.07284, of which only the abstract
was read) also adds learning objectives to the gradients.

z and g are of one recorded epoch. The top model moves within it, which the surrogate does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from vfljax import keys, tasks
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.probe import standardized
from vfljax.models import MLP
from vfljax.models.parties import from_module
from vfljax.types import MALICIOUS, SPLIT, Array, Known, PyTree, Scores, View

KNOBS = {"learning_rate": 5e-2, "cross_entropy": 0.1, "balance": 1.0, "anchor": 0.05}
SURE = -20.0  # the logarithm that stands for a q of 0


class Seen(NamedTuple):
    """What the surrogate explains."""

    z: Array  # [N, D] standardized embeddings; 0 for rows that were not sent
    g: Array  # [N, D] B times the gradient with respect to z; likewise
    sent: Array  # [N] bool
    labels: Array  # [N] as in ``Known``, -1 where the label is not known
    named: Array  # [N] bool: whether it is known


def seen_of(view: View, known: Known, epoch: Array | int) -> Seen:
    """What was exchanged in a recorded ``epoch``, in the units of the surrogate's input."""
    place = core.place_of(view, epoch)
    chex.assert_rank([view.embeddings, view.gradients, view.sent], [3, 3, 2])
    chex.assert_equal_shape_prefix([view.embeddings, view.gradients, view.sent], 2)
    z, g, sent = view.embeddings[place], view.gradients[place], view.sent[place]
    within = sent[:, None]
    spread = jnp.std(z, axis=0, where=within, keepdims=True)
    g = jnp.where(within, view.agreed.batch_size * spread * g, 0.0)
    labels, named = core.labels_by_row(known, len(z)), core.known_by_row(known, len(z))
    return Seen(standardized(z, sent), g, sent, labels, named)


def length(x: Array) -> Array:
    """The lengths [N] of rows x [N, D]; its gradient at 0 is 0."""
    squares = jnp.sum(x**2, axis=1)
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0)


def make_loss(
    logits_of: Callable[[PyTree, Array], Array], seen: Seen, knobs: Knobs, huber: float = 0.0
) -> Callable[[tuple[PyTree, Array]], Array]:
    """The loss of the module's docstring as a function of ``(surrogate's parameters, u [N, C])``.

    The prior is uniform, because equally many rows of each class are known, whatever the classes' shares. Of
    numbers ``huber`` is the delta of the label party's loss, 0 for the squared error.
    """
    named, sent = seen.named, seen.sent
    count = jnp.maximum(jnp.sum(sent), 1)
    total = jnp.sum(length(seen.g))
    # the weights of the mean over all rows, plus those of the mean over the known ones
    anchors = jnp.where(named & sent, knobs["anchor"] / jnp.maximum(jnp.sum(named & sent), 1), 0)
    weights = sent / count + anchors

    def loss(parameters: tuple[PyTree, Array]) -> Array:
        params, u = parameters
        classes = u.shape[1]
        q = labels_of(u, seen)
        logits, back = jax.vjp(lambda z: logits_of(params, z), seen.z)
        if classes == 1:
            away = logits - q  # half of the squared error's gradient; Huber's is clipped
            slope = 2 * (jnp.clip(away, -huber, huber) if huber else away)
            off = length(back(slope)[0] - seen.g) * count / jnp.where(total > 0, total, 1)
            mean = jnp.sum(q * sent[:, None]) / count
            variance = jnp.sum((q - mean) ** 2 * sent[:, None]) / count
            balance = mean**2 + (jnp.sqrt(variance + 1e-12) - 1) ** 2
            each = off + knobs["cross_entropy"] * jnp.sum((q - logits) ** 2, axis=1)
            return jnp.sum(weights * each) + knobs["balance"] * balance
        log_p = jax.nn.log_softmax(logits)
        p = jnp.exp(log_p)
        # the gradient of CE(q, h(z)) by logits is p - q, since q sums to 1
        off = length(back(p - q)[0] - seen.g) * count / jnp.where(total > 0, total, 1.0)
        entropy = -jnp.sum(q * log_p, axis=1) / jnp.log(classes)
        mean_p = jnp.sum(p * sent[:, None], axis=0) / count
        divergence = -jnp.log(classes) - jnp.mean(jnp.log(jnp.maximum(mean_p, 1e-12)))
        each = off + knobs["cross_entropy"] * entropy
        return jnp.sum(weights * each) + knobs["balance"] * divergence

    return loss


def labels_of(u: Array, seen: Seen) -> Array:
    """The surrogate labels q [N, C]: softmax(u), or the number u, and the label itself where it is known."""
    classes = u.shape[1]
    guessed = u if classes == 1 else jax.nn.softmax(u)
    return jnp.where(seen.named[:, None], tasks.of(classes).targets(seen.labels, classes), guessed)


def surrogate(
    bottoms: Bottoms,
    num_classes: int,
    *,
    names: str = "known",
    hidden: int = 16,
    epoch: int = -1,
    steps: int = 300,
) -> Attack:
    """Train a surrogate top model and a label of every row that together explain the gradients.

    Knobs: how many labels are ``known``, Adam's ``learning_rate``, and the loss's weights
    ``cross_entropy``, ``balance`` and ``anchor``.

    Args:
      names: "known" for classes named by the known rows, "none" for an attacker without any label.
      hidden: units of the surrogate's hidden layer, 0 for a linear surrogate.
      epoch: a recorded one, -1 for the last.
      steps: of Adam, each on all rows.

    Returns:
      An attack whose scores [N, C] are the logarithms of q, NaN for rows not sent in that epoch. Known rows
      score their label. Of numbers they are q.
    """
    del bottoms
    named = core.named_by(names, KNOBS)
    for name, value, low in (("hidden", hidden, 0), ("epoch", epoch, -1), ("steps", steps, 1)):
        core.check_whole(name, value, low)
    model = from_module(MLP((hidden,) if hidden else (), num_classes, "tanh"))

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        seen = seen_of(view, known, epoch)
        if names == "none":
            seen = seen._replace(named=jnp.zeros_like(seen.named))

        def logits_of(params: PyTree, z: Array) -> Array:
            return model.apply({"params": params}, z, False, None)[0]

        params = model.init(keys.fold(key, "model"), seen.z[:1])["params"]
        start = (params, jnp.zeros((len(seen.z), num_classes)))

        loss = make_loss(logits_of, seen, knobs, view.agreed.huber)
        adam = optax.adam(knobs["learning_rate"])
        _, u = core.minimize(loss, start, adam, steps)
        if num_classes == 1:
            return core.scored(labels_of(u, seen), seen.sent)
        known_labels = jnp.where(jax.nn.one_hot(seen.labels, num_classes) > 0, 0.0, SURE)
        scores = jnp.where(seen.named[:, None], known_labels, jax.nn.log_softmax(u))
        return core.scored(scores, seen.sent)

    return Attack(
        run,
        (SPLIT, MALICIOUS),
        **named,
        adaptive=True,
        reads=("embeddings", "gradients"),
        steps=steps,
        epoch=epoch,
        draws=core.FEW_DRAWS,
    )


ROW = AttackRow(
    surrogate, widest=core.WIDEST, cost=core.TRAIN, full_effort=True, not_for_numbers=""
)
