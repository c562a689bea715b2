"""A sweep on disk. It describes itself, is written atomically, and every file is checked when it is read.

    sweep.json                   schema, config, command, versions, revision, data checksum, plan (``header``)
    shared/<name>/arrays.npz     splits of all seeds, teachers' scores, codebooks
    shards/<name>/               a unit of trained trials (``units``):
        results.parquet          one row per trial, row i = member i
        checkpoint/              orbax, final weights, leading member axis, chunked by trial
        exchange.safetensors     what crossed the wire (``exchange``)
    local_only/<n>/rows.parquet  a unit of the local-only baseline: a row per seed, known labels and learner
    attacks/<variant>/<n>/       a unit of an attack: rows.parquet, a row per trial and point of its knobs
    decided/<panel>/             a sweep of its own: seeds that decide
    confirmed/, controls/<name>/ likewise: fresh seeds, and permuted labels
    partial/<unit>/<count>/      progress of an unfinished unit
    failures/<unit>.<id>.json    why a unit failed
    results.parquet, attacks.parquet, *.csv   the same tables in one piece, for people
    report.html, figures/        the report

``sweep.json`` has a copy beside it, which is read if the original is damaged. Every folder is built under
another name and moved into place, so that it exists if and only if it is complete, and has a ``manifest.json``
with the size and SHA-256 of every file (``manifest``). ``claims`` divides the work among processes, ``loading``
reads a whole sweep, and ``check`` finds its damaged parts. Functions that read stored files raise ``Damaged``
if a file is not what was written. This is schema 8: sweeps that were written with it stay readable.
"""

from vfljax.store.atomic import full, write_bytes, write_table, write_text
from vfljax.store.attack_rows import (
    LOCAL_ONLY_VARIANT,
    attack_summary,
    identity_columns,
    identity_of,
    learner_of,
    variant_of,
)
from vfljax.store.check import inspect
from vfljax.store.claims import attempt, claim, claimed, clear_failures, failed, failures, leading
from vfljax.store.header import (
    SCHEMA,
    begin,
    difference,
    header_of,
    read_header,
    refuse_another,
    stages,
    sweep_id,
    write,
)
from vfljax.store.loading import StoredSweep, StoredTrial, export, load, splits_name
from vfljax.store.sealed import Damaged
from vfljax.store.units import (
    Unit,
    finished,
    read_keyed,
    read_partial,
    read_partial_rows,
    read_results,
    read_rows,
    read_shared,
    shared_names,
    units_of,
    verify_unit,
    width_of_shard,
    write_keyed,
    write_partial,
    write_partial_rows,
    write_rows,
    write_shard,
    write_shared,
)

__all__ = [
    "LOCAL_ONLY_VARIANT",
    "SCHEMA",
    "Damaged",
    "StoredSweep",
    "StoredTrial",
    "Unit",
    "attack_summary",
    "attempt",
    "begin",
    "claim",
    "claimed",
    "clear_failures",
    "difference",
    "export",
    "failed",
    "failures",
    "finished",
    "full",
    "header_of",
    "identity_columns",
    "identity_of",
    "inspect",
    "leading",
    "learner_of",
    "load",
    "read_header",
    "read_keyed",
    "read_partial",
    "read_partial_rows",
    "read_results",
    "read_rows",
    "read_shared",
    "refuse_another",
    "shared_names",
    "splits_name",
    "stages",
    "sweep_id",
    "units_of",
    "variant_of",
    "verify_unit",
    "width_of_shard",
    "write",
    "write_bytes",
    "write_keyed",
    "write_partial",
    "write_partial_rows",
    "write_rows",
    "write_shard",
    "write_shared",
    "write_table",
    "write_text",
]
