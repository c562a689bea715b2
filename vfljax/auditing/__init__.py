"""The audit of a user's table: what leaks, to which party, and which defense to switch on.

``request`` holds the caller's choices, and ``survey`` what the table shows before training. ``suite`` makes
the config, ``planning`` fits it to the budget, and ``stages`` trains and attacks it.
"""
