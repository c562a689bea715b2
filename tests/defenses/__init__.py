"""One file a defense: limits, reductions and agreement with its NumPy twin."""
