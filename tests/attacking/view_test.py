"""What an attacker is given of an exchange."""

import types

import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.attacking.view import of_one_epoch
from vfljax.attacks import core

EPOCHS, ROWS, WIDTH = 3, 7, 2


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    sent = rng.random((EPOCHS, ROWS)) < 0.6
    sent[:, 0], sent[:, 1] = False, (True, False, False)
    cut = np.float32(rng.normal(size=(2, EPOCHS, ROWS, WIDTH)))
    g = np.where(sent[..., None], cut[1], 0)
    return {
        **{"embeddings": cut[0], "gradients": g, "sent": sent, "epochs": np.array([0, 2, 5])},
        **{"sum_gradient": g.sum(0), "sum_sign": np.sign(g).sum(0), "sum_square": (g * g).sum(0)},
        **{"sum_count": sent.sum(0).astype(np.float32), "order": np.tile(np.arange(ROWS), (3, 1))},
    }


@pytest.mark.parametrize("epoch", [-1, 2, 0, "mean", "votes"])
def test_the_view_of_one_epoch_holds_what_is_received_in_it(arrays, epoch):
    whole = {name: jnp.asarray(array) for name, array in arrays.items()}
    sums = {name: whole[f"sum_{name}"] for name in ("gradient", "sign", "count")}
    view = types.SimpleNamespace(**whole, sums=types.SimpleNamespace(**sums))
    gradients, sent = core.received(view, epoch)
    one = of_one_epoch(arrays, epoch, embeddings=False)
    np.testing.assert_array_equal(one["gradients"], gradients[None])
    np.testing.assert_array_equal(one["sent"], sent[None])
    place = core.place_of(view, epoch)
    joined = of_one_epoch(arrays, epoch, embeddings=True)
    np.testing.assert_array_equal(joined["embeddings"], view.embeddings[place][None])
    np.testing.assert_array_equal(joined["sent"], (sent & view.sent[place])[None])
    assert {len(joined[name]) for name in ("order", "epochs")} == {1}
