"""Flower: a grid of the message API. Run with 1.42.0 by ``python -m analysis.recipes.drills flower``."""

import numpy as np

import vfljax


def recorder_of(grid):
    """Returns what records the messages of Flower's vertical example. Every round covers all rows; a party is
    the ``pos`` that its reply names, in any order of replies, and an answer goes by the node's id."""
    wire, last, push, pull = vfljax.Recorder(), {}, grid.push_messages, grid.pull_messages

    def push_messages(messages):
        for message in (messages := [*messages]):
            if message.metadata.message_type == "train.apply_gradients":
                sent = last.pop(message.metadata.dst_node_id)
                gradients = message.content["gradients"]["local-gradients"].numpy()
                wire.received(sent.party, sent, gradients)
        return push(messages)

    def pull_messages(message_ids):
        for reply in (replies := [*pull(message_ids)]):
            if reply.metadata.message_type == "query.generate_embeddings" and reply.has_content():
                pos = reply.content["config"]["pos"]
                z = reply.content["arrays"]["embedding"].numpy()
                last[reply.metadata.src_node_id] = wire.sent(pos, np.arange(len(z)), z)
        return replies

    grid.push_messages, grid.pull_messages = push_messages, pull_messages
    return wire
