"""Measuring speed: one file a suite of ``launch.benchmark``, and what they share."""
