"""A stored sweep read and shown: nothing is trained or attacked here.

``stored_rows`` reads the rows of a sweep as records, and ``configurations`` summarizes them over seeds.
``assessment`` judges every configuration in every federation once (``assessed`` has its records, ``strongest``
the strongest attack), with the statistics of ``candidates``, ``choosing``, ``intervals`` and ``judging``. All
other modules render assessments, with the words in ``templates``: ``headline``, ``findings``, ``captions``,
``tables``, ``figures``, ``interactive``, ``terminal``, ``not_run`` and ``guarantees``. ``page`` puts the report
together.
"""
