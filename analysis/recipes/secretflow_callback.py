"""SecretFlow: a callback of ``SLModel.fit``. NOT RUN: hooks as in 1.10.0b0, which needs Python 3.10."""

# pyright: reportMissingImports=false, reportOptionalSubscript=false
import numpy as np
from secretflow import reveal
from secretflow.ml.nn.callbacks.callback import Callback

import vfljax


class RecordWire(Callback):
    """Records a passive party in a simulation, where the driver may ``reveal`` what a party holds.

    It needs ``strategy="split_nn"``, and ``fit(..., shuffle=False)`` so that rows keep their places.
    """

    def __init__(self, party, **others):
        super().__init__(**others)
        self.party, self.wire, self.done = party, vfljax.Recorder(), 0

    def on_epoch_begin(self, epoch=None, logs=None):
        if self.done:
            self.wire.epoch()
        self.done = 0

    def on_agglayer_forward_begin(self, hiddens=None):
        self.hiddens = hiddens  # of a validation batch too, which no gradient follows

    def on_agglayer_backward_end(self, gradients=None):
        received = reveal(gradients[self.party])
        received = received[0] if isinstance(received, list | tuple) else received
        z = np.asarray(reveal(self.hiddens[self.party]).hidden)
        message = self.wire.sent(0, np.arange(self.done, self.done + len(z)), z)
        self.wire.received(0, message, received)
        self.done += len(z)
