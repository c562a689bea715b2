"""Describes a data set before anything is trained on it, and prepares it for fast reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vfljax import datasets
from vfljax.config import Config
from vfljax.datasets import describing, prepared
from vfljax.datasets import options as loader_options
from vfljax.datasets.describing import catalog
from vfljax.datasets.partition import divide
from vfljax.errors import UserError, shown
from vfljax.models.making import networks_for
from vfljax.sweep.grid import parse

__all__ = ["catalog", "look", "look_by_flags", "parse"]


def look(experiment: Config, prepare: str | None = None) -> None:
    """Prints the data set of an experiment: rows, classes, who owns what, and a checksum.

    Args:
      experiment: only its data and parties are used.
      prepare: a new folder to write a prepared copy to.
    """
    data, parties = experiment.data, experiment.parties
    if prepare:
        dataset = datasets.prepare(data.name, data.dir, prepare, data.options)
    else:
        dataset = datasets.load(data.name, data.dir, data.options)
    source = str(prepare or datasets.prepared_at(data.name, data.dir, data.options) or "")
    if source:
        prepared.verify(source)  # before any of its content is shown
        print(f"prepared: {shown(source)}")
    columns = divide(dataset, parties)
    networks = networks_for(columns[0].input)
    print(describing.describe(dataset, columns, parties.label_features, networks))
    if source:
        print(describing.origin(source))
        print("the prepared folder holds what was written: its checksum is right")


def look_by_flags(
    data: Mapping[str, Any], options: Sequence[str], parties: Mapping[str, Any], prepare: str | None
) -> None:
    """Prints a data set that flags describe. Errors name flags in place of config fields.

    Args:
      data: ``name`` and ``dir``, as in ``config.data``.
      options: options of the loader, as "name=value".
      parties: fields of ``config.parties``.
      prepare: see ``look``.
    """
    known = datasets.options_of(data["name"]) if data["name"] in datasets.TABLE else {}
    try:
        given = loader_options.of_flags(options, known)
        look(parse({"data": {**data, "options": given}, "parties": parties}), prepare)
    except UserError as error:
        raise UserError(error.line(loader_options.flag_of)) from error
