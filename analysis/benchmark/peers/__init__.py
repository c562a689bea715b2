"""vfljax's speed compared with PyTorch and the least JAX program: ``python -m analysis.benchmark.peers``."""
