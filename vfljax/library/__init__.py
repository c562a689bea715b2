"""What a Python program or a notebook calls, by names of the package itself such as ``vfljax.load``.

``calls`` makes a sweep (``run_sweep``, ``audit``), ``tuning`` those of a search (``tune``), and ``sweeps`` has
``load`` and the ``Sweep`` that all of them return, which ``logs`` writes to where teams look. Nothing in the
package imports this room.
"""
