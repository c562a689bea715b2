"""The visible table of the papers' tables: which config makes each, and what it needs.

``TABLES[table][data set]`` lists the runs of a data set's numbers, the published setting first. A run is a
config of this folder and its variant; ``hours`` are those of the published setting on the ``device``,
measured where it was run and otherwise estimated from a measured step, as the config's docstring says.
"""

from __future__ import annotations

from typing import NamedTuple


class Run(NamedTuple):
    """One config of a table, and what it needs."""

    config: str  # a file of configs/papers, without .py
    variant: str  # the text after its colon
    data: str
    device: str
    hours: float


TWO_CORES, GPU = "2 CPU cores", "a GPU"
SPAMBASE = "UCI's spambase.data"
IMDB = "the 50,000 IMDB reviews"
CRITEO = "Kaggle's Criteo train.txt"
TABLES: dict[str, dict[str, tuple[Run, ...]]] = {
    "gafm/2": {
        "Spambase": (Run("gafm_2", "spambase", SPAMBASE, TWO_CORES, 0.02),),
        "IMDB": (Run("gafm_2", "imdb", IMDB, TWO_CORES, 1.0),),
    },
}
