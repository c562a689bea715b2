"""LeakBench compares defenses against label leakage that anyone may enter and break.

``boards`` has the boards and the frozen suite of attacks, ``entry_files`` reads, writes and checks entries,
``bench`` trains and attacks them, ``command`` is ``python -m launch.leakbench``, and ``page`` makes the page.
"""
