"""The configs of Sun et al. 2022: every variant parses and names its table, and its programs can be made."""

import importlib
import inspect

import jax
import numpy as np
import pytest

from configs.papers import sun
from vfljax import datasets, papers
from vfljax.attacking.diagnostics import layer_names
from vfljax.datasets.core import Column, Dataset
from vfljax.errors import UserError
from vfljax.sweep.experiment import parse
from vfljax.sweep.initial import plain, weight_shapes
from vfljax.sweep.plan import make_plan

TABLES = ("1", "2", "3", "4", "5", "text", *(f"figure{i}" for i in range(2, 8)))
ROWS = 400


def module(table):
    return importlib.import_module(f"configs.papers.sun_{table}")


def variants(table):
    dataset = "avazu" if table == "2" else "criteo"
    return ["-".join(filter(None, (dataset, training))) for training in sun.VARIANTS[dataset]]


EVERY = [(table, variant) for table in TABLES for variant in variants(table)]


@pytest.mark.parametrize(("table", "variant"), EVERY)
def test_every_variant_parses_and_names_its_table(table, variant):
    config = module(table).get_config(variant)
    experiment = parse(config)
    assert experiment.reproduces.table == f"sun/{table}"
    assert (experiment.reproduces.scale == "sample") == ("sample" in variant)
    assert (experiment.data.options["rows"] > 0) == ("sample" in variant)
    assert any("A sample" in note for note in experiment.notes) == ("sample" in variant)
    assert experiment.seeds == 5
    printed = papers.numbers_of(f"sun/{table}", experiment.reproduces.dataset)
    assert {n.defense for n in printed} <= set(experiment.reproduces.arms.values())
    ratios = {n.setting["positive_ratio"] for n in printed if "positive_ratio" in n.setting}
    assert ratios <= {experiment.data.options.get("positive_ratio")}
    alphas = {n.setting["alpha_d"] for n in printed if n.setting.get("alpha_d")}
    trained = {
        p.knobs["dcor"]["alpha"] for a in experiment.methods for p in a.chains if "dcor" in p.knobs
    }
    assert alphas <= trained


def test_the_published_setting_is_the_default_and_an_unknown_one_is_named():
    for table in TABLES:
        default = module(table).get_config()
        fields = default.training
        assert (fields.epochs, fields.batch_size, fields.learning_rate) == (3, 8192, 1e-4)
        assert default.training == module(table).get_config(variants(table)[0]).training
    with pytest.raises(UserError, match="avazu-sample.*criteo-sample"):
        module("3").get_config("avazu-sample")


def test_the_docstrings_say_how_to_run_them():
    for table in TABLES:
        doc = module(table).__doc__
        name = f"configs/papers/sun_{table}.py"
        assert f"python -m launch.sweep --config={name}:{variants(table)[0]}-sample" in doc
        assert all(f'"{variant}"' in doc for variant in variants(table))
        assert "hours" in doc


def small(name):
    """A loader of ``ROWS`` rows of the set's columns."""

    def load(folder, **options):
        del folder, options
        numbers, codes = (13, 26) if name == "criteo" else (0, 22)
        columns = [Column(f"I{j}") for j in range(numbers)]
        columns += [Column(f"C{j}", "code", "", 5) for j in range(codes)]
        features = np.random.default_rng(0).integers(5, size=(ROWS, len(columns)))
        labels = np.arange(ROWS, dtype=np.int32) % 2
        return Dataset(name, features.astype(np.float32), labels, 2, columns=tuple(columns))

    load.__signature__ = inspect.signature(datasets.TABLE[name])  # its options
    return load


@pytest.mark.parametrize(
    ("table", "variant", "settings"),
    [("1", "criteo", 60), ("2", "avazu-sample", 10), ("figure7", "criteo-sample", 40)],
)
def test_its_programs_can_be_made(table, variant, settings, monkeypatch):
    config = module(table).get_config(variant)
    config.training.batch_size = 128
    config.training.record_rows = 0
    monkeypatch.setitem(datasets.TABLE, config.data.name, small(config.data.name))
    plan = make_plan(parse(config))
    assert sum(len(group.trials) for group in plan.groups) == settings
    spec = next(group.spec for group in plan.groups if group.spec.top is not None)
    shapes = weight_shapes(plain(spec), plan.seeds, plan.table)
    one = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), shapes)
    rows = tuple(jax.ShapeDtypeStruct((2, *x.shape[1:]), np.float32) for x in plan.table.features)
    names = layer_names(spec, one, rows)
    assert set(sun.PASSIVE_LAYERS) <= set(names)
    if table == "figure7":
        assert set(sun.LAYERS) == set(names)
        assert sun.LAYERS[:5] == sun.PASSIVE_LAYERS
