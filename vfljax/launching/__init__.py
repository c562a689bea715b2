"""Makes the units of a sweep, in this process or by workers on this machine, a SLURM cluster or a Ray cluster.

``work`` claims and makes units until none is left. ``worker`` does so in another process, which an engine
(``backends``: submitit, Ray) queues, places and restarts; ``pulling`` starts workers and waits. Units are
independent, and repeating one changes nothing, so a worker may die at any time. Commands call ``running``.
"""

from vfljax.launching.backends import opened
from vfljax.launching.pulling import chosen, pulled

__all__ = ["chosen", "opened", "pulled"]
