"""The tables of networks, by the name that a config gives them.

A new network is one file and one row here. A teacher is any of the bottoms (``config.teacher.network``).
Tests compare the networks with PyTorch's where the extra ``parity`` is installed.
"""

import functools

from vfljax.models import bert, cnn
from vfljax.models.cnn import CNN
from vfljax.models.mlp import ACTIVATIONS, MLP, WEIGHTS, Generator, Head, Probability
from vfljax.models.resnet import ResNet
from vfljax.models.wide_deep import WideDeep

# callables with keyword fields, among them ``out``; a caller may override what a row fixes
BOTTOMS = {
    "mlp": MLP,
    "resnet18": ResNet,
    "resnet20": functools.partial(ResNet, blocks=(3, 3, 3), width=16, shortcut="pad"),
    "resnet50": functools.partial(ResNet, blocks=(3, 4, 6, 3), block="bottleneck"),
    "cnn_gafm": cnn.gafm,
    "cnn_marvell": cnn.marvell,
    "wide_deep": WideDeep,
    "bert": bert.Bert,
    "bert_tiny": bert.tiny,
}
TOPS = {
    "mlp": MLP,
    "head": Head,
    "head_plain": functools.partial(Head, batch_norm=False),  # Fu et al.'s for Criteo
    "generator": Generator,
    "probability": Probability,
}

__all__ = [
    "ACTIVATIONS",
    "BOTTOMS",
    "CNN",
    "MLP",
    "TOPS",
    "WEIGHTS",
    "Generator",
    "Head",
    "Probability",
    "ResNet",
    "WideDeep",
]
