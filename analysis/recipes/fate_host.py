"""FATE: a host of hetero-NN. NOT RUN by a drill; run once with pyfate 2.2.0, which needs NumPy below 2."""

# pyright: reportMissingImports=false
import torch
from fate.ml.nn.hetero.hetero_nn import HeteroNNTrainerHost

import vfljax


class RecordedHost(HeteroNNTrainerHost):
    """Records under the plain ``StdAggLayerArgument``. A batch's second tensor numbers its rows."""

    def training_step(self, model, inputs):
        with self.wire.batch(inputs[1]):
            return super().training_step(model, inputs)


def train_host(ctx, bottom, model, args, optimizer, x):
    rows = torch.utils.data.TensorDataset(x, torch.arange(len(x)))
    trainer = RecordedHost(ctx, model, args, rows, optimizer=optimizer)
    trainer.wire = vfljax.Recorder()
    trainer.wire.torch(bottom, party=0)
    trainer.train()
    return trainer.wire
