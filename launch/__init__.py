"""The commands of a checkout, run as ``python -m launch.NAME``.

They are those of ``vfljax.cli``, and ``benchmark`` and ``leakbench``, whose modules are in ``analysis``.
"""
