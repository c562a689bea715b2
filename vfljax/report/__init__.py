"""Reads, judges and shows a stored sweep. Nothing is trained or attacked here.

``rows`` reads a stored sweep into two frames, the rows of attacks and the trials. ``judge`` turns them into one
frame of verdicts, by the rule in ``verdicts`` with the limits of ``limits`` and the costs of ``costs``.
``judged`` adds what is recommended, and the labels that ``points`` gives configurations. All else is made of
these frames: ``tables``, ``answer`` (with ``decision`` and ``settle``), the figures, and ``page`` and
``terminal``, which put them together. If a verdict looks wrong, begin with the table in ``verdicts``. A new
table is an entry of ``tables.sections``.
"""
