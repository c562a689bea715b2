"""A stored sweep attacked.

``jobs`` says which attack is run on which trials, ``view`` what an attacker sees of one, and
``diagnostics`` what none sees. ``run`` loads a batch of jobs, attacks, scores and writes it; ``versions`` says
what becomes of rows that another rule of an attack made. ``scoring`` is the one place where the scores of
attacks meet true labels; ``baselines`` is what an attacker had without taking part.
"""
