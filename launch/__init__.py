"""Entry points: they parse flags and call the library."""
