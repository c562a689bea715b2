"""Makes the units of a sweep, in this process and in copies of it on this machine, a SLURM or a Ray cluster.

``work`` claims and makes units until none is left, together with any other process that does so in the same
folder. ``launchers`` starts such processes by submitit or Ray, and waits for them. Units are independent, and
repeating one changes nothing, so that a copy may die at any time. Commands call ``running``.
"""
