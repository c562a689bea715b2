"""What Python programs and notebooks call: ``sweeps``, their ``forms``, ``logs`` of them, and ``tuning``."""
