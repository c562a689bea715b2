"""Shards trained and attacked elsewhere: by processes of this machine, a SLURM cluster or a Ray cluster.

A *job* is a function of this package, the folder of the sweep, and the names of some shards (``worker``). Jobs
are queued, placed, restarted and collected by engines that exist, submitit and Ray (``backends``), and
``scheduler`` divides shards among jobs, and asks again for those that failed. Shards are independent, and doing
one twice changes nothing, so a job may die at any time. ``running`` is what commands call.
"""

from vfljax.launching.backends import ENGINES, opened
from vfljax.launching.scheduler import INLINE, Way, chosen, way

__all__ = ["ENGINES", "INLINE", "Way", "chosen", "opened", "way"]
