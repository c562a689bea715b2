"""Attacks the trials of a stored sweep.

``jobs`` decides which attack is run on which trials, and ``cascade`` which of these cheaper ones settle.
``view`` builds what an attacker sees of a trial, and ``diagnostics`` computes what no attacker sees.
``bundles`` finds which variants share a program, ``inputs`` loads what a program reads, ``batching`` attacks
and scores the trials of one call, and ``run`` runs and writes all of them; ``planning`` adds them to the
sweep's header. Only ``scoring`` compares the scores of attacks with true labels. ``local_only`` is the baseline
without the federation.
"""
