"""What Python programs and notebooks call, by names of the package itself such as ``vfljax.load``.

``sweeps`` makes or reads a ``Sweep``, ``forms`` has its frames and arrays, ``logs`` writes it to where teams
look, and ``tuning`` searches.
"""
