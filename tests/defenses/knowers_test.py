"""Who knows a defense of gradients reads planted labels at every strength of its row, but those stated there.

Of defenses of targets and losses this is in ``direct_test``, ``posterior_test`` and ``charge_test``.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests import harness
from tests.report.made import made
from vfljax.attacks.direct import most_negative
from vfljax.defenses import TABLE
from vfljax.testing.federations import make_context

ROWS, EPOCHS, READ = 256, 40, 0.85
LABELS = np.arange(ROWS) % 2
OF_GRADIENTS = ("noise", "compression", "discrete_sgd", "marvell", "proj_pert", "ppdl")


def leaks(name, value):
    """What is read of the average gradient and of the average sign of a batch that is sent in every epoch
    without model splitting, of all epochs but the first."""
    row = TABLE[name]
    defense = row(**{**row.example, **row.strengths.fixed, row.strengths.knob: value})
    slot = optax.with_extra_args_support(defense.gradient)
    p = np.random.default_rng(0).dirichlet((1, 1), size=(EPOCHS, ROWS))
    gradients = jnp.float32((p - np.eye(2)[LABELS]) / ROWS)

    def epoch(state, given):
        step, g = given
        context = make_context(ROWS)._replace(
            key=jax.random.key(step), step=step, epoch=step, steps_per_epoch=jnp.int32(1)
        )
        (g,), state = slot.update((g,), state, embeddings=(g,), context=context)
        return state, g

    start = slot.init((gradients[0],))
    g = jax.lax.scan(epoch, start, (jnp.arange(EPOCHS), gradients))[1][1:]
    scores = (most_negative(jnp.mean(x, axis=0)) for x in (g, jnp.sign(g)))
    return jnp.stack([harness.leak_best_named(jnp.nan_to_num(s), LABELS) for s in scores])


@pytest.mark.parametrize("name", OF_GRADIENTS)
def test_who_knows_a_defense_reads_planted_labels_at_every_strength_but_those_stated(name):
    row = TABLE[name]
    knob, values, _, _, faint = row.strengths
    read = harness.quick_jit(jax.vmap(functools.partial(leaks, name)))(jnp.float32(values))
    assert tuple(np.array(values)[np.max(read, axis=1) < READ]) == faint
    assert [v for v in values if row.faint({knob: v})] == list(faint)


def test_a_verdict_states_whether_little_is_read_at_such_a_strength():
    def faint(scale):
        found = made({"norm": 0.9}, {"norm": 0.6}, knobs={"noise.scale": [None, scale]})
        return found.verdicts["faint"].tolist()

    assert faint(0.1) == [False, True]
    assert faint(0.01) == [False, False]
