"""The reference pages, and ``tables``, which makes them from the code."""
