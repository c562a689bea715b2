"""The visible table of the papers' tables: which config makes each, and what it needs.

``TABLES[table][data set]`` lists the runs of a data set's numbers, the published setting first. A run is a
config of this folder and its variant; ``hours`` are those of the published setting on the ``device``:
settings times the hours of one, which the docstrings of ``gafm``, ``kdk``, ``fu``, ``sun`` and ``li`` say
were measured or estimated from what.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from configs.papers import (
    fu_attacks,
    gafm,
    gafm_table2_spambase,
    kdk,
    kdk_4,
    kdk_5,
    kdk_6,
    kdk_7,
    kdk_8,
    kdk_9,
    kdk_figure6,
    kdk_figure7,
    li,
    sun,
)


class Run(NamedTuple):
    """One config of a table, and what it needs."""

    config: str  # a file of configs/papers, without .py
    variant: str  # the text after its colon
    data: str
    device: str
    hours: float
    rule: str = ""  # what ``--variant`` calls it; "": the published setting


class Source(NamedTuple):
    """A data set as a paper calls it, and what must be at hand."""

    name: str
    data: str


TWO_CORES, GPU = "2 CPU cores", "a GPU"
CRITEO = "Kaggle's Criteo train.txt"
SOURCES = {
    "spambase": Source("Spambase", "UCI's spambase.data"),
    "imdb": Source("IMDB", "the 50,000 IMDB reviews"),
    "isic": Source("ISIC", "SIIM-ISIC 2020"),
    "cifar10": Source("CIFAR-10", "CIFAR-10"),
    "cifar100": Source("CIFAR-100", "CIFAR-100"),
    "cinic10": Source("CINIC-10", "CINIC-10"),
    "yahoo": Source("Yahoo! Answers", "yahoo_answers_csv, BERT's weights and vocabulary"),
    "criteo": Source("Criteo", CRITEO),
    "bhi": Source("BHI", "Kaggle's breast histopathology patches"),
    "avazu": Source("Avazu", "Kaggle's Avazu train.csv"),
}


def _runs(
    config: str, dataset: str, rules: Iterable[str], device: str, hours: float
) -> tuple[Run, ...]:
    needs = (SOURCES[dataset].data, device, round(hours, 2))
    others = (Run(config, f"{dataset}-{rule}", *needs, rule) for rule in rules)
    return (Run(config, dataset, *needs), *others)


GAFM_HOURS = {
    "spambase": 0.0004,
    "imdb": 0.017,
    "criteo": 0.026,
    "isic": 2.0,
}  # of one run, 2 cores
ALL_FOUR = ("spambase", "imdb", "criteo", "isic")


def _gafm(
    config: str,
    runs: int,
    datasets: tuple[str, ...] = ALL_FOUR,
    more: tuple[str, ...] = (),
    baselines: bool = False,
) -> dict[str, tuple[Run, ...]]:
    return {
        SOURCES[name].name: _runs(
            config,
            name,
            (*more, *gafm.rules_of(name, baselines)),
            TWO_CORES,
            runs * GAFM_HOURS[name],
        )
        for name in datasets
    }


def _table2() -> dict[str, tuple[Run, ...]]:
    """Of Spambase also the rules that bring in single figures."""
    runs = _gafm("gafm_2", 40, baselines=True)
    main = runs["Spambase"][0]
    known = {run.rule for run in runs["Spambase"]}
    rules = tuple(
        Run("gafm_table2_spambase", rule, main.data, main.device, main.hours, rule)
        for rule in gafm_table2_spambase.VARIANTS
        if rule not in known
    )
    return {**runs, "Spambase": (*runs["Spambase"], *rules)}


STEP = 53.3e9 / 28e12
"""Seconds of a step of one ResNet-18 of width 64 on 32 half images: its operations
(``analysis.benchmark.gpu.forward_operations``, three times), at the rate that an H100 reached in float32
with 16 trials (``analysis/results/benchmark/gpu.md``)."""


def _image_hours(name: str) -> float:
    """Returns the hours of a setting with two bottoms; teachers and attacks take half as much again."""
    data, training = (kdk.DATASETS[name][group] for group in ("data", "training"))
    steps = training["epochs"] * math.ceil(data["train"] / training["batch_size"])
    return 1.5 * 2 * steps * STEP / 3600


KDK_HOURS = {
    **{name: _image_hours(name) for name in ("cifar10", "cifar100", "cinic10")},
    "yahoo": 15.0,
    "criteo": 0.1,
    "bhi": 0.1,
}
"""Of one setting on a GPU, its teachers and attacks included; Criteo's on 2 cores."""


