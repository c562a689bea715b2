"""The configs of GAFM's tables: every variant plans on data of its set's shape, at published numbers."""

import importlib
import inspect
import pathlib

import numpy as np
import pytest

from configs.papers import gafm
from vfljax import datasets, papers
from vfljax.datasets.core import Column, Dataset
from vfljax.errors import UserError
from vfljax.sweep.experiment import parse
from vfljax.sweep.plan import make_plan

TABLES = ("2", "c1", "d2", "d3", "d4", "d5", "d6", "f1", "figure2", "figure3")
ROWS = 2400


def module(table):
    return importlib.import_module(f"configs.papers.gafm_{table}")


def variants(table):
    """Every variant of one config, which its own error lists."""
    with pytest.raises(UserError) as error:
        module(table).get_config("?")
    names = str(error.value).split("choose from ")[1].removesuffix(".").split(", ")
    return [*names, *(f"{name}-subset" for name in names if table == "d6")]


EVERY = [(table, variant) for table in TABLES for variant in variants(table)]


def small(name):
    """A loader of ``ROWS`` rows of the set's kind and shape."""

    def load(folder, **options):
        del folder
        rng = np.random.default_rng(0)
        labels = np.arange(ROWS, dtype=np.int32) % 2
        if name == "isic":
            side = options["size"]
            return Dataset(name, np.zeros((ROWS, side, side), np.uint8), labels, 2, "image")
        if name == "criteo":
            columns = tuple(Column(f"C{j}", 5) for j in range(39))
            codes = rng.integers(5, size=(ROWS, 39)).astype(np.int32)
            return Dataset(name, codes, labels, 2, columns=columns)
        width = {"spambase": 57, "imdb": 500}[name]
        return Dataset(name, rng.random((ROWS, width)).astype(np.float32), labels, 2)

    load.__signature__ = inspect.signature(datasets.TABLE[name])  # its options
    return load


@pytest.mark.parametrize(("table", "variant"), EVERY)
def test_every_variant_parses_and_names_a_table_that_was_published(table, variant):
    config = module(table).get_config(variant)
    experiment = parse(config)
    reproduces = experiment.reproduces
    assert reproduces.table in papers.tables()
    assert reproduces.dataset == gafm.PUBLISHED_NAMES[experiment.data.name]
    assert set(reproduces.arms) == {arm.name for arm in experiment.methods}
    assert config.name.startswith(f"gafm_{'text' if 'text' in reproduces.table else table}_")
    assert (reproduces.scale == "sample") == ("reduced" in variant)
    printed = papers.numbers_of(reproduces.table, reproduces.dataset)
    assert {number.defense for number in printed} <= set(reproduces.arms.values())
    of_one = {n.attack for n in printed} - {"", "average of norm, mean, median"}
    assert of_one <= set(reproduces.attacks)


@pytest.mark.parametrize("table", TABLES)
def test_the_first_data_set_is_the_default(table):
    first = variants(table)[0]
    assert module(table).get_config() == module(table).get_config(first)


def test_every_table_with_numbers_of_gafm_has_a_config():
    named = {parse(module(t).get_config(v)).reproduces.table for t, v in EVERY}
    printed = {n.table for n in papers.numbers() if n.table.startswith("gafm/")}
    assert printed <= named


@pytest.mark.parametrize(
    ("table", "variant"),
    [
        ("2", "spambase"),
        ("c1", "imdb"),
        ("c1", "criteo"),
        ("d6", "isic-reduced"),
        ("figure3", "isic"),
        ("f1", "criteo-reduced"),
        ("d6", "criteo-reduced"),
    ],
)
def test_its_programs_can_be_made(table, variant, monkeypatch):
    config = module(table).get_config(variant)
    monkeypatch.setitem(datasets.TABLE, config.data.name, small(config.data.name))
    plan = make_plan(parse(config))
    rows = {group.spec.num_rows for group in plan.groups}
    assert rows == {round(config.data.train * ROWS)}
    assert sum(len(group.trials) for group in plan.groups) % config.seeds == 0


def test_published_numbers_of_the_training():
    by_set = {
        name: (t["epochs"], t["batch_size"], t["learning_rate"])
        for name, t in gafm.TRAINING.items()
    }
    assert by_set == {
        "spambase": (300, 1028, 1e-4),
        "imdb": (300, 1028, 1e-4),
        "criteo": (100, 256, 1e-4),
        "isic": (250, 256, 1e-6),
    }
    knobs = {
        name: tuple(k[n] for n in ("sigma", "delta", "gamma")) for name, k in gafm.KNOBS.items()
    }
    assert knobs == {
        "spambase": (0.01, 0.05, 1),
        "imdb": (0.01, 0.1, 1),
        "criteo": (0.01, 0.5, 1),
        "isic": (0.01, 0.05, 20),
    }


def test_table_2_of_spambase_is_the_config_with_the_rules():
    old = importlib.import_module("configs.papers.gafm_table2_spambase").get_config()
    new = module("2").get_config("spambase")
    old.training.decay = new.training.decay  # read at milestones, and there are none
    for field in ("seeds", "data", "parties", "model", "training", "grid", "attacks"):
        assert new[field] == old[field], field


def test_no_config_types_a_published_value():
    for table in TABLES:
        source = pathlib.Path(module(table).__file__).read_text()
        assert 'published":' not in source
