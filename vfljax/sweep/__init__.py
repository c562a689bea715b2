"""The trials of a config: how they are planned and trained.

``grid`` makes a config a table of trials, ``grouping`` groups them by program, ``plan`` loads the data and
divides the work into shards, ``train`` trains the shards by ``trainer``.
"""
