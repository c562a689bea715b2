"""A config made concrete, and its trials trained.

``experiment`` parses the config once into frozen records (``records``). ``forms`` says which attacks
are asked for and which federations they need, ``grid`` lists the trials and groups them by program,
``plan`` loads the data (``table`` puts it on the device) and divides the work into shards. ``train``
trains them, by ``batch_layout`` (one program over many trials, and the one cache of programs), from the
weights of ``initial``, with the scores of ``teachers`` and the ``codebooks`` of defenses that train one;
``pooled_auc`` is GAFM's released way of evaluating, ``serving`` refuses attacks that a new sweep could
never serve, ``saving`` keeps the progress of an unfinished shard, ``orders`` the order of rows,
``produced`` says which code made a sweep, ``progress`` is the line on the terminal. ``forecast`` says
what training takes, ``selection`` chooses GAFM's Delta.
"""
