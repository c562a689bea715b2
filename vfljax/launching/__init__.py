"""Trains and attacks shards in other processes: on this machine, a SLURM cluster or a Ray cluster.

A *job* is a function of this package, the folder of the sweep, and the names of some shards (``worker``). The
engines, submitit and Ray, queue, place, restart and collect jobs (``backends``). ``scheduler`` divides shards
among jobs, and sends failed ones again. Shards are independent, and repeating one changes nothing, so a job
may die at any time. Commands call ``running``.
"""

from vfljax.launching.backends import opened
from vfljax.launching.scheduler import INLINE, Way, chosen, way

__all__ = ["INLINE", "Way", "chosen", "opened", "way"]
