"""The functions that users call, in Python and as commands, whose flags are made from their signatures."""
