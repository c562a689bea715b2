"""Look at a data set before anything is trained on it, or prepare it once for fast reading.

    python -m launch.data                                     # every data set and its options
    python -m launch.data --dataset=cifar10 --data_dir=DIR    # rows, classes, parties, checksum
    python -m launch.data --dataset=table --data_dir=FILE.csv --option=label=default --option=drop=a,b
    python -m launch.data --dataset=criteo --data_dir=DIR --option=form=codes --prepare=NEW_DIR
    python -m launch.data --config=configs/NAME.py            # the data and parties of a config

The checksum is of the values, not the files: it is equal for the same data in every layout that keeps
the order of rows (a loader's page says which do). A prepared folder is used in place of the original:
--config.data.dir=NEW_DIR. Of an option that takes several names, commas part them; a name that holds a
comma is given as a Python list, --option=drop="['a,b']".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from absl import flags
from ml_collections import config_flags

from launch import common
from vfljax.errors import UserError

if TYPE_CHECKING:
    from vfljax.sweep.experiment import Experiment

_CONFIG = config_flags.DEFINE_config_file("config", None, "read data and parties from a config")
_DATASET = flags.DEFINE_string("dataset", None, "a name of the table of data sets")
_DIR = flags.DEFINE_string("data_dir", "", "the folder or file that holds it")
_OPTION = flags.DEFINE_multi_string("option", [], "name=value of the loader, once for each")
_PASSIVE = flags.DEFINE_integer("passive", 1, "passive parties")
_OWNS = flags.DEFINE_bool("label_features", True, "whether the label party owns columns too")
_SHARES = flags.DEFINE_list("shares", [], "shares of the parties, such as 2,2,1")
_RULE = flags.DEFINE_string("rule", "contiguous", "how images are divided: contiguous, rows, grid")
_PREPARE = flags.DEFINE_string("prepare", None, "write a prepared copy to this new folder")

# what a config says, and --config therefore excludes
ASKED = ("dataset", "data_dir", "option", "passive", "label_features", "shares", "rule")


def _refuse() -> None:
    """Raise UserError for flags that exclude or need each other."""
    present = [f for f in (*ASKED, "prepare") if flags.FLAGS[f].present]
    both = [f"--{f}" for f in present if f in ASKED]
    if _CONFIG.value is not None and both:
        raise UserError(
            f"{', '.join(both)} beside --config: it says them itself; change its fields by "
            "--config.data.dir=DIR and the like."
        )
    if _CONFIG.value is None and _DATASET.value is None and present:
        raise UserError(f"--{present[0]} needs --dataset=NAME (or --config=FILE).")
    if _PREPARE.value == "":
        raise UserError("--prepare is empty: name a new folder.")


def _asked() -> Experiment:
    """The data and parties asked for."""
    from vfljax.datasets import options as asking
    from vfljax.sweep.experiment import parse

    if _CONFIG.value is not None:
        return parse(_CONFIG.value)
    options = asking.of_flags(_OPTION.value, _known())
    try:
        shares = [float(share) for share in _SHARES.value]
    except ValueError:
        raise UserError(f"--shares={','.join(_SHARES.value)} must be numbers.") from None
    parties = {
        "passive": _PASSIVE.value,
        "label_features": _OWNS.value,
        "shares": shares,
        "rule": _RULE.value,
    }
    data = {"name": _DATASET.value, "dir": _DIR.value, "options": options}
    return parse({"data": data, "parties": parties})


def _known() -> dict[str, Any]:
    """The options of the loader that is asked for, if it is one."""
    from vfljax import datasets

    return datasets.options_of(_DATASET.value) if _DATASET.value in datasets.TABLE else {}


def run() -> None:
    from vfljax.datasets import options as asking

    try:
        _run()
    except UserError as error:
        if _CONFIG.value is not None:
            raise
        raise UserError(error.line(asking.flag_of)) from error


def _run() -> None:
    from vfljax import datasets
    from vfljax.datasets import describing, prepared
    from vfljax.datasets.partition import divide
    from vfljax.models.making import networks_for

    _refuse()
    if _DATASET.value is None and _CONFIG.value is None:
        print(describing.catalog())
        return
    experiment = _asked()
    data, parties = experiment.data, experiment.parties
    if _PREPARE.value:
        dataset = datasets.prepare(data.name, data.dir, _PREPARE.value, data.options)
        print(f"prepared: {_PREPARE.value}")
    else:
        dataset = datasets.load(data.name, data.dir, data.options)
    folder = _PREPARE.value or data.dir
    kept = bool(folder) and prepared.is_prepared(folder)
    if kept:
        prepared.verify(folder)  # before anything that it says is shown
    blocks = divide(dataset, parties)
    print(
        describing.describe(dataset, blocks, parties.label_features, networks_for(blocks[0].input))
    )
    if kept:
        print(describing.origin(folder))
        print("the prepared folder holds what was written: its checksum is right")


if __name__ == "__main__":
    common.start(run)
