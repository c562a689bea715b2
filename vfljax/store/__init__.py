"""A sweep on disk: self-describing, written atomically, read lazily, every file by its checksum.

``directory`` knows the files of a sweep, ``sealed`` the rule that makes them whole, ``roots`` the two
records that say what the sweep is, ``attacks`` the rows of attacks, ``checkpoint`` trees of arrays by
orbax, ``readers`` whether two sweeps are of one data set, ``exchange`` what crossed the wire, ``files`` how
anything is written, ``lock`` that one process writes at a time, ``loading`` how a notebook reads all of it,
and ``inspection`` what is damaged.
"""

from vfljax.store.atomic import full, write_bytes, write_file, write_text
from vfljax.store.attacks import (
    attack_summary,
    folder_of,
    open_form,
    read_form,
    rule_of,
    unit_of,
    with_rule,
    without_rule,
    write_attack_summary,
    write_block,
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
from vfljax.store.header import SCHEMA, header_of, identity, unsealed
from vfljax.store.loading import ALONE, BASELINES, TIMES, StoredSetting, Sweep, export, load
from vfljax.store.lock import working, writer, writing
from vfljax.store.manifest import Damaged, remedy
from vfljax.store.readers import difference, explained

__all__ = [
    "ALONE",
    "BASELINES",
    "SCHEMA",
    "TIMES",
    "Damaged",
    "Finding",
    "StoredSetting",
    "Sweep",
    "attack_summary",
    "begin",
    "difference",
    "explained",
    "export",
    "finished",
    "folder_of",
    "full",
    "header_of",
    "identity",
    "inspect",
    "load",
    "mend",
    "open_form",
    "read_form",
    "read_header",
    "read_partial",
    "read_root_arrays",
    "refuse_another",
    "remedy",
    "rule_of",
    "unit_of",
    "unsealed",
    "verify",
    "width_of_shard",
    "with_rule",
    "without_rule",
    "working",
    "write_attack_summary",
    "write_block",
    "write_bytes",
    "write_file",
    "write_partial",
    "write_root_arrays",
    "write_shard",
    "write_text",
    "writer",
    "writing",
]
