"""NVFlare: its SplitNN example. Run with 2.9.0 by ``python -m analysis.recipes.drills nvflare``."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from nvflare.collab import collab

import vfljax


class Recorded:
    """Records at the label site, as the first base of a client: ``class Client(Recorded, SplitNNClient)``.

    Activations and gradients are recorded in float16, as they cross. Rows are drawn with replacement.
    """

    wire = None  # of the label site

    @collab.publish
    def compute_loss(self, batch_indices, activations):
        self.wire = self.wire or vfljax.Recorder()
        message = self.wire.sent("site-1", batch_indices, activations)
        gradients, metrics = super().compute_loss(batch_indices, activations)
        self.wire.received("site-1", message, gradients)
        return gradients, metrics
