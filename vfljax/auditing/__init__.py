"""A table of one's own, audited: what leaks, to whom, and what to switch on.

``request`` is what is asked, ``table`` looks before anything is trained, ``suite`` says what is trained and
attacked, ``planning`` what there is time for, and ``run`` does it, in sweeps like any other.
"""
