"""Flower: a server's main. Run with 1.42.0 by ``python -m analysis.recipes.drills flower``."""

import numpy as np


def sent(wire, replies):
    """Records the replies to ``query.generate_embeddings`` of Flower's vertical example, in any order, and
    returns the message of each node. A reply covers all rows, and names its party as ``pos``."""
    whole = [(r.metadata.src_node_id, r.content) for r in replies if r.has_content()]
    z = {node: (of["config"]["pos"], of["arrays"]["embedding"].numpy()) for node, of in whole}
    return {node: wire.sent(pos, np.arange(len(of)), of) for node, (pos, of) in z.items()}


def received(wire, messages, answers):
    """Records the gradients of ``train.apply_gradients``, each as the answer to its node's message."""
    for answer in answers:
        message = messages[answer.metadata.dst_node_id]
        gradients = answer.content["gradients"]["local-gradients"].numpy()
        wire.received(message.party, message, gradients)
