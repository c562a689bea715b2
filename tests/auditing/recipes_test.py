"""Recipes that need nothing of the system they record."""

from types import SimpleNamespace

import numpy as np
import pytest

import vfljax
from analysis.recipes import flower_server
from vfljax.datasets.wire import read_wire


def array(values):
    return SimpleNamespace(numpy=lambda: values)


def message(pos, **content):
    """What the node 90 - pos replies or is sent."""
    metadata = SimpleNamespace(src_node_id=90 - pos, dst_node_id=90 - pos)
    return SimpleNamespace(metadata=metadata, content=content, has_content=lambda: bool(content))


def test_a_client_of_flower_is_told_by_its_number_in_any_order_of_replies(tmp_path):
    rng = np.random.default_rng(0)
    z, gradients = rng.normal(size=(2, 3, 2, 10, 4)).astype(np.float32)
    wire = vfljax.Recorder()
    for epoch, (replying, answered) in enumerate(
        (((0, 1), (1, 0)), ((1, 0), (1, 0)), ((1, 0), (0, 1)))
    ):
        replies = [
            message(pos, arrays={"embedding": array(z[epoch, pos])}, config={"pos": pos})
            for pos in replying
        ]
        messages = flower_server.sent(wire, [message(7), *replies])  # one node failed
        answers = [
            message(pos, gradients={"local-gradients": array(gradients[epoch, pos])})
            for pos in answered
        ]
        flower_server.received(wire, messages, answers)
    wire.save(tmp_path / "run0.npz", labels=np.arange(10) % 2, say=lambda line: None)
    read_back = read_wire(str(tmp_path / "run0.npz"))
    for pos in range(2):
        np.testing.assert_array_equal(read_back.parties[pos].embeddings, z[:, pos])
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
