"""The commands of a checkout, run as ``python -m launch.NAME``.

They are those of ``vfljax.api.commands``, and ``benchmark``, ``leakbench`` and ``reproduce`` of ``analysis``.
"""
