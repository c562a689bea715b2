"""The tables of data sets.

``LOADERS`` has those that are read as they are, name -> ``loader(folder, **options) -> Dataset``, and
``converters.TABLE`` published ones, name -> ``convert(folder, **options) -> Conversion``. ``load`` converts a
published set once and keeps the result (``datasets.cache``). A function's keyword-only parameters are its
options (``config.data.options``). A prepared folder holds what its loader or converter returned, and is read
without it. A new data set is one file and one row of a table (``analysis/guide/add_a_data_set.md``); embedded
sets are also listed in ``EMBEDDED``.
"""

from __future__ import annotations

import inspect
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from vfljax.datasets import cache, converters, prepared, table
from vfljax.datasets import options as loader_options
from vfljax.datasets.bundled import breast_cancer, diabetes, digits, synthetic
from vfljax.datasets.core import Column, Conversion, Dataset
from vfljax.datasets.npz import npz
from vfljax.datasets.table_errors import permitted
from vfljax.datasets.wire import wire
from vfljax.errors import Field, UserError, short_path, unknown, user_path

LOADERS: dict[str, Callable[..., Dataset]] = {
    "digits": digits,
    "breast_cancer": breast_cancer,
    "diabetes": diabetes,
    "synthetic": synthetic,
    "table": table.table,
    "prepared": prepared.prepared,
    "npz": npz,
    "wire": wire,
}
TABLE: dict[str, Callable[..., Dataset | Conversion]] = {**LOADERS, **converters.TABLE}

EMBEDDED = ("digits", "breast_cancer", "diabetes", "synthetic")  # they need no folder

READERS = {"table": table.READER}  # versions of the rules of loaders and converters, if not 1


def options_of(name: str) -> dict[str, Any]:
    """Returns the options of a data set and their defaults."""
    return loader_options.of(TABLE[name])


@permitted()
def load(name: str, folder: str, options: Mapping[str, Any]) -> Dataset:
    """Reads a data set. A published set is converted by the first call, and then mapped from the cache.

    Args:
      name: a name in ``TABLE``; for a folder made by ``prepare``, its loader's name or "prepared".
      folder: the folder or file that holds the data set; "" for an embedded set.
      options: the loader's options; for a prepared folder, those it was made with, or none.

    Raises:
      UserError: for an unknown name or option, a needed option without a value, or any fault of the files.
    """
    folder = _absolute(name, folder)
    if folder and prepared.is_prepared(folder):
        _were(name, folder, options)
        return prepared.read(folder)
    if folder and name in EMBEDDED:
        what = f"is not a prepared data set, and {name} comes with this package"
        raise UserError(what, field="data.dir", value=short_path(folder), remedy="leave it empty")
    values = _values(name, options)
    if name not in converters.TABLE:
        return LOADERS[name](folder, **values)
    places = _places(name, folder, values)
    if place := cache.found(places):
        return prepared.read(place)
    conversion = converters.TABLE[name](folder, **values)
    return cache.write(
        conversion, places, loader_options.recorded(values), name, READERS.get(name, 1)
    )


@permitted()
def prepared_at(name: str, folder: str, options: Mapping[str, Any]) -> pathlib.Path | None:
    """Returns the prepared folder that ``load`` reads, in the cache if need be; None if there is none.

    Args:
      name, folder, options: as of ``load``.
    """
    folder = _absolute(name, folder)
    if folder and prepared.is_prepared(folder):
        return pathlib.Path(folder)
    if name not in converters.TABLE:
        return None
    return cache.found(_places(name, folder, _values(name, options)))


@permitted()
def prepare(name: str, folder: str, out: str, options: Mapping[str, Any]) -> Dataset:
    """Writes a data set's prepared form, a published set block by block, and returns what ``load`` reads.

    Args:
      name, folder, options: as of ``load``.
      out: a new folder.
    """
    folder = _absolute(name, folder)
    prepared.place(out)  # before a load that may take long
    if folder and prepared.is_prepared(folder):
        data, spec = load(name, folder, options), prepared.description(folder)
        return prepared.write(data, out, spec["options"], spec["loader"])
    values = _values(name, options)
    if name in converters.TABLE:
        data = cache.with_progress(converters.TABLE[name](folder, **values))
    else:
        data = load(name, folder, options)
    return prepared.write(data, out, loader_options.recorded(values), name, READERS.get(name, 1))


def _absolute(name: str, folder: str) -> str:
    if name not in TABLE:
        raise unknown(Field("data.name"), name, TABLE)
    return str(user_path(folder, Field("data.dir"))) if folder else folder


def _values(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all options of a data set; raises UserError if one that is needed has no value."""
    values = loader_options.complete(name, TABLE[name], options)
    for option, value in values.items():
        if value is inspect.Parameter.empty:
            what = f"is needed by the data set {name}"
            raise UserError(what, field=f"data.options.{option}", remedy="give it")
    return values


def _places(name: str, folder: str, values: Mapping[str, Any]) -> tuple[pathlib.Path, ...]:
    if not os.path.exists(folder):
        return ()
    return cache.places(name, folder, READERS.get(name, 1), loader_options.recorded(values))


def _were(name: str, folder: str, options: Mapping[str, Any]) -> None:
    """Raises UserError if a prepared folder was made by another loader, or with other options, than are
    asked for. Names that share a loader (isic, ham10000) count as the same."""
    spec = prepared.description(folder)
    maker, recorded = spec["loader"], spec["options"]
    if name != "prepared" and TABLE.get(maker) is not TABLE[name]:
        by = f"by {maker!r}" if maker else "from no loader"
        what = (f"{folder} was prepared {by} and ", Field("data.name"), f" is {name!r}")
        raise UserError(what, remedy="correct it, or give 'prepared'")
    known = maker in TABLE
    asked = loader_options.complete(maker, TABLE[maker], options) if known else options
    # a folder may be older than an option of its loader; it then holds what the default gives
    recorded = {**(loader_options.recorded(options_of(maker)) if known else {}), **recorded}
    asked = loader_options.recorded(asked)
    if not (asked.get("file") and recorded.get("file")):  # it only says where the rows lay
        asked, recorded = ({k: v for k, v in o.items() if k != "file"} for o in (asked, recorded))
    if options and asked != recorded:
        before, given = loader_options.sentence(recorded), loader_options.sentence(options)
        what = (f"{folder} was prepared with {before} and ", Field("data.options"), f" are {given}")
        raise UserError(what, remedy="prepare another folder, or leave the options out")


__all__ = [
    "EMBEDDED",
    "LOADERS",
    "TABLE",
    "Column",
    "Conversion",
    "Dataset",
    "load",
    "options_of",
    "prepare",
]
