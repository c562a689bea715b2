"""KDk: knowledge distillation and k-anonymous soft labels (Arazzi et al. 2024).

The label party replaces each one-hot label by mass 1 - epsilon on an anchor class and mass
epsilon/(k-1) on each of the k-1 classes that its teacher ranks highest among the others. The teacher
is trained on the label party's own columns before the federation starts, and its probabilities
reach the step as a data column (``vfljax.federation.teacher``).

    t_anchor = 1 - epsilon,   t_c = epsilon / (k - 1) for the next k - 1 classes,   0 elsewhere

Reference: Arazzi, Nicolazzo, Nocera. "KDk: A Defense Mechanism Against Label Inference Attacks
in Vertical Federated Learning", 2024, section 5, equations 8-11 and algorithm 1.

Guarantee: none that is formal. k-anonymity holds for the SET of classes with mass. The masses
themselves differ unless epsilon = (k-1)/k, so an attacker that reads magnitudes is not bound by it.

Edge cases
    k = 1                 the one-hot label
    epsilon = 0           the one-hot label (anchor="label"); the teacher's argmax ("teacher")
    epsilon = (k-1)/k     uniform over k classes
    epsilon > (k-1)/k     the anchor has the SMALLEST of the k masses
    k = C                 every class has mass
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.defenses import core
from vfljax.defenses.rows import DefenseRow, Knower, Strengths
from vfljax.types import Array, Context, PyTree


def kdk_targets(
    scores: Array, targets: Array, k: Array | int, epsilon: Array | float, anchor: str = "label"
) -> Array:
    """Soft labels [B, C], rows summing to 1, from teacher ``scores`` and ``targets``, both [B, C].

    ``anchor="label"`` puts the mass 1 - epsilon on the class of a one-hot target (released code; default),
    ``"teacher"`` on the teacher's argmax (paper, equation 9). Ties go to the lower class. Unlike the
    released code's, rows sum to 1 also where the label is outside the teacher's top k: the k classes
    are the anchor and the k-1 best others. ``k`` and ``epsilon`` are scalars. Both may be traced, so that
    ranks are found by counting and not by ``top_k``.

    Reduces to ``targets`` at epsilon = 0 or k = 1 if they are one-hot and ``anchor="label"``.

    >>> scores, label = jnp.array([[0.2, 0.5, 0.3]]), jnp.array([[1.0, 0.0, 0.0]])
    >>> kdk_targets(scores, label, k=2, epsilon=0.25).tolist()
    [[0.75, 0.25, 0.0]]
    """
    chex.assert_rank([scores, targets, k, epsilon], [2, 2, 0, 0])
    chex.assert_equal_shape([scores, targets])
    if anchor == "teacher":
        targets = jax.nn.one_hot(jnp.argmax(scores, -1), scores.shape[-1], dtype=targets.dtype)
    chosen = jax.nn.one_hot(jnp.argmax(targets, -1), scores.shape[-1], dtype=bool)
    # rank among the others by counting those ahead: C^2 comparisons are cheaper than two sorts
    rivals = jnp.where(chosen, -jnp.inf, scores)
    earlier = jnp.tri(scores.shape[-1], k=-1, dtype=bool)[None]  # [1, c, other]: other < c
    score, other = rivals[:, :, None], rivals[:, None, :]
    ahead = (other > score) | ((other == score) & earlier)
    rank = jnp.sum(ahead, axis=-1)
    spread = jnp.where(k > 1, epsilon, 0.0)
    others = ((rank < k - 1) & ~chosen).astype(targets.dtype)
    return (1 - spread) * targets + spread / jnp.maximum(k - 1, 1) * others


def kdk(epsilon: Array | float, k: Array | int, *, anchor: str = "label") -> core.Defense:
    """KDk with ``epsilon`` in [0, 1] and ``k`` in 1..C, a whole number.

    Reduces to no defense at epsilon = 0 or k = 1 with ``anchor="label"``. It needs a teacher, hence a
    label party that owns columns. Raises ``ValueError`` for a knob out of range or an unknown
    ``anchor``; its ``init`` does for k > C and without a teacher.
    """
    errors.check("epsilon", epsilon, 0.0, 1.0)
    errors.check("k", k, 1, jnp.inf, whole=True)
    errors.check_choice("anchor", anchor, ("label", "teacher"))

    def check(data: core.TrainingData) -> None:
        errors.check(
            "k", k, 1, data.num_classes, remedy=f" The data set has {data.num_classes} classes."
        )
        if data.scores is None:
            raise ValueError(
                "kdk needs a teacher, which is trained on the label party's own columns, and the "
                "label party owns none: set config.parties.label_features=True or drop kdk."
            )

    def targets(targets: Array, context: Context, state: PyTree) -> tuple[Array, Context, PyTree]:
        assert context.scores is not None  # init refused a chain without a teacher
        return kdk_targets(context.scores, targets, k, epsilon, anchor), context, state

    return core.Defense(init=core.stateless(check), targets=targets, reads_scores=True)


ROW = DefenseRow(
    factory=kdk,
    example={"epsilon": 0.4, "k": 2.0},
    known_by={
        # of the k candidates the label's entry is the most negative, and beyond (k-1)/k the least
        "no_split": (
            *(Knower("direct", "most_negative"), Knower("direct", "least_negative")),
            *(Knower("fusion", "subtract"), Knower("fusion", "add")),
        ),
        # rows of a class stay near each other, where linear readers such as probe and joint read less
        "split": (Knower("spreading"),),
    },
    neutral={"epsilon": 0.0, "k": 1.0},
    strengths=Strengths("epsilon", (0.1, 0.2, 0.3, 0.4, 0.45), {"k": 2.0}),
)
