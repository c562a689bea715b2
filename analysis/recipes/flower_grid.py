"""Flower: a grid of the message API. Run with 1.42.0 by ``python -m analysis.recipes.drills flower``."""

# pyright: reportMissingImports=false
import numpy as np

import vfljax


class RecordedGrid:
    """Records the messages of Flower's vertical example. Every round covers all rows.

    Replies come in any order: a party is the ``pos`` that its reply names, and answers go by the node's id.
    """

    def __init__(self, grid):
        self.grid, self.wire, self.open = grid, vfljax.Recorder(), {}

    def __getattr__(self, name):
        return getattr(self.grid, name)

    def push_messages(self, messages):
        return self.grid.push_messages(self._answers(messages))

    def send_and_receive(self, messages, **options):
        replies = [*self.grid.send_and_receive(self._answers(messages), **options)]
        for reply in replies:
            if reply.metadata.message_type == "query.generate_embeddings" and reply.has_content():
                z = reply.content["arrays"]["embedding"].numpy()
                sent = self.wire.sent(reply.content["config"]["pos"], np.arange(len(z)), z)
                self.open[reply.metadata.src_node_id] = sent
        return replies

    def _answers(self, messages):
        messages = [*messages]
        for message in messages:
            if message.metadata.message_type == "train.apply_gradients":
                sent = self.open.pop(message.metadata.dst_node_id)
                g = message.content["gradients"]["local-gradients"].numpy()
                self.wire.received(sent.party, sent, g)
        return messages
