"""A stored sweep attacked.

``jobs`` decides which attack is run on which trials, ``view`` is what an attacker sees of one, and
``diagnostics`` what none sees. ``batching`` loads, attacks and scores the trials of one call, ``run`` runs and
writes all of them, and ``versions`` decides what becomes of rows that another rule of an attack made.
``scoring`` is the one place where the scores of attacks meet true labels; ``local_only`` is the baseline of an
attacker who takes no part. ``cost_estimate`` measures what all of it would take.
"""
