"""Measures speed: one module per suite of ``vfljax benchmark``, and what the suites share."""
