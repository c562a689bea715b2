"""A sweep on disk. It describes itself, is written atomically, and every file is checked when it is read.

``directory`` lists the files of a sweep, and ``manifest`` has their checksums. ``header`` describes the sweep,
``attacks`` stores the rows of attacks, ``checkpoint`` trees of arrays, and ``exchange`` what crossed the wire.
``sealed`` writes records with a checksum, ``atomic`` writes files, and ``lock`` admits one writer. ``loading``
reads a whole sweep, and ``check`` finds its damaged parts. Functions that read stored files raise ``Damaged``
if a file is not what was written.
"""

from vfljax.store.atomic import full, write_bytes, write_table, write_text
from vfljax.store.attacks import (
    LOCAL_ONLY,
    attack_summary,
    drop,
    identity_columns,
    identity_of,
    learner_key,
    learner_of,
    open_variant,
    read_variant,
    unit_of,
    variant_of,
    write_attack_summary,
    write_chunk,
)
from vfljax.store.check import inspect, mend
from vfljax.store.directory import (
    finished,
    read_partial,
    read_root_arrays,
    verify,
    width_of_shard,
    write_partial,
    write_root_arrays,
    write_shard,
)
from vfljax.store.header import (
    SCHEMA,
    begin,
    difference,
    explained,
    header_of,
    identity,
    read_header,
    refuse_another,
)
from vfljax.store.loading import StoredSweep, StoredTrial, export, load
from vfljax.store.lock import working, writer, writing
from vfljax.store.sealed import Damaged, remedy

__all__ = [
    "LOCAL_ONLY",
    "SCHEMA",
    "Damaged",
    "StoredSweep",
    "StoredTrial",
    "attack_summary",
    "begin",
    "difference",
    "drop",
    "explained",
    "export",
    "finished",
    "full",
    "header_of",
    "identity",
    "identity_columns",
    "identity_of",
    "inspect",
    "learner_key",
    "learner_of",
    "load",
    "mend",
    "open_variant",
    "read_header",
    "read_partial",
    "read_root_arrays",
    "read_variant",
    "refuse_another",
    "remedy",
    "unit_of",
    "variant_of",
    "verify",
    "width_of_shard",
    "working",
    "write_attack_summary",
    "write_bytes",
    "write_chunk",
    "write_partial",
    "write_root_arrays",
    "write_shard",
    "write_table",
    "write_text",
    "writer",
    "writing",
]
