"""VertiMosaic: a transport of trees. Run with 0.3.0 by ``python -m analysis.recipes.drills vertimosaic``."""

# pyright: reportMissingImports=false
from vertimosaic.transport import InMemoryTransport

import vfljax


class RecordedTransport(InMemoryTransport):
    """Records the nodes that passive parties are told, and the gradients, which are sent without encryption."""

    def send(
        self, payload, *, message_type, sender_role, receiver_role, stage="", step=0, **others
    ):
        kinds = {"message_type": message_type, "sender_role": sender_role, "stage": stage}
        got = super().send(payload, receiver_role=receiver_role, step=step, **kinds, **others)
        if message_type == "gradients":
            self.gradients, self.wire = got, getattr(self, "wire", None) or vfljax.Recorder()
        elif message_type == "node_membership":
            g = self.gradients[got, None]
            self.wire.told(receiver_role, step, got.tobytes(), got, g)
        elif message_type == "partition_routing_indices" and stage == "tree":
            for rows in got:  # of its own splits, which the sender makes itself
                self.wire.told(sender_role, step, rows.tobytes(), rows)
        return got
