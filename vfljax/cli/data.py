"""Look at a data set before anything is trained on it, or prepare it once for fast reading.

    vfljax data                                     # every data set and its options
    vfljax data --dataset=cifar10 --data_dir=DIR    # rows, classes, parties, checksum
    vfljax data --dataset=table --data_dir=FILE.csv --option=label=default --option=drop=a,b
    vfljax data --dataset=criteo --data_dir=DIR --option=form=codes --prepare=NEW_DIR
    vfljax data --config=configs/NAME.py            # the data and parties of a config

The checksum is of the values, not the files: it is equal for the same data in every layout that keeps
the order of rows (a loader's page says which do). A prepared folder is used in place of the original:
--config.data.dir=NEW_DIR. Of an option that takes several names, commas part them; a name that holds a
comma is given as a Python list, --option=drop="['a,b']".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vfljax.cli import common
from vfljax.errors import UserError

if TYPE_CHECKING:
    from vfljax.sweep.experiment import Experiment

RESUMES = False
# what a config has fields for, and --config therefore excludes
FIELDS = ("dataset", "data_dir", "option", "passive", "label_features", "shares", "rule")


def define(options: common.Options) -> None:
    """Define the flags of the command."""
    common.define_config(options, "read data and parties from a config")
    options.add("dataset", "a name of the table of data sets")
    options.add("data_dir", "the folder or file that holds it", "")
    options.add("option", "name=value of the loader, once for each", [])
    options.add("passive", "passive parties", 1)
    options.add("label_features", "whether the label party owns columns too", True)
    options.add("shares", "shares of the parties, such as 2,2,1", ())
    options.add("rule", "how images are divided: contiguous, rows, grid", "contiguous")
    options.add("prepare", "write a prepared copy to this new folder")


def run(options: common.Options, command: str) -> None:
    """Print the catalog, or what a data set is, and prepare it if asked."""
    from vfljax import datasets
    from vfljax.datasets import describing
    from vfljax.datasets import options as loader_options

    del command  # nothing is stored but what --prepare writes
    _refuse(options)
    if options.dataset is None and options.config is None:
        print(describing.catalog())
        return
    known = datasets.options_of(options.dataset) if options.dataset in datasets.TABLE else {}
    try:
        _describe(_experiment(options, known), options.prepare)
    except UserError as error:
        if options.config is not None:
            raise
        raise UserError(loader_options.spoken(str(error), known)) from error


def _refuse(options: common.Options) -> None:
    """Raise UserError for flags that exclude or need each other."""
    present = [name for name in (*FIELDS, "prepare") if options[name].present]
    both = [f"--{name}" for name in present if name in FIELDS]
    if options.config is not None and both:
        raise UserError(
            f"{', '.join(both)} beside --config: change its fields by --config.data.dir=DIR and the like."
        )
    if options.config is None and options.dataset is None and present:
        raise UserError(f"--{present[0]} needs --dataset=NAME (or --config=FILE).")
    if options.prepare == "":
        raise UserError("--prepare is empty: name a new folder.")


def _experiment(options: common.Options, known: dict[str, Any]) -> Experiment:
    """Return an experiment with the data and parties that the flags name."""
    from vfljax.datasets import options as loader_options
    from vfljax.sweep.experiment import parse

    if options.config is not None:
        return parse(options.config)
    given = loader_options.of_flags(options.option, known)
    try:
        shares = [float(share) for share in options.shares]
    except ValueError:
        raise UserError(f"--shares={','.join(options.shares)} must be numbers.") from None
    parties = {
        "passive": options.passive,
        "label_features": options.label_features,
        "shares": shares,
        "rule": options.rule,
    }
    data = {"name": options.dataset, "dir": options.data_dir, "options": given}
    return parse({"data": data, "parties": parties})


def _describe(experiment: Experiment, folder: str | None) -> None:
    """Print what the data set is and who owns what; prepare it first in a new folder if one is named."""
    from vfljax import datasets
    from vfljax.datasets import describing, prepared
    from vfljax.datasets.partition import divide
    from vfljax.models.making import networks_for

    data, parties = experiment.data, experiment.parties
    if folder:
        dataset = datasets.prepare(data.name, data.dir, folder, data.options)
        print(f"prepared: {folder}")
    else:
        dataset = datasets.load(data.name, data.dir, data.options)
    source = folder or data.dir
    is_prepared = bool(source) and prepared.is_prepared(source)
    if is_prepared:
        prepared.verify(source)  # before any of its content is shown
    columns = divide(dataset, parties)
    networks = networks_for(columns[0].input)
    print(describing.describe(dataset, columns, parties.label_features, networks))
    if is_prepared:
        print(describing.origin(source))
        print("the prepared folder holds what was written: its checksum is right")
