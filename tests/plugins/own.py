"""A defense and attacks of one's own, as a plugin of the tests. A copy of it is imported, never this file."""

import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.attacks import Attack, AttackRow
from vfljax.attacks.core import received, two_sided
from vfljax.defenses import Defense, DefenseRow, Remarks, core
from vfljax.defenses.rows import AVERAGING, READING
from vfljax.types import KINDS, Scores

__version__ = "0.1"


def swapped(rate, *, rows="any"):
    """Each row's gradient is replaced by another row's of the batch with probability ``rate``."""
    errors.check("rate", rate, 0.0, 1.0)
    errors.check_choice("rows", rows, ("any", "next"))

    def rule(key, g, context):
        order, chosen = jax.random.split(key)
        other = jax.random.permutation(order, g) if rows == "any" else jnp.roll(g, 1, axis=0)
        return jnp.where(jax.random.bernoulli(chosen, rate, (len(g), 1)), other, g)

    return Defense(gradient=core.per_party(rule))


shuffle = DefenseRow(
    swapped,
    example={"rate": 0.5},
    known_by={"split": AVERAGING, "no_split": READING},
    neutral={"rate": 0.0},
    remarks=lambda knobs, options: Remarks(
        bound=lambda prior: (f"{knobs['rate']:g}", f"{max(prior):.3f}"),
        bound_sentence="Rows are swapped.",
        knob_labels={"rate": "swapped"},
    ),
)


def total(bottoms, num_classes, *, sign="plus"):
    """The sum of a row's gradient."""
    if sign not in ("plus", "minus"):
        raise ValueError(f"sign={sign!r} is unknown: choose plus or minus.")

    def run(key, view, known, knobs):
        g, sent = received(view, -1)
        scores = two_sided(g.sum(axis=1) * (1 if sign == "plus" else -1), sent)
        return Scores(scores)

    return Attack(run, KINDS, binary=True)


guess = AttackRow(total)
