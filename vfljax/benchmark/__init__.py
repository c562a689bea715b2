"""Measuring speed: one file a suite of ``vfljax benchmark``, and what they share."""
