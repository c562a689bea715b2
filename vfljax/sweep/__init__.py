"""The trials of a config: how they are planned and trained.

``experiment`` parses the config into frozen records, ``grid`` lists the trials and groups them by program,
``plan`` loads the data and divides the work into shards, ``train`` trains the shards by ``trainer``.
"""
