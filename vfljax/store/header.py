"""The header of a sweep, ``sweep.json``: its config and plan, and its comparison with that of another sweep.

    schema, id, config, command, versions, revision, backend, devices, checksum, ...
    data                    rows, classes, parts; ``sources`` are the columns of a user's table, as records of
                            ``datasets.core.SourceColumn`` with the number of the party that owns each, or null
    earlier                 the configs of the stages before the present one, the first one first: those that
                            the sweep had before it was extended, and parts of it that are made first
    shards                  name, group (program), trials, capacity and stage of each shard
    blocks                  names of shards by block; an attack has a unit for each block
    attacks                 entries by variant (``store.attack_rows``)
    local_only              attackers, seeds, points (known labels, draws) and learners' rule of each unit of
                            the baseline, ``outdated`` if it was planned anew under another rule
    naming                  how many known labels name the classes of attacks that know none

Headers of schema 8 stay readable; earlier schemas are not read.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vfljax.config import FREE, resolve
from vfljax.errors import Field, UserError
from vfljax.store.sealed import SEAL, Damaged, begin_root, read_root, seal, write_root
from vfljax.switches import GENERATOR

SCHEMA = 8
LONGEST = 200  # characters of a field's value in a message
ID = "id"
# fields that may grow, by which a sweep is extended
MAY_GROW = (
    *("seeds", "grid", "attacks", "attackers", "federations"),
    *("malicious.parties", "malicious.gamma", "malicious.strength"),
    *("training.learning_rate", "training.momentum", "training.weight_decay", "training.decay"),
)
# fields that may change on resume, for no result depends on them: paths of data may change, not the data
MAY_CHANGE = (
    "execution.",
    "data.dir",
    "data.resident_gb",
    "model.pretrained",
    "teacher.pretrained",
    "reproduces",  # the paper's table that it is compared with
    "goal",
    "decide",
    "parties.names",
    "name",
    "notes",
)


def header_of(workdir: pathlib.Path) -> dict[str, Any] | None:
    """Returns the header of a sweep, or None if there is none.

    Raises:
      UserError: if the header and its copy are damaged, or if their schema is not ``SCHEMA``.
    """
    path = workdir / "sweep.json"
    try:
        header = read_root(workdir)
        if header is None:
            return None
        schema = header.get("schema")
        if isinstance(schema, int) and schema != SCHEMA:
            what = f"has schema {schema}, and this version reads {SCHEMA}"
            raise UserError(f"{path} {what}: use {_writer(header)}, or start in a new workdir.")
        if SEAL not in header:
            raise Damaged(workdir, path.name, "it has no checksum")
    except Damaged as error:  # no command can mend it, because nothing else describes the sweep
        remedy = "restore it, or start in a new workdir."
        raise UserError(f"{path} is damaged ({error.why}): {remedy}") from error
    return header


def _writer(header: Mapping[str, Any]) -> str:
    """Returns in words the vfljax that wrote a header, and reads it. Several revisions have one version."""
    version = header.get("versions", {}).get("vfljax")
    revision = str(header.get("revision") or "").rstrip("+")
    known = {"version": version, "revision": revision[:12]}
    named = ", ".join(f"{name} {value}" for name, value in known.items() if value)
    return "the vfljax that wrote it" + (f" ({named})" if named else "")


def read_header(workdir: pathlib.Path) -> dict[str, Any]:
    """Returns the header of a sweep.

    Raises:
      UserError: if there is none, and as in ``header_of``.
    """
    header = header_of(workdir)
    if header is None:
        raise UserError(f"{workdir} holds no sweep (no sweep.json): run `vfljax sweep` first.")
    return header


def sweep_id(workdir: pathlib.Path) -> str:
    """Returns the id of a sweep, a digest of its header made when that was first written. It is '' if there is
    no header, as in tests that write parts of a sweep only."""
    paths = workdir / "sweep.json", workdir / "sweep.copy.json"
    stats = [path.stat() if path.exists() else None for path in paths]
    return _identity(workdir, tuple((s.st_mtime_ns, s.st_size) if s else None for s in stats))


@functools.lru_cache(maxsize=16)
def _identity(workdir: pathlib.Path, written: tuple[Any, ...]) -> str:
    del written  # modification times and sizes: if they change, the header is read again
    header = header_of(workdir)
    return header[ID] if header else ""


def stages(
    stored: Mapping[str, Any], config: Mapping[str, Any], added: Sequence[Mapping[str, Any]] = ()
) -> list[Mapping[str, Any]]:
    """Returns the configs of the stages of a stored sweep, the first one first, and last the requested one.

    Args:
      stored: header of the sweep.
      config: the requested config, which is the present one of the sweep if no trial or attack depends on what
        differs.
      added: parts of an extension that are made before the rest of it.
    """
    changed = differences(resolve(stored["config"]), resolve(config))
    grows = any(field.field.startswith(MAY_GROW) for field in changed)
    return [*stored["earlier"], *([stored["config"], *added] if grows else []), config]


def begin(workdir: pathlib.Path, header: dict[str, Any]) -> dict[str, Any]:
    """Starts a sweep directory, or continues or extends the one that is there if it is the same sweep.

    Args:
      workdir: the folder of the sweep, whose lock the caller holds.
      header: header of the requested sweep, whose shards are those of the stored one and perhaps others.

    Returns:
      The header in force: the stored one on resume, so that its plan is reused.

    Raises:
      UserError: if the folder holds another sweep, or parts of a sweep whose header is lost.
    """
    stored = header_of(workdir)
    if stored is None:
        if any((workdir / part).exists() for part in ("shards", "attacks", "partial")):
            raise UserError(
                f"workdir {workdir} has lost its sweep.json and the copy of it: restore one of them, or "
                "choose another --workdir. Nothing was changed."
            )
        begin_root(workdir, {**header, ID: seal(header)[SEAL]})
        stored = read_header(workdir)  # on a file system without locks, perhaps another process's
    refuse_another(workdir, stored, header)
    if len(stages(stored, header["config"])) > len(stored["earlier"]) + 1:
        # of the command too, because an earlier one lacks what it adds, such as a plugin
        new = {name: header[name] for name in ("trials", "shards", "earlier", "command")}
        stored = {**stored, **new, "plugins": {**stored["plugins"], **header["plugins"]}}
    return write(workdir, {**stored, "config": header["config"]})


def write(workdir: pathlib.Path, header: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces the header of a sweep, and either copy of it that is damaged. Returns it as it is read back."""
    write_root(workdir, header)
    return read_header(workdir)


