"""Plain NumPy restatements of the papers' rules, in float64, written from the equations."""
