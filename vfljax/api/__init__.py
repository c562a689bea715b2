"""What Python programs, notebooks and commands call."""
