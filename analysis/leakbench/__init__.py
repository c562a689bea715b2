"""LeakBench compares defenses against label leakage that anyone may enter and break.

``boards`` has the boards and the frozen suite of attacks, ``entry_files`` reads, writes and checks entries,
``bench`` trains and attacks them, ``exchanges`` writes what crossed between their parties, ``breaking`` scores
files that were read from that, and ``retraining`` makes scores anew. ``ranking`` orders entries, ``tables`` and
``page`` show them, and ``command`` is ``python -m launch.leakbench``.
"""
