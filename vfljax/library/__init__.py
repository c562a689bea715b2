"""The interface for Python programs and notebooks: ``sweeps``, their ``forms``, ``logs`` and ``tuning``."""
