"""Parties as pure functions of a flax module, and how cut embeddings are put together."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.models.drawing import draw
from vfljax.models import MLP, parties

X = jnp.asarray(np.random.default_rng(0).normal(size=(6, 4)), jnp.float32)


class Dropped(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        return nn.Dropout(0.5, deterministic=not train)(x)


def test_layers_are_returned_beside_the_variables_and_never_among_them():
    module = MLP((5, 2), 3)
    party = parties.from_module(module)
    variables = draw(party.init, X)
    assert set(variables) == {"params"}
    out, _ = party.apply(variables, X, False, None)
    np.testing.assert_array_equal(out, module.apply(variables, X))
    for train in (False, True):
        _, (after, layers) = party.apply(variables, X, train, None)
        harness.assert_same_bits(after, variables)
        assert [layer.shape for layer in layers["hidden"]] == [(6, 5), (6, 2)]


def test_colluders_drop_units_by_draws_of_their_own():
    party = parties.together([parties.from_module(Dropped())] * 2)
    z, _ = party.apply(({}, {}), (X, X), True, jax.random.key(0))
    first, second = np.split(np.asarray(z), 2, axis=-1)
    assert np.any(first != second)


RESTATED = {
    "concatenate": lambda parts: np.concatenate(parts, axis=1),
    "sum": lambda parts: np.sum(parts, axis=0),
    "mean": lambda parts: np.mean(parts, axis=0),
}


@pytest.mark.parametrize("name", parties.AGGREGATIONS)
def test_aggregations_are_what_they_are_called(name):
    for count in (1, 3):
        parts = [np.asarray(X) + i for i in range(count)]
        ours = parties.AGGREGATIONS[name]([jnp.asarray(part) for part in parts])
        np.testing.assert_allclose(ours, RESTATED[name](parts), rtol=1e-6)
