"""A stored sweep read and shown: nothing is trained or attacked here.

``stored_rows`` reads the rows of a sweep as records, ``configurations`` summarizes them over seeds, and
``assessment`` judges every configuration in every federation, with the statistics of ``choosing``,
``intervals`` and ``judging``. All other modules render assessments: ``headline``, ``findings``, ``captions``,
``tables``, ``figures``, ``interactive``, ``terminal``, ``assumptions``, ``not_run`` and ``guarantees``.
``page`` puts the report together.
"""
