"""Shards trained and attacked elsewhere: by processes of this machine, a SLURM cluster or a Ray cluster.

What enters: a plan whose shards are not all finished. What leaves: finished shards and rows of attacks, in
the one folder of the sweep, as if this process had made them. A *job* is a function of this package, the
folder, and the names of some shards (``work``); jobs are queued, placed, restarted and collected by engines
that exist, submitit and Ray (``engines``); and ``sending`` divides shards among jobs, and asks again for
those that failed. Shards are independent, and doing one twice changes nothing, so a job may die at any time.
"""

from vfljax.launching.backends import ENGINES, opened
from vfljax.launching.scheduler import INLINE, Way, chosen, way

__all__ = ["ENGINES", "INLINE", "Way", "chosen", "opened", "way"]
