"""How a vertical federation trains: one batch in seven sentences (``protocol``), and many of them.

Read ``protocol`` first. ``optimizers`` holds each party's own optimizer, ``malicious`` the one of a
malicious party, ``training`` one trial as epochs of scans over the protocol's step, ``evaluation`` how well
it predicts, and ``teacher`` the label party's own models, which are trained before the federation starts.
"""
