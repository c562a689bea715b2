"""One file an attack: limits, reductions and agreement with its NumPy twin."""
