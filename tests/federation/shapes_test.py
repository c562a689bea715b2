"""Arrays whose shapes do not fit are refused when a program is traced."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from tests import harness
from vfljax import keys
from vfljax.federation import protocol
from vfljax.models import parties


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("labels", lambda a: a[:, None]),
        ("labels", lambda a: a[1:]),
        ("labels", lambda a: a.astype(jnp.float32)),
        ("index", lambda a: a[1:]),
        ("features", lambda parts: (parts[0][1:], *parts[1:])),
        ("scores", lambda a: a[:, 1:]),
        ("scores", lambda a: a[1:]),
    ],
)
def test_a_batch_of_other_shapes_is_refused(field, change):
    spec = harness.make_spec()
    hparams = harness.make_hparams(spec)
    state, batch = harness.make_state(spec, hparams), harness.make_batch(spec, 0)
    wrong = batch._replace(**{field: change(getattr(batch, field))})
    with pytest.raises(AssertionError):
        jax.eval_shape(protocol.make_step(spec), state, wrong, hparams)


def test_numbers_of_several_settings_in_place_of_one_are_refused():
    spec = harness.make_spec(defenses=("noise",))
    hparams = harness.make_hparams(spec, {"noise": {"scale": 0.1}})
    state, batch = harness.make_state(spec, hparams), harness.make_batch(spec, 0)
    two = jnp.ones(2)
    for wrong in (
        hparams._replace(learning_rate=two),
        hparams._replace(milestones=jnp.float32(1)),
        hparams._replace(gamma=two),  # of three bottoms
        hparams._replace(defenses={"noise": {"scale": two}}),
    ):
        with pytest.raises(AssertionError):
            jax.eval_shape(protocol.make_step(spec), state, batch, wrong)


def test_columns_and_keys_of_other_shapes_are_refused():
    spec = harness.make_spec()
    batch = harness.make_batch(spec, 0)
    weights = harness.make_state(spec, harness.make_hparams(spec)).weights
    fewer = (batch.features[0][1:], *batch.features[1:])
    for wrong in (batch.features[1:], fewer):
        for make in (protocol.make_embed, protocol.make_predict):
            with pytest.raises(AssertionError):
                jax.eval_shape(make(spec), weights, wrong)
        with pytest.raises(AssertionError):
            jax.eval_shape(protocol.make_weights(spec), keys.run_key(0), wrong)
    several = jax.vmap(keys.run_key)(jnp.arange(2, dtype=jnp.uint32))
    with pytest.raises(AssertionError):
        jax.eval_shape(protocol.make_weights(spec), several, batch.features)


def test_the_loss_refuses_targets_that_do_not_match_its_logits():
    spec = harness.make_spec(3)
    _, top, _ = parties.parties(spec)
    loss = protocol.cross_entropy(top)
    active = harness.make_weights(dataclasses.replace(spec, optimizers=()), 0).active
    f = jnp.zeros((8, 12))  # three embeddings of 4
    context = harness.make_context(8)
    value, _ = loss(active, f, (), jnp.full((8, 3), 1 / 3), context, ())
    assert value.shape == ()
    for targets in (jnp.ones((8, 2)), jnp.ones((7, 3)), jnp.ones(8)):
        with pytest.raises(AssertionError):
            loss(active, f, (), targets, context, ())
    with pytest.raises(AssertionError):
        loss(active, f, (jnp.zeros((7, 4)),), jnp.ones((8, 3)), context, ())
