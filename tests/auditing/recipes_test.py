"""Recipes that need nothing of the system they record."""

from types import SimpleNamespace

import numpy as np

from analysis.recipes.flower_grid import RecordedGrid
from vfljax.datasets.wire import read


def message(kind, node, **content):
    metadata = SimpleNamespace(message_type=kind, src_node_id=node, dst_node_id=node)
    return SimpleNamespace(metadata=metadata, content=content, has_content=lambda: bool(content))


def array(values):
    return SimpleNamespace(numpy=lambda: values)


class Grid:
    """Replies in another order every round."""

    def __init__(self, sent):
        self.sent, self.round = sent, -1

    def send_and_receive(self, messages, timeout=None):
        if messages[0].metadata.message_type != "query.generate_embeddings":
            return [message(m.metadata.message_type, m.metadata.dst_node_id) for m in messages]
        self.round += 1
        replies = [
            message(
                "query.generate_embeddings",
                90 - pos,
                arrays={"embedding": array(self.sent[self.round, pos])},
                config={"pos": pos},
            )
            for pos in range(2)
        ]
        return replies[:: 1 if self.round % 2 else -1]

    def push_messages(self, messages):
        return [str(m.metadata.dst_node_id) for m in messages]


def test_a_client_of_flower_is_told_by_its_number_in_any_order_of_replies(tmp_path):
    rng = np.random.default_rng(0)
    sent, gradients = rng.normal(size=(2, 3, 2, 10, 4)).astype(np.float32)
    grid = RecordedGrid(Grid(sent))
    for epoch in range(3):
        replies = grid.send_and_receive([message("query.generate_embeddings", n) for n in (90, 89)])
        assert len(replies) == 2
        answers = [
            message(
                "train.apply_gradients",
                90 - pos,
                gradients={"local-gradients": array(gradients[epoch, pos])},
            )
            for pos in ((1, 0), (0, 1), (1, 0))[epoch]
        ]
        (grid.push_messages if epoch else grid.send_and_receive)(answers)
    grid.wire.save(tmp_path / "run0.npz", labels=np.arange(10) % 2, say=lambda line: None)
    wire = read(str(tmp_path / "run0.npz"))
    for pos in range(2):
        np.testing.assert_array_equal(wire.parties[pos].embeddings, sent[:, pos])
        np.testing.assert_array_equal(wire.parties[pos].gradients, gradients[:, pos])
