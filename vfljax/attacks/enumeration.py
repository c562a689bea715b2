"""Online enumeration: a surrogate top model replays training and picks each row's class (after UnSplit).

Its attacker replays the batches of all recorded epochs in the order in which they were sent. h(z) = z W + b,
W [D, C], stands for the label party's top model. For each batch in turn, with z and g as in ``surrogate``,

    r_ic = || grad_z CE(h(z_i), c) - B g_i ||^2,   q_i = argmin_c r_ic,   h <- a step on mean CE(q_i, h(z_i)).

h is drawn, and first trained on the known rows, which name the classes and whose q is their label. Of several
draws, that of least sum_i min_c r_ic in the last epoch counts. Scores are minus the mean of r over epochs.

References: UnSplit (Erdogan, Kupcu, Cicek 2022; its code compares gradients of the top model's weights, which
no passive party receives), BlindSage (abstract). Known rows, several draws and graded scores are ours.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax

from vfljax import keys
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.surrogate import Seen, seen_of
from vfljax.types import MALICIOUS, SPLIT, Array, Known, Scores, View

Linear = tuple[Array, Array]  # W [D, C] and b [C] of h
WARM, MOST_TAUGHT = 100, 256  # steps on the known rows alone, and the most of these that they read


def drawn(key: Array, width: int, classes: int) -> Linear:
    """h with normal weights of variance 1 / D, D = ``width``."""
    return jax.random.normal(key, (width, classes)) / jnp.sqrt(width), jnp.zeros(classes)


def simulated(h: Linear, z: Array) -> Array:
    """grad_z CE(h(z_i), c) [n, C, D] of rows z [n, D] under every class c."""
    off = jax.nn.softmax(core.multiply(z, h[0]) + h[1][None])[:, None] - jnp.eye(len(h[1]))[None]
    return core.multiply(off, h[0].T)


def cross_entropy(h: Linear, z: Array, labels: Array, weights: Array) -> Array:
    """The mean of CE over rows of z [n, D] with ``weights`` and ``labels`` [n]."""
    logits = core.multiply(z, h[0]) + h[1][None]
    each = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return jnp.sum(weights * each) / jnp.maximum(jnp.sum(weights), 1.0)


def followed(h: Linear, batches: Seen, adam: optax.GradientTransformation, steps: int) -> Array:
    """r [T, B, C] of T ``batches`` in order, each by the h before its own ``steps`` on this batch."""

    def meet(carry: tuple, batch: Seen) -> tuple[tuple, Array]:
        h, state = carry
        r = jnp.sum((simulated(h, batch.z) - batch.g[:, None]) ** 2, axis=-1)
        q = jnp.where(batch.labels < 0, jnp.argmin(r, axis=1), batch.labels)
        for _ in range(steps):
            update, state = adam.update(jax.grad(cross_entropy)(h, batch.z, q, batch.sent), state)
            h = optax.apply_updates(h, update)
        return (h, state), r

    return jax.lax.scan(meet, (h, adam.init(h)), batches)[1]


def renamed(scores: Array, known: Known) -> Array:
    """The scores [N, C] with classes permuted such that as many known rows as possible score their label."""
    labels, called = core.labels_by_row(known, len(scores)), jnp.argmax(scores, axis=1)
    by_label, by_column = (jax.nn.one_hot(c, scores.shape[1]) for c in (labels, called))
    true, column = optax.assignment.hungarian_algorithm(-core.multiply(by_label.T, by_column))
    return jnp.zeros_like(scores).at[:, true].set(scores[:, column])


def enumeration(
    bottoms: Bottoms, num_classes: int, *, names: str = "known", steps: int = 1, draws: int = 16
) -> Attack:
    """Follow the training with a surrogate top model, and score each class by how it explains the gradients.

    Knobs: how many labels are ``known``, and Adam's ``learning_rate``.

    Args:
      names: "known" for classes named by the known rows, "none" for an attacker without any label.
      steps: how many the surrogate takes on each batch.
      draws: how many surrogates are tried.

    Returns:
      An attack whose scores [N, C] are minus squared distances; NaN for rows that no recorded epoch sent.
    """
    del bottoms
    fields = core.named_by(names, {"learning_rate": 1e-2}) | core.reads_epoch("mean")
    core.check_whole("steps", steps, 1)
    core.check_whole("draws", draws, 1)
    named = names == "known"

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        epochs = range(len(view.sent))
        known = known if named else known._replace(labels=0 * known.labels - 1)
        seen = [seen_of(view, known, view.epochs[place]) for place in epochs]
        parts = [core.batches_at(view, place) for place in epochs]
        gathered = [jax.tree.map(b.gather, x) for b, x in zip(parts, seen, strict=True)]
        batches = jax.tree.map(lambda *x: jnp.concatenate(x), *gathered)
        first, adam = seen[0], optax.adam(knobs["learning_rate"])
        rows, labels = known.rows[:MOST_TAUGHT], known.labels[:MOST_TAUGHT]
        taught = first.z[rows], labels, first.sent[rows] & (labels >= 0)

        def attempt(key: Array) -> tuple[Array, Array]:
            h = drawn(key, first.z.shape[1], num_classes)
            h = core.minimize(lambda h: cross_entropy(h, *taught), h, adam, WARM * named)
            r = jnp.split(followed(h, batches, adam, steps), len(epochs))
            r = jnp.stack([b.scatter(x, len(first.z)) for b, x in zip(parts, r, strict=True)])
            return jnp.nanmean(r, axis=0), jnp.nansum(jnp.min(r[-1], axis=1))

        r, left = jax.vmap(attempt)(jax.random.split(keys.fold(key, "surrogate"), draws))
        scores, sent = -r[jnp.argmin(left)], jnp.any(view.sent, axis=0)
        return core.scored(renamed(scores, known) if named else scores, sent)

    reads = ("embeddings", "gradients", "order")
    return Attack(run, (SPLIT, MALICIOUS), **fields, reads=reads, steps=steps, draws=core.FEW_DRAWS)


ROW = AttackRow(enumeration, widest=core.WIDEST, cost=core.TRAIN)
