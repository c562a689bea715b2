"""``vfljax data``: what a data set holds, and its copy for fast reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vfljax.api.arguments import Options, Path, Whole, checked, naming_arguments
from vfljax.errors import UserError, argument, short_path

FIELDS = {
    "data.name": "dataset",
    "data.dir": "data_dir",
    "data.options": "option",
    "data.options.options": "options",
    "data.options.*": "option.*",
    **{f"parties.{name}": name for name in ("passive", "label_features", "shares", "rule")},
}
"""The argument for each config field that ``data`` sets."""


@checked
def data(
    dataset: str | None = None,
    data_dir: Path | None = None,
    *,
    option: Options | None = None,
    options: Options | None = None,
    passive: Whole = 1,
    label_features: bool = True,
    shares: Sequence[float] = (),
    rule: str = "contiguous",
    config: Any = None,
    prepare: Path | None = None,
) -> None:
    """Look at a data set before anything is trained on it, or prepare it once for fast reading.

        vfljax data                                     # every data set and its options
        vfljax data --dataset=cifar10 --data_dir=DIR    # rows, classes, parties, checksum
        vfljax data --dataset=table --data_dir=FILE.csv --option=label=default --option=drop=a,b
        vfljax data --dataset=table --data_dir=FILE.csv --option=label=default --options='{"sep": ";"}'
        vfljax data --dataset=criteo --data_dir=DIR --option=form=codes --prepare=NEW_DIR
        vfljax data --config=configs/NAME.py            # the data and parties of a config

    The checksum is of the values, not the files: it is equal for the same data in every layout that keeps
    the order of rows (a loader's page says which do). A prepared folder is used in place of the original:
    --config.data.dir=NEW_DIR. Commas separate the names in an option that takes several; a name that holds a
    comma is given in a Python list, --option=drop="['a,b']".

    Args:
      dataset: a name of the table of data sets.
      data_dir: the folder or file that holds it.
      option: name=value of the loader, once for each.
      options: of a table, options of pandas.read_csv or read_parquet, as JSON: {"sep": ";", "decimal": ","}.
      passive: passive parties.
      label_features: whether the label party owns columns too.
      shares: shares of the parties, such as 2,2,1.
      rule: how images are divided: contiguous, rows, grid.
      config: read data and parties from a config, in place of the arguments above.
      prepare: write a prepared copy to this new folder.

    Raises:
      UserError: for an unknown data set, data that cannot be read, and parties that cannot own columns.
    """
    from vfljax.datasets.describing import catalog
    from vfljax.sweep.grid import parse

    source = None if data_dir is None else str(data_dir)
    copy = None if prepare is None else str(prepare)
    given = {"dataset": dataset, "data_dir": source, "option": option, "options": options}
    given["shares"] = shares
    beside = [argument(name) for name, value in given.items() if value]
    if config is not None:
        for each in beside:
            remedy = "change its fields by --config.data.dir=DIR and the like"
            raise UserError((each, " is given beside ", argument("config")), remedy=remedy)
        _look(parse(config), copy)
    elif dataset is not None:
        parties = {
            "passive": passive,
            "label_features": label_features,
            "shares": tuple(shares),
            "rule": rule,
        }
        with naming_arguments(FIELDS):
            of_pandas = {"options": options} if options else {}
            loader = of_loader(dataset, {**(option or {}), **of_pandas})
            of_data = {"name": dataset, "dir": source or "", "options": loader}
            _look(parse({"data": of_data, "parties": parties}), copy)
    elif beside or copy:
        first = (*beside, argument("prepare"))[0]
        raise UserError(
            (first, " is of no data set"), remedy=("give ", argument("dataset"), "=NAME")
        )
    else:
        print(catalog())


def of_loader(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options whose texts are read as their defaults have it: "true" as True, "a,b" as a tuple."""
    from vfljax import datasets

    known = datasets.options_of(name) if name in datasets.TABLE else {}

    def read(option: str, value: Any) -> Any:
        default = known.get(option)
        if isinstance(value, str) and isinstance(default, tuple):
            return tuple(filter(None, value.split(",")))
        if isinstance(value, str) and isinstance(default, bool):
            return {"true": True, "false": False}.get(value.lower(), value)
        return value

    return {option: read(option, value) for option, value in options.items()}


def _look(experiment: Any, prepare: str | None) -> None:
    """Prints the data set of an experiment: rows, classes, who owns what, and a checksum.

    Args:
      experiment: only its data and parties are used.
      prepare: a new folder to write a prepared copy to.
    """
    from vfljax import datasets
    from vfljax.datasets import describing, prepared
    from vfljax.datasets.partition import divide
    from vfljax.models.making import networks_for

    of, parties = experiment.data, experiment.parties
    if prepare:
        dataset = datasets.prepare(of.name, of.dir, prepare, of.options)
    else:
        dataset = datasets.load(of.name, of.dir, of.options)
    source = str(prepare or datasets.prepared_at(of.name, of.dir, of.options) or "")
    if source:
        prepared.verify(source)  # before any of its content is shown
        print(f"prepared: {short_path(source)}")
    columns = divide(dataset, parties)
    networks = networks_for(columns[0].input)
    print(describing.describe(dataset, columns, parties.label_features, networks))
    if source:
        print(describing.origin(source))
        print("the prepared folder holds what was written: its checksum is right")
