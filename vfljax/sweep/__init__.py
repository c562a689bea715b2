"""The trials of a config: how they are planned and trained.

``grid`` makes a config a table of trials, ``grouping`` groups them by program, ``plan`` loads the data,
``sharding`` divides the work into shards, ``train`` trains them by ``shard_trainer``. ``known`` says which
labels attackers know.
"""
