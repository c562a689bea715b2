"""Training of a vertical federation: one batch in seven steps (``protocol``), and trials of many batches.

Read ``protocol`` first. ``optimizers`` has the parties' optimizers, ``malicious`` those of malicious parties,
and ``uploads`` what parties send. ``training`` trains a trial by scans over the protocol's step, and
``evaluation`` measures how well it predicts. ``teacher`` trains the label party's own models beforehand.
"""
