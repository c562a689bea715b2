"""Look at a data set before anything is trained on it, or prepare it once for fast reading.

    vfljax data                                     # every data set and its options
    vfljax data --dataset=cifar10 --data_dir=DIR    # rows, classes, parties, checksum
    vfljax data --dataset=table --data_dir=FILE.csv --option=label=default --option=drop=a,b
    vfljax data --dataset=table --data_dir=FILE.csv --option=label=y --options='{"sep": ";", "decimal": ","}'
    vfljax data --dataset=criteo --data_dir=DIR --option=form=codes --prepare=NEW_DIR
    vfljax data --config=configs/NAME.py            # the data and parties of a config

The checksum is of the values, not the files: it is equal for the same data in every layout that keeps
the order of rows (a loader's page says which do). A prepared folder is used in place of the original:
--config.data.dir=NEW_DIR. Commas separate the names in an option that takes several; a name that holds a
comma is given in a Python list, --option=drop="['a,b']". --options is a JSON object of options of
``pandas.read_csv``, for a table's file.
"""

from __future__ import annotations

from vfljax.cli.common import CHANGES, Flag, Options
from vfljax.errors import UserError

RESUMES = False
# flags for which a config has fields, so that they exclude --config
FIELDS = ("dataset", "data_dir", "option", "options", "passive", "label_features", "shares", "rule")
FLAGS = (
    Flag("config", "read data and parties from a config"),
    CHANGES,
    Flag("dataset", "a name of the table of data sets"),
    Flag("data_dir", "the folder or file that holds it", "", path=True),
    Flag("option", "name=value of the loader, once for each", []),
    Flag("options", "a JSON object of options of pandas.read_csv, for a table's file", ""),
    Flag("passive", "passive parties", 1),
    Flag("label_features", "whether the label party owns columns too", True),
    Flag("shares", "shares of the parties, such as 2,2,1", ()),
    Flag("rule", "how images are divided: contiguous, rows, grid", "contiguous"),
    Flag("prepare", "write a prepared copy to this new folder", path=True),
)


def run(options: Options) -> None:
    """Print the catalog, or describe a data set and prepare it if asked."""
    from vfljax.auditing import looking

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
    try:
        shares = [*map(float, options.shares)]
    except ValueError:
        raise UserError(f"--shares={','.join(options.shares)} must be numbers.") from None
    if options.config is not None:
        looking.look(looking.parse(options.config), options.prepare)
    elif options.dataset is None:
        print(looking.catalog())
    else:
        parties = {
            "passive": options.passive,
            "label_features": options.label_features,
            "shares": shares,
            "rule": options.rule,
        }
        data = {"name": options.dataset, "dir": options.data_dir}
        texts = [*options.option, *([f"options={options.options}"] if options.options else [])]
        looking.look_by_flags(data, texts, parties, options.prepare)
