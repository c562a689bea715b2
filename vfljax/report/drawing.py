"""Matplotlib for the report's figures: no window is opened, and whoever draws already keeps their backend.

A notebook has chosen its own. Choosing another once it runs would close its figures and show no later one.
"""

from __future__ import annotations

import os
import sys

import matplotlib as mpl

if "MPLBACKEND" not in os.environ and "matplotlib.pyplot" not in sys.modules:
    mpl.use("Agg")
import matplotlib.pyplot as plt

__all__ = ["plt"]
