"""Flax modules, by the name a config gives them. A new network is one file and one row here."""

from vfljax.models.mlp import MLP, Head

BOTTOMS = {"mlp": MLP}
TOPS = {"mlp": MLP, "head": Head}

__all__ = ["BOTTOMS", "MLP", "TOPS", "Head"]
