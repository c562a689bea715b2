"""What attacks share: the rows of an epoch by batch."""

import numpy as np

from tests import harness
from tests.attacks import cases
from vfljax.attacks.core import batches_at

ROWS = 50


@harness.quick_jit
def by_batch_and_back(view, x):
    batches = batches_at(view, 1)
    return batches.sent, batches.gather(x), batches.scatter(batches.gather(x), ROWS)


def test_rows_are_gathered_in_the_order_of_their_epoch_and_scattered_back_nan_if_never_sent():
    rng, sent = np.random.default_rng(0), np.ones((2, ROWS), bool)
    sent[1, 20:25] = False
    case = cases.make_case(np.arange(ROWS) % 2, 2, gradients=np.zeros((2, ROWS, 3)), sent=sent)
    place = np.stack([rng.permutation(ROWS) for _ in range(2)])
    view, _ = cases.seen_of(case)
    x = np.float32(rng.normal(size=(ROWS, 3)))
    was_sent, gathered, back = by_batch_and_back(view._replace(order=np.int32(place)), x)
    in_order = np.argsort(place[1])
    expected = np.where(sent[1][:, None], x, 0)[in_order]
    assert gathered.shape == (3, cases.BATCH, 3)  # the last batch is filled up
    np.testing.assert_array_equal(gathered.reshape(-1, 3)[:ROWS], expected)
    np.testing.assert_array_equal(gathered.reshape(-1, 3)[ROWS:], 0)
    np.testing.assert_array_equal(was_sent.reshape(-1), [*sent[1][in_order], *[False] * 10])
    np.testing.assert_array_equal(back, np.where(sent[1][:, None], x, np.nan))
