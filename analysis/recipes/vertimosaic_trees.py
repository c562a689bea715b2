"""VertiMosaic: a transport of trees. Run with 0.3.0 by ``python -m analysis.recipes.drills vertimosaic``."""

# pyright: reportMissingImports=false
from vertimosaic.transport import InMemoryTransport

import vfljax


class RecordedTransport(InMemoryTransport):
    """Records the nodes that passive parties are told, and the gradients, which are sent without encryption."""

    def send(self, payload, **of):
        got, kind, step = super().send(payload, **of), of["message_type"], of.get("step", 0)
        if kind == "gradients":
            self.gradients, self.wire = got, getattr(self, "wire", None) or vfljax.Recorder()
        elif kind == "node_membership":
            g = self.gradients[got, None]
            self.wire.told(of["receiver_role"], step, got.tobytes(), got, g)
        elif kind == "partition_routing_indices" and of.get("stage") == "tree":
            for rows in got:  # of its own splits, which the sender makes itself
                self.wire.told(of["sender_role"], step, rows.tobytes(), rows)
        return got