def _kdk(
    config: str, settings: int, variants: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[Run, ...]]:
    return {
        SOURCES[name].name: _runs(
            config, name, rules, TWO_CORES if name == "criteo" else GPU, settings * KDK_HOURS[name]
        )
        for name, rules in variants.items()
    }


def _li(dataset: str, hours: float) -> dict[str, tuple[Run, ...]]:
    rules = [v.partition("-")[2] for v in li.VARIANTS if v.startswith(f"{dataset}-")]
    return {SOURCES[dataset].name: _runs("li", dataset, rules, TWO_CORES, hours)}


def _sun(config: str, hours: float, dataset: str = "criteo") -> dict[str, tuple[Run, ...]]:
    rules = (rule for rule in sun.VARIANTS[dataset] if rule)
    device = f"{TWO_CORES} or {GPU}"
    return {SOURCES[dataset].name: _runs(config, dataset, rules, device, hours)}


TABLES: dict[str, dict[str, tuple[Run, ...]]] = {
    "kdk/4": _kdk("kdk_4", 9, kdk_4.VARIANTS),
    "kdk/5": _kdk("kdk_5", 18, kdk_5.VARIANTS),
    "kdk/6": _kdk("kdk_6", 9, kdk_6.VARIANTS),
    "kdk/7": _kdk("kdk_7", 12, kdk_7.VARIANTS),
    "kdk/8": _kdk("kdk_8", 87, kdk_8.VARIANTS),
    "kdk/9": _kdk("kdk_9", 87, kdk_9.VARIANTS),
    "kdk/figure6": _kdk("kdk_figure6", 42, kdk_figure6.VARIANTS),
    "kdk/figure7": _kdk("kdk_figure7", 180, kdk_figure7.VARIANTS),
    "fu/attacks": _kdk("fu_attacks", 6, fu_attacks.VARIANTS),
    "gafm/2": _table2(),
    "gafm/C.1": _gafm("gafm_c1", 40, ("spambase", "imdb", "criteo"), baselines=True),
    "gafm/D.2": _gafm("gafm_d2", 30),
    "gafm/D.3": _gafm("gafm_d3", 10),
    "gafm/D.4": _gafm("gafm_d4", 4, ("isic",)),  # 40 runs on a tenth of the rows
    "gafm/D.5": _gafm("gafm_d5", 40, ("isic",)),
    "gafm/D.6": _gafm("gafm_d6", 52, more=("subset",)),
    "gafm/F.1": _gafm("gafm_f1", 30, ("criteo",)),
    "gafm/figure2": _gafm("gafm_figure2", 6),
    "gafm/figure3": _gafm("gafm_figure3", 30, ("spambase",)),
    "gafm/text": _gafm("gafm_figure3", 30, ("imdb", "criteo", "isic")),
    "sun/1": _sun("sun_1", 380),
    "sun/2": _sun("sun_2", 42, "avazu"),
    "sun/3": _sun("sun_3", 27),
    "sun/4": _sun("sun_4", 25),
    "sun/5": _sun("sun_5", 24),
    "sun/text": _sun("sun_text", 140),
    "sun/figure2": _sun("sun_figure2", 35),
    "sun/figure3": _sun("sun_figure3", 115),
    "sun/figure4": _sun("sun_figure4", 155),
    "sun/figure5": _sun("sun_figure5", 595),
    "sun/figure6": _sun("sun_figure6", 115),
    "sun/figure7": _sun("sun_figure7", 215),
    "li/criteo": _li("criteo", 50),
    "li/avazu": _li("avazu", 320),
}