class ChangedField(NamedTuple):
    """A field in which two configs differ."""

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.field}: {self.before} -> {self.after}"


def differences(a: Mapping[str, Any], b: Mapping[str, Any], path: str = "") -> list[ChangedField]:
    """Returns the fields in which two resolved configs differ.

    Args:
      a: the first config, or a group of it.
      b: the other config, or the same group of it.
      path: dotted name of the group, '' for a whole config.

    >>> print(*differences({"seeds": 3, "model": {"cut": 16}}, {"seeds": 3, "model": {"cut": 8}}))
    model.cut: 16 -> 8
    """
    fields = []
    for key in [*a, *(k for k in b if k not in a)]:
        name = f"{path}.{key}" if path else key
        left, right = a.get(key, "absent"), b.get(key, "absent")
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            fields += differences(left, right, name)
        elif left != right or (isinstance(left, Mapping) != isinstance(right, Mapping)):
            fields.append(ChangedField(name, left, right))
    if path in FREE and not fields and list(a) != list(b):
        fields.append(ChangedField(path, f"order {list(a)}", list(b)))
    return fields


def refuse_another(
    workdir: pathlib.Path, stored: Mapping[str, Any], header: Mapping[str, Any]
) -> None:
    """Raises an error if a requested sweep is neither the stored one nor an extension of it.

    Args:
      stored: header of the stored sweep.
      header: header of the requested sweep.

    Raises:
      UserError: if the headers differ in a field on which results depend.
    """
    may_change = (*MAY_CHANGE, *MAY_GROW)
    data = difference(stored, header)
    if not data and stored["identity"]:  # the data are the same under other options
        may_change = (*may_change, "data.options")
    fields = [
        # ``resolve`` gives a field that is newer than the stored sweep its default
        of
        for of in differences(resolve(stored["config"]), resolve(header["config"]))
        if not of.field.startswith(may_change)
    ]
    changed: list[tuple[str | Field, ...]] = []
    for name, before, after in fields[:3]:
        changed.append((Field(name, name), f": {_shortened(before)} -> {_shortened(after)}"))
    if data:
        changed.append((data,))
    changed += [(str(of),) for of in differences(_generator(stored), _generator(header))]
    if stored["pretrained"] != header["pretrained"]:
        changed.append(("the file of pretrained weights has changed",))
    if changed:
        listed = [part for of in changed for part in ("; ", *of)][1:]
        raise UserError(
            (f"workdir {workdir} holds another sweep (", *listed, ")"),
            remedy="choose another --workdir, or give the config it was made with. Nothing was changed",
        )


def _shortened(value: Any) -> str:
    """Returns a field's value as text, cut where it is long, such as the columns of a wide table."""
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _generator(header: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the switches of JAX's generator of random numbers that a sweep is trained with."""
    changed = header["switches"]
    return {name: changed.get(name, default) for name, default in GENERATOR.items()}


def difference(stored: Mapping[str, Any], header: Mapping[str, Any]) -> str:
    """Returns why the data sets of two headers differ, or '' if they are the same.

    Args:
      stored: header of the stored sweep.
      header: header of the requested sweep.
    """
    values = stored["checksum"] != header["checksum"]
    if not values and stored["identity"] == header["identity"]:
        return ""
    what = "the values of the data set have" if values else "its parts, groups or columns have"
    old, reader = stored["reader"], header["reader"]
    if old == reader:
        return f"data: {what} changed"
    revision = str(stored.get("revision", "")).rstrip("+")
    maker = f"vfljax at revision {revision}" if revision else "the vfljax that it was made with"
    return (
        f"reading changed: its data set was read by version {old} of the loader, and this is version "
        f"{reader}; to keep the old reading, prepare the data set with {maker} (`vfljax data --prepare=DIR`) "
        "and give DIR in place of the data, or give `vfljax sweep` options of the loader that read so"
    )
