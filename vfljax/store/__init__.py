"""A sweep on disk: self-describing, written atomically, read lazily, every file by its checksum.

``directory`` lists the files of a sweep, ``manifest`` has the checksums that make them whole, ``header`` the
records that describe it, ``attacks`` the rows of attacks, ``checkpoint`` trees of arrays by orbax,
``readers`` compares the data of two sweeps, ``exchange`` has what crossed the wire, ``atomic`` writes files,
``lock`` admits one writer, ``loading`` reads all of it for notebooks, and ``check`` finds what is damaged.
What reads stored files raises ``Damaged`` where they are not what was written.
"""

from vfljax.store.atomic import full, write_bytes, write_file, write_text
from vfljax.store.attacks import (
    LOCAL_ONLY,
    attack_summary,
    by_label,
    identity_columns,
    identity_of,
    learner_key,
    learner_of,
    local_only_key,
    open_variant,
    read_variant,
    unit_of,
    variant_of,
    write_attack_summary,
    write_chunk,
)
from vfljax.store.check import Finding, inspect, mend
from vfljax.store.directory import (
    begin,
    finished,
    read_header,
    read_partial,
    read_root_arrays,
    refuse_another,
    verify,
    width_of_shard,
    write_partial,
    write_root_arrays,
    write_shard,
)
from vfljax.store.header import SCHEMA, header_of, identity
from vfljax.store.loading import BASELINES, TIMES, StoredTrial, Sweep, export, load
from vfljax.store.lock import working, writer, writing
from vfljax.store.manifest import Damaged, remedy
from vfljax.store.readers import difference, explained

__all__ = [
    "BASELINES",
    "LOCAL_ONLY",
    "SCHEMA",
    "TIMES",
    "Damaged",
    "Finding",
    "StoredTrial",
    "Sweep",
    "attack_summary",
    "begin",
    "by_label",
    "difference",
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
    "local_only_key",
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
    "write_file",
    "write_partial",
    "write_root_arrays",
    "write_shard",
    "write_text",
    "writer",
    "writing",
]
