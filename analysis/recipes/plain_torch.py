"""PyTorch: hooks of the bottom model. Run with 2.13.0 by ``python -m analysis.recipes.drills torch``."""

import torch

import vfljax


def train(bottom, own_bottom, top, optimizer, x, own, labels, epochs, path):
    """Trains a passive party that has the columns ``x``, and a label party that has ``own`` and ``labels``.

    ``epochs`` holds the batches of each epoch, and a batch is a tensor of row numbers.
    """
    wire = vfljax.Recorder()
    wire.torch(bottom, party=0)
    for batches in epochs:
        for rows in batches:
            with wire.batch(rows):
                embeddings = torch.cat([bottom(x[rows]), own_bottom(own[rows])], dim=1)
            loss = torch.nn.functional.cross_entropy(top(embeddings), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        wire.epoch()
    wire.save(path, labels=labels, columns=[x])
