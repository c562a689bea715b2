"""The audit of a user's table, and attacks on a recorded wire.

``survey`` says what the table shows before anything is trained, and ``suite`` makes the config of the audit,
which is one sweep. ``vfljax.api.audit`` runs it. ``wires`` attacks the exchange of another system, and
``trees`` audits boosted trees through it.
"""
