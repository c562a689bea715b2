"""SecretFlow: a callback of ``SLModel.fit``. NOT RUN: hooks as in 1.10.0b0, which needs Python 3.10."""

# pyright: reportMissingImports=false, reportOptionalSubscript=false
import numpy as np
from secretflow import reveal
from secretflow.ml.nn.callbacks.callback import Callback

import vfljax


class RecordWire(Callback):
    """Records a passive party in a simulation, where the driver may ``reveal`` what it holds. It needs
    ``strategy="split_nn"``, and ``fit(..., shuffle=False)`` so that rows keep their places."""

    def __init__(self, party):
        super().__init__()
        self.party, self.wire, self.done = party, vfljax.Recorder(), 0

    def on_epoch_end(self, epoch=None, logs=None):
        self.wire.epoch()
        self.done = 0

    def on_agglayer_forward_begin(self, hiddens=None):
        self.hiddens = hiddens  # of a validation batch too, which no gradient follows

    def on_agglayer_backward_end(self, gradients=None):
        z = np.asarray(reveal(self.hiddens[self.party]).hidden)
        g = np.asarray(reveal(gradients[self.party])).reshape(z.shape)  # perhaps a list of one
        self.wire.received(0, self.wire.sent(0, self.done + np.arange(len(z)), z), g)
        self.done += len(z)
