"""The commands of ``vfljax.cli``, run from a checkout as ``python -m launch.NAME``."""
