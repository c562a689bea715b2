"""Tests are sentences about behavior; ``tests.reference`` holds their plain NumPy oracles."""
