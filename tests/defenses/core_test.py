"""The chain of defenses: composition without interference, and the checks of knobs."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests import harness
from vfljax import defenses
from vfljax.defenses.compression import compression
from vfljax.defenses.core import Defense, TrainingData, chain, per_party
from vfljax.defenses.noise import noise

DATA = TrainingData(jnp.zeros(8, jnp.int32), jnp.zeros((8, 3)), 3)
ZEROS = (jnp.zeros((8, 4)), jnp.zeros((8, 4)))


def context(step=0):
    three_classes = {"labels": jnp.arange(8) % 3, "scores": None, "epoch": jnp.int32(0)}
    return harness.make_context(8, step)._replace(**three_classes)


def gradients(defense, g=ZEROS, step=0):
    """The gradients that a defense's gradient slot sends for ``g``."""
    transform = optax.with_extra_args_support(defense.gradient)
    sent, _ = transform.update(g, transform.init(g), None, embeddings=g, context=context(step))
    return tuple(np.asarray(party) for party in sent)


def init(defense):
    return defense.init(jax.random.key(0), DATA)


def on_targets(rule):
    def targets(targets, context, state):
        return rule(targets), context, state

    return Defense(targets=targets)


def on_loss(rule):
    def wrap(loss_fn):
        def loss(*arguments):
            value, aux = loss_fn(*arguments)
            return rule(value), aux

        return loss

    return Defense(loss=wrap)


def base_loss(active, f, embeddings, targets, context, state):
    return jnp.float32(1), ("logits", "variables", state)


def loss_of(defense, states=None):
    states = init(defense) if states is None else states
    return defense.loss(base_loss)({}, None, (), None, context(), states)


def counter():
    """A defense with state of its own in the loss slot: how often it was asked."""

    def wrap(loss_fn):
        def loss(active, f, embeddings, targets, context, state):
            value, (logits, variables, state) = loss_fn(
                active, f, embeddings, targets, context, state
            )
            return value, (logits, variables, state._replace(state=state.state + 1))

        return loss

    return Defense(init=lambda key, data: jnp.int32(0), loss=wrap)


def test_an_empty_chain_is_no_defense():
    g = (jnp.ones((8, 4)), 2 * jnp.ones((8, 4)))
    chex.assert_trees_all_equal(gradients(chain(), g), g)
    assert loss_of(chain()) == (1, ("logits", "variables", {}))
    targets, _, state = chain().targets("targets", context(), {})
    assert targets == "targets"
    assert state == {}


def test_two_noise_defenses_under_different_names_never_share_a_draw():
    first, second = (gradients(chain(**{name: noise(1.0)})) for name in ("a", "b"))
    for one, two in zip(first, second):
        assert np.min(np.abs(one - two)) > 0
    both = gradients(chain(a=noise(1.0), b=noise(1.0)))
    for one, two, total in zip(first, second, both):
        np.testing.assert_allclose(total, one + two, rtol=1e-5, atol=1e-6)


def test_removing_or_moving_one_member_leaves_the_draws_of_the_others():
    doubled = Defense(gradient=optax.identity())
    alone = gradients(chain(noise=noise(1.0)))
    for other in (
        chain(other=doubled, noise=noise(1.0)),
        chain(noise=noise(1.0), other=doubled),
        chain(zero=noise(0.0), noise=noise(1.0)),
    ):
        chex.assert_trees_all_equal(alone, gradients(other))


def test_two_steps_never_share_a_draw():
    for one, two in zip(gradients(chain(n=noise(1.0))), gradients(chain(n=noise(1.0)), step=1)):
        assert np.min(np.abs(one - two)) > 0


def test_a_partys_draw_does_not_depend_on_how_many_others_there_are():
    defense = chain(noise=noise(1.0))
    np.testing.assert_array_equal(gradients(defense)[0], gradients(defense, ZEROS[:1])[0])


def test_in_the_targets_slot_the_first_listed_acts_first():
    more, double = on_targets(lambda t: t + 1), on_targets(lambda t: 2 * t)
    for defense, expected in (
        (chain(more=more, double=double), 8.0),
        (chain(double=double, more=more), 7.0),
    ):
        assert defense.targets(3.0, context(), init(defense))[0] == expected


def test_in_the_loss_slot_the_first_listed_is_innermost():
    more, double = on_loss(lambda v: v + 1), on_loss(lambda v: 2 * v)
    assert loss_of(chain(more=more, double=double))[0] == 4
    assert loss_of(chain(double=double, more=more))[0] == 3


