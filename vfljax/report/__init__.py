"""A stored sweep read and shown: nothing is trained or attacked here.

``summary`` makes points with intervals and worst cases (``worst``) of the stored rows, ``strengths`` chooses
among them, and ``verdicts`` judges them. ``guarantees`` compares figures with what formal guarantees
allow. ``findings`` makes sentences, ``tables`` and ``figures`` what their names say, ``captions`` what
stands above the tables. ``cards`` and ``headline``
say in one place what a report opens with; ``page`` is the report, of ``markup``'s pieces, ``interactive``'s
figure and ``assumptions``'s words, and ``terminal`` is what is printed. ``drawing`` brings Matplotlib.
``judging`` gives verdicts on arrays of figures, with what ``choosing`` picks and the limits of
``intervals``; ``simulation`` says how often these are right.
"""
