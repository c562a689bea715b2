"""Measures speed: one module per suite of ``python -m launch.benchmark``, and what the suites share."""
