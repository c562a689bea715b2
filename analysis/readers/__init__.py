"""Readers: functions that read labels out of stored exchanges, tried against all that a sweep has stored.

A reader is a function of what an attacker sees, in NumPy, and it returns a score for each row and class:

    def reader(view: View, known: Known, num_classes: int) -> HostArray:  # [N, C]

``View`` and ``Known`` are those of ``vfljax.types``. A larger score means a likelier class. A reader needs no
jit, no knobs and no row in a table, so that somebody who doubts a sweep's figures writes nothing else.

    graphs.py    a file of readers, written without any code of vfljax
    protocol.py  loads files of readers, runs them, and has them scored
    cells.py     compares them with the strongest stored attack or learner of each run
    command.py   the command
"""
