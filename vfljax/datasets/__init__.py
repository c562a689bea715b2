"""The table of data sets: name -> ``loader(folder, **options) -> Dataset``.

A new data set is one file and one row of ``TABLE``. Embedded sets are also listed in ``EMBEDDED``, loaders
that can prepare chunk by chunk in ``STREAMS``, and the forms of click data in ``FORMS``
(``analysis/how_to_add_a_data_set.md``). A loader's keyword-only parameters are its options
(``config.data.options``). A prepared folder holds what its loader returned, and is read without the loader.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from vfljax.datasets import avazu, criteo, ctr_forms, prepared, table
from vfljax.datasets import options as asking
from vfljax.datasets.bhi import bhi
from vfljax.datasets.bundled import breast_cancer, digits, synthetic
from vfljax.datasets.cifar import cifar10, cifar100, cinic10
from vfljax.datasets.core import Dataset
from vfljax.datasets.imdb import imdb
from vfljax.datasets.isic import isic
from vfljax.datasets.npz import npz
from vfljax.datasets.spambase import spambase
from vfljax.datasets.table_errors import permitted
from vfljax.datasets.wire import wire
from vfljax.datasets.yahoo import yahoo
from vfljax.errors import Field, UserError, shown, unknown, user_path

TABLE: dict[str, Callable[..., Dataset]] = {
    "digits": digits,
    "breast_cancer": breast_cancer,
    "spambase": spambase,
    "imdb": imdb,
    "synthetic": synthetic,
    "yahoo": yahoo,
    "table": table.table,
    "criteo": criteo.criteo,
    "avazu": avazu.avazu,
    "prepared": prepared.prepared,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "cinic10": cinic10,
    "isic": isic,
    "ham10000": isic,
    "bhi": bhi,
    "npz": npz,
    "wire": wire,
}

EMBEDDED = ("digits", "breast_cancer", "synthetic")  # they need no folder

# sets that can be prepared chunk by chunk: name -> planned(folder, **options) -> ClickPlan
STREAMS = {"criteo": criteo.planned, "avazu": avazu.planned}
READERS = {"table": table.READER}  # versions of the loaders' rules, if not 1
FORMS = {"criteo": criteo.FORMS, "avazu": avazu.FORMS}  # default buckets


def options_of(name: str) -> dict[str, Any]:
    """Returns a loader's options and their defaults."""
    return asking.of(TABLE[name])


def reader_of(name: str, folder: str) -> int:
    """Returns the version of a loader's rules; for a prepared folder, the version that it was made with.

    Args:
      name: a name in ``TABLE``.
      folder: the folder or file that holds the data set.
    """
    if folder and prepared.is_prepared(folder):
        return prepared.description(folder).get("reader", 1)
    return READERS.get(name, 1)


@permitted()
def load(name: str, folder: str, options: Mapping[str, Any]) -> Dataset:
    """Reads a data set.

    Args:
      name: a name in ``TABLE``; for a folder made by ``prepare``, its loader's name or "prepared".
      folder: the folder or file that holds the data set; "" for an embedded set.
      options: the loader's options; for a prepared folder, those it was made with, or none.

    Raises:
      UserError: for an unknown name or option, a needed option without a value, or any fault of the files.
    """
    if name not in TABLE:
        raise unknown(Field("data.name"), name, TABLE)
    folder = _absolute(folder)
    if folder and prepared.is_prepared(folder):
        _were(name, folder, options)
        return prepared.read(folder)
    if folder and name in EMBEDDED:
        what = f"is not a prepared data set, and {name} comes with this package"
        raise UserError(what, field="data.dir", value=shown(folder), remedy="leave it empty")
    values = asking.complete(name, TABLE[name], options)
    for option, value in values.items():
        if value is inspect.Parameter.empty:
            what = f"is needed by the data set {name}"
            raise UserError(what, field=f"data.options.{option}", remedy="give it")
    return TABLE[name](folder, **values)


def _absolute(folder: str) -> str:
    return str(user_path(folder, Field("data.dir"))) if folder else folder


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
    asked = asking.complete(maker, TABLE[maker], options) if known else options
    # a folder may be older than an option of its loader; it then holds what the default gives
    recorded = {**(asking.recorded(options_of(maker)) if known else {}), **recorded}
    if options and not _same(asking.recorded(asked), recorded, FORMS.get(maker, {})):
        before, given = asking.sentence(recorded), asking.sentence(options)
        what = (f"{folder} was prepared with {before} and ", Field("data.options"), f" are {given}")
        raise UserError(what, remedy="prepare another folder, or leave the options out")


def _same(asked: Mapping[str, Any], recorded: Mapping[str, Any], forms: Mapping[str, int]) -> bool:
    # buckets=0 is the form's default; file= only says where the rows lay, so it counts if both give it
    asked, recorded = (
        {**o, "buckets": o["buckets"] or forms.get(o["form"])} if forms else dict(o)
        for o in (asked, recorded)
    )
    if not (asked.get("file") and recorded.get("file")):
        asked, recorded = ({k: v for k, v in o.items() if k != "file"} for o in (asked, recorded))
    return asked == recorded


@permitted()
def prepare(name: str, folder: str, out: str, options: Mapping[str, Any]) -> Dataset:
    """Writes a data set's prepared form, chunk by chunk if its loader can, and returns what ``load`` reads.

    Args:
      name, folder, options: as of ``load``.
      out: a new folder.
    """
    if name not in TABLE:
        raise unknown(Field("data.name"), name, TABLE)
    folder = _absolute(folder)
    if name in STREAMS and not prepared.is_prepared(folder):
        values = asking.complete(name, TABLE[name], options)
        recorded = asking.recorded(values)
        return ctr_forms.prepare(lambda: STREAMS[name](folder, **values), out, recorded)
    prepared.place(out)  # before a load that may take long
    dataset = load(name, folder, options)
    if prepared.is_prepared(folder):
        spec = prepared.description(folder)
        return prepared.write(dataset, out, spec["options"], spec["loader"])
    recorded = asking.recorded(asking.complete(name, TABLE[name], options))
    return prepared.write(dataset, out, recorded, name)


__all__ = [
    "EMBEDDED",
    "READERS",
    "STREAMS",
    "TABLE",
    "Dataset",
    "load",
    "options_of",
    "prepare",
    "reader_of",
]
