"""LeakBench compares defenses against label leakage that anyone may enter and break.

``autoleak`` has the frozen suite of attacks, ``boards`` what entries are judged on, ``entry_files`` reads,
writes and checks entries, ``bench`` trains and attacks them, ``exchanges`` writes what crossed between their
parties, ``breaking`` scores files that were read from that, and ``retraining`` makes scores anew. ``ranking``
orders entries, ``tables`` and ``page`` show them, and ``command`` is ``python -m launch.leakbench``.
"""
