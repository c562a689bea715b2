"""A stored sweep read and shown: nothing is trained or attacked here.

``stored_rows`` reads the rows of a sweep as records, and ``configurations`` summarizes them over seeds.
``assessment`` judges every configuration in every federation once (``assessed`` has its records, ``strongest``
the strongest attack), with the statistics of ``candidates``, ``choosing``, ``intervals`` and ``judging``,
whose table of verdicts is the place to begin where one looks wrong. ``estimates`` has the records of figures,
``spread`` their variances, and ``worth`` the costs. All other modules render assessments, with the words in
``templates``, and ``page`` puts the report together. A new table is an entry of ``tables.sections``.
"""
