"""The interface for Python programs and notebooks: ``sweeps`` and their ``forms``."""
