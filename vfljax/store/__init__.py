"""A sweep on disk: self-describing, written atomically, read lazily.

``directory`` knows the files of a sweep and what makes them whole, ``checkpoint`` trees of arrays by
orbax, ``exchange`` what crossed the wire, ``loading`` how a notebook reads all of it.
"""

from vfljax.store.directory import (
    SCHEMA,
    attack_summary,
    begin,
    finished,
    read_arrays,
    read_header,
    read_partial,
    read_table,
    verify,
    write_arrays,
    write_partial,
    write_rows,
    write_shard,
    write_text,
)
from vfljax.store.loading import BASELINES, TIMES, StoredSetting, Sweep, export, load

__all__ = [
    "BASELINES",
    "SCHEMA",
    "TIMES",
    "StoredSetting",
    "Sweep",
    "attack_summary",
    "begin",
    "export",
    "finished",
    "load",
    "read_arrays",
    "read_header",
    "read_partial",
    "read_table",
    "verify",
    "write_arrays",
    "write_partial",
    "write_rows",
    "write_shard",
    "write_text",
]
