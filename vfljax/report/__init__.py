"""Reads and shows a stored sweep. Nothing is trained or attacked here.

``stored_rows`` reads the rows of a sweep as records, and ``configurations`` summarizes them over seeds.
``assessment`` judges every configuration in every federation once (``assessed`` has its records, ``strongest``
the strongest attack), with the statistics of ``candidates``, ``choosing``, ``intervals`` and ``judging``. If a
verdict looks wrong, begin with the table in ``judging``. ``estimates`` has the records of figures, ``spread``
their variances, and ``worth`` the costs. All other modules render assessments, with the text in ``templates``,
and ``page`` puts the report together. A new table is an entry of ``tables.sections``.
"""
