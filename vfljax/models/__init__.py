"""Flax modules, by the name a config gives them. A new network is one file and one row here."""

from vfljax.models import bert
from vfljax.models.mlp import ACTIVATIONS, MLP, WEIGHTS, Generator, Head, Probability

BOTTOMS = {
    "mlp": MLP,
    "bert": bert.base,
    "bert_tiny": bert.tiny,
}
TOPS = {"mlp": MLP, "head": Head, "generator": Generator, "probability": Probability}

__all__ = ["ACTIVATIONS", "BOTTOMS", "MLP", "TOPS", "WEIGHTS", "Generator", "Head", "Probability"]
