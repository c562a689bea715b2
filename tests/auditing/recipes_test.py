"""Recipes that need nothing of the system they record."""

from types import SimpleNamespace

import numpy as np
import pytest

from analysis.recipes.flower_grid import recorder_of
from vfljax.datasets.wire import read_wire


def message(kind, node, **content):
    metadata = SimpleNamespace(message_type=kind, src_node_id=node, dst_node_id=node)
    return SimpleNamespace(metadata=metadata, content=content, has_content=lambda: bool(content))


def array(values):
    return SimpleNamespace(numpy=lambda: values)


class Grid:
    """Replies in another order every round."""

    def __init__(self, sent):
        self.sent, self.round = sent, -1

    def send_and_receive(self, messages):
        return self.pull_messages(self.push_messages(messages))

    def pull_messages(self, message_ids):
        if self.kind != "query.generate_embeddings":
            return [message(self.kind, node) for node in message_ids]
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
        self.kind = messages[0].metadata.message_type
        return [str(m.metadata.dst_node_id) for m in messages]


def test_a_client_of_flower_is_told_by_its_number_in_any_order_of_replies(tmp_path):
    rng = np.random.default_rng(0)
    sent, gradients = rng.normal(size=(2, 3, 2, 10, 4)).astype(np.float32)
    grid = Grid(sent)
    wire = recorder_of(grid)
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
    wire.save(tmp_path / "run0.npz", labels=np.arange(10) % 2, say=lambda line: None)
    read_back = read_wire(str(tmp_path / "run0.npz"))
    for pos in range(2):
        np.testing.assert_array_equal(read_back.parties[pos].embeddings, sent[:, pos])
        np.testing.assert_array_equal(read_back.parties[pos].gradients, gradients[:, pos])


def test_the_nodes_recorded_of_xgboost_are_those_that_its_federated_mode_tells(tmp_path):
    pytest.importorskip("xgboost")
    from analysis.recipes.xgboost_trees import recorder_of
    from vfljax.federation import trees

    random = np.random.default_rng(0)
    labels, columns = np.arange(80) % 2, random.normal(size=(80, 4))
    columns[:, 1] += labels
    boosting = trees.Boosting(rounds=3, depth=3, told=trees.ALL)
    grown = trees.train(columns, labels, 2, np.array([0, 0, 1, 1]), 1, boosting, seed=0)
    wire = recorder_of(grown.booster, columns, ["partner"])
    wire.save(tmp_path / "run0.npz", labels=labels, say=lambda line: None)
    recorded = read_wire(str(tmp_path / "run0.npz")).parties[0].nodes
    told = trees.nodes(grown, columns, party=0)
    assert recorded.shape == told.shape
    for mine, theirs in zip(recorded, told, strict=True):
        for level, (of, node) in enumerate(zip(mine, theirs, strict=True)):
            split = of >= 0  # the other rows rest in a leaf above
            np.testing.assert_array_equal(~split, level > 0 and node == theirs[level - 1])
            same = [x[split, None] == x[split] for x in (of, node)]
            np.testing.assert_array_equal(*same)