def test_in_the_gradient_slot_the_first_listed_acts_first():
    sparse_last = gradients(chain(noise=noise(1.0), compression=compression(0.5)))
    noisy_last = gradients(chain(compression=compression(0.5), noise=noise(1.0)))
    assert [np.sum(g == 0) for g in sparse_last] == [16, 16]
    assert [np.sum(g == 0) for g in noisy_last] == [0, 0]


def test_later_target_slots_see_the_labels_an_earlier_one_left():
    contexts = []

    def hide(targets, context, state):
        return targets, context._replace(labels=jnp.zeros_like(context.labels)), state

    def look(targets, context, state):
        contexts.append(context)
        return targets, context, state

    defense = chain(hide=Defense(targets=hide), look=Defense(targets=look))
    _, after, _ = defense.targets(1.0, context(), init(defense))
    assert not np.any(contexts[0].labels)
    assert not np.any(after.labels)
    assert np.any(context().labels)


def test_each_member_receives_a_key_of_its_own_in_every_slot():
    contexts = {}

    def spy(name):
        def targets(targets, context, state):
            contexts[name, "targets"] = context
            return targets, context, state

        def wrap(loss_fn):
            def loss(active, f, embeddings, targets, context, state):
                contexts[name, "loss"] = context
                return loss_fn(active, f, embeddings, targets, context, state)

            return loss

        def update(updates, state, params=None, *, context, **extra):
            contexts[name, "gradient"] = context
            return updates, state

        def init_state(params):
            return optax.EmptyState()

        transform = optax.GradientTransformationExtraArgs(init_state, update)
        return Defense(targets=targets, loss=wrap, gradient=transform)

    defense = chain(a=spy("a"), b=spy("b"))
    states = init(defense)
    _, after, states = defense.targets(1.0, context(), states)
    defense.loss(base_loss)({}, None, (), None, context(), states)
    gradients(defense)
    words = {at: jax.random.key_data(c.key).tolist() for at, c in contexts.items()}
    for slot in ("targets", "loss", "gradient"):
        assert words["a", slot] != words["b", slot]
        assert words["a", slot] == words["a", "targets"]  # whoever stands inside or outside
        assert words["b", slot] == words["b", "targets"]
        run = [jax.random.key_data(contexts[n, slot].run_key).tolist() for n in "ab"]
        assert run[0] != run[1]
    assert jnp.all(jax.random.key_data(after.key) == jax.random.key_data(context().key))


@pytest.mark.parametrize("order", [("counter", "outer"), ("outer", "counter")])
def test_a_stateful_loss_slot_keeps_its_state_with_another_defense_around_it(order):
    members = {"counter": counter(), "outer": on_loss(lambda v: 2 * v)}
    defense = chain(**{name: members[name] for name in order})
    states = init(defense)
    for expected in (1, 2, 3):
        value, (_, _, states) = loss_of(defense, states)
        assert value == 2
        assert set(states) == {"counter", "outer"}
        assert states["counter"] == expected
        assert states["outer"] == ()


def test_two_stateful_loss_slots_keep_their_states_apart():
    defense = chain(one=counter(), two=counter())
    states = {"one": jnp.int32(10), "two": jnp.int32(20)}
    _, (_, _, states) = loss_of(defense, states)
    assert states == {"one": 11, "two": 21}


def test_members_prepare_themselves_from_keys_folded_by_name():
    drawn = Defense(init=lambda key, data: jax.random.normal(key, (4,)))
    both = chain(a=drawn, b=drawn).init(jax.random.key(0), DATA)
    alone = chain(b=drawn).init(jax.random.key(0), DATA)
    assert np.all(np.asarray(both["a"]) != np.asarray(both["b"]))
    np.testing.assert_array_equal(both["b"], alone["b"])


def test_per_party_rules_draw_for_every_party_anew():
    transform = per_party(lambda key, g, context: g + jax.random.normal(key, g.shape))
    sent, _ = transform.update(ZEROS, transform.init(ZEROS), context=context())
    assert np.min(np.abs(np.asarray(sent[0]) - np.asarray(sent[1]))) > 0


@pytest.mark.parametrize("options", [{}, {"mechanism": "rr_with_prior"}])
def test_members_after_label_dp_prepare_themselves_with_the_labels_it_drew(options):
    """All rows', as training will see them: not the teacher's lesson, which hides half."""
    received = []

    def watch(key, data):
        received.append(data.labels)
        return ()

    drawn = defenses.TABLE["label_dp"](0.5, **options)
    data = DATA._replace(labels=jnp.arange(8) % 3, scores=jnp.full((8, 3), 1 / 3))
    states = chain(label_dp=drawn, other=Defense(init=watch)).init(jax.random.key(3), data)
    np.testing.assert_array_equal(received[0], states["label_dp"])
    assert np.any(np.asarray(received[0]) != np.asarray(data.labels))
