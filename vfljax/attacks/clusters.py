"""Clusters of columns: each gets the class whose simulated gradients match those received (after LEA, 2026).

Rows fall into K clusters by the attacker's columns (k-means), and a map m gives each cluster k a class. With
z and g of epoch 0 as in ``surrogate``, and a linear top model h that is not trained,

    d_ic = grad_z CE(h(z_i), c),   cos(m) = sum_i <d_i,m(k_i), g_i> / (||d(m)|| ||g||),   norms over all rows.

Both sums are those of clusters, A_kc = sum_(i in k) <d_ic, g_i> and S_kc = sum_(i in k) ||d_ic||^2, so that all
C^K maps can be tried. If these are more than ``MOST``, K must be C, and the one-to-one map of largest
sum_k A_k,m(k) is taken (Hungarian algorithm). Of several draws of h, that of largest cosine counts.
Exchanging h's outputs exchanges the classes. A mean over draws therefore contains nothing about them, and any
class may get any name.

    s_ic = sum_(k with m(k) = c) w_ik + gradient cos(m) cos(d_ic, g_i),   w_i = softmax_k(-|x_i - mu_k|^2 / v)

with the row's columns x_i, the clusters' means mu_k, and the mean v of a row's squared distance to its own.

Reference: LEA, arXiv 2603.03777 (abstract), which scores by clusters (``gradient`` = 0); the rest is ours.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import optax

from vfljax import keys
from vfljax.attacks import core, enumeration, spectral, surrogate
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.types import MALICIOUS, SPLIT, Array, Known, Scores, View

MOST = 4096  # maps that are all tried
DRAWS = 32  # of h


def shares(x: Array, members: Array) -> Array:
    """w [N, K] from columns x [N, W]. ``members`` [N, K] is 1 at a row's cluster if the row was sent."""
    means = core.multiply(members.T, x) / jnp.maximum(jnp.sum(members, axis=0), 1.0)[:, None]
    apart = jnp.stack([jnp.sum((x - mean[None]) ** 2, axis=1) for mean in means], axis=1)
    spread = jnp.sum(members * apart) / jnp.maximum(jnp.sum(members), 1.0)
    return jax.nn.softmax(-apart / jnp.where(spread > 0, spread, 1.0), axis=1)


def best_map(along: Array, squares: Array) -> tuple[Array, Array]:
    """The map [K] of largest cosine, and this cosine times ||g||, from A and S [K, C]."""
    count, classes = along.shape
    if classes**count > MOST:
        places, found = optax.assignment.hungarian_algorithm(-along)
        maps = jnp.zeros((1, count), jnp.int32).at[0, places].set(found.astype(jnp.int32))
    else:
        maps = jnp.array(list(itertools.product(range(classes), repeat=count)), jnp.int32)
    sums, squared = (jnp.sum(x[jnp.arange(count)[None], maps], axis=1) for x in (along, squares))
    cosines = sums / jnp.sqrt(jnp.where(squared > 0, squared, 1.0))
    best = jnp.argmax(cosines)
    return maps[best], cosines[best]


def clusters(bottoms: Bottoms, num_classes: int, *, names: str = "known", count: int = 0) -> Attack:
    """Cluster the attacker's columns, and give clusters the classes that agree most with the first gradients.

    Knobs: how many labels are ``known``, and the weight ``gradient`` of each row's own cosine.

    Args:
      names: "known" for classes named by the known rows, "none" for an attacker without any label.
      count: the number K of clusters, 0 for as many as there are classes.

    Returns:
      An attack whose scores [N, C] are shares plus weighed cosines; NaN for rows not sent in epoch 0.
    """
    fields = core.named_by(names, {"gradient": 1.0})
    core.check_whole("count", count, 0)
    core.check_numeric(bottoms, "leave this attack out of config.attacks")
    number, named = count or num_classes, names == "known"
    if num_classes**number > MOST and number != num_classes:
        raise ValueError(f"count={count!r} has over {MOST} maps to classes: choose fewer, or 0.")

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        seen, x = surrogate.seen_of(view, known, 0), core.columns_of(view.features)
        found = spectral.k_means(keys.fold(key, "clusters"), x, seen.sent * 1.0, number)
        members = jax.nn.one_hot(found, number) * seen.sent[:, None]

        def attempt(key: Array) -> tuple[Array, Array, Array]:
            h = enumeration.drawn(key, seen.z.shape[1], num_classes)
            d = enumeration.simulated(h, seen.z)
            along, squares = jnp.sum(d * seen.g[:, None], axis=-1), jnp.sum(d * d, axis=-1)
            lengths = jnp.sqrt(squares * jnp.sum(seen.g**2, axis=1, keepdims=True))
            of_clusters = (core.multiply(members.T, part) for part in (along, squares))
            return *best_map(*of_clusters), along / jnp.where(lengths > 0, lengths, 1.0)

        maps, cosines, each = jax.lax.map(attempt, jax.random.split(keys.fold(key, "top"), DRAWS))
        best = jnp.argmax(cosines)
        scores = core.multiply(shares(x, members), jax.nn.one_hot(maps[best], num_classes))
        agreement = cosines[best] / jnp.maximum(jnp.linalg.norm(seen.g), 1e-12)
        scores += knobs["gradient"] * agreement * each[best]
        return core.scored(enumeration.renamed(scores, known) if named else scores, seen.sent)

    reads = ("columns", "embeddings", "gradients")
    return Attack(run, (SPLIT, MALICIOUS), **fields, adaptive=True, epoch=0, reads=reads)


ROW = AttackRow(clusters, cost=core.SOLVE)
