"""uvfl: its SplitNN and its security stack. Run with 0.2.0 by ``python -m analysis.recipes.drills uvfl``."""

# pyright: reportMissingImports=false
from uvfl.model import SplitNN
from uvfl.scenarios import SecurityStack

import vfljax


class RecordedNN(SplitNN):
    """Records what client A sends. Its rows are told by their columns, because training shuffles them."""

    def begin(self, columns):
        self.wire, self.place = vfljax.Recorder(), {x.tobytes(): i for i, x in enumerate(columns)}

    def _fwd_a(self, columns):
        before, sent = super()._fwd_a(columns)
        self.message = self.wire.sent(0, [self.place[x.tobytes()] for x in columns], sent)
        return before, sent


class RecordedStack(SecurityStack):
    """Records the gradient as client A receives it, after noise."""

    def protect(self, gradient, joined, params, round_t, T):
        secured, *costs = super().protect(gradient, joined, params, round_t, T)
        self.model.wire.received(0, self.model.message, secured)
        return secured, *costs
