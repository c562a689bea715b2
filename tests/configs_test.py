"""Every config loads, plans, and a step of one of its structures can be traced and taken."""

import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.conftest import real_data
from vfljax import datasets
from vfljax.config import changed
from vfljax.datasets import core
from vfljax.defenses import TABLE
from vfljax.federation import training
from vfljax.sweep import batch_layout, initial, programs, specs, trainer
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import make_plan

FOLDER = pathlib.Path(__file__).parents[1] / "configs"
# those of papers are in tests/papers, but for the one whose data are here
PAPERS = [p for p in FOLDER.glob("papers/*.py") if p.stem != "gafm_table2_spambase"]
ALL = [p for p in sorted(FOLDER.rglob("*.py")) if p not in PAPERS]
# those of data sets need files: datasets_sweeps_test.py makes them, and trains to the end
CONFIGS = [p for p in ALL if p.parent.name != "datasets"]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def one_step(path):
    """What one step of a config's last structure, on few rows, is made of, and the arguments of its program."""
    module = load(path)
    assert "python -m launch.sweep" in module.__doc__
    config = module.get_config()
    if config.data.name == "spambase":
        config.data.dir = str(real_data("spambase"))
    experiment = parse(config)
    assert make_plan(experiment).shards
    # on few rows, one step an epoch
    rows = min(experiment.training.batch_size, 60)
    data = {"data.train": rows, "data.validation": 20, "data.test": 20, "seeds": 1, "canaries": 0}
    small = changed(experiment, {**data, "training.batch_size": rows})
    plan = make_plan(small)
    spec, settings = plan.groups[-1].spec, plan.groups[-1].trials[:2]
    table = plan.table
    if any(d.name == "kdk" for d in spec.defenses):
        scores = np.full((1, rows, plan.dataset.num_classes), 0.1, np.float32)
        table = table._replace(scores=jnp.asarray(scores))
    layout = batch_layout.layout(2)
    member = layout.pad(specs.members_of(spec, settings, []))
    # any weights will do, and drawing them takes a program a config
    rng, shapes = np.random.default_rng(0), initial.weight_shapes(spec, plan.seeds, plan.table)
    weights = jax.tree.map(lambda a: rng.uniform(0.01, 0.2, a.shape).astype(a.dtype), shapes)
    now = training.epoch_of(jnp.int32(0), jnp.asarray(plan.seeds), rows)
    shared = batch_layout.share((table, weights, now))
    arguments = (member, layout.pad(trainer.empty_snapshot(spec, member, *shared[:2]))), shared
    return (spec, training.unobserved), layout, arguments


def each_of(paths, often):
    """Test cases of configs, of which only those of these names are not slow."""
    marks = {True: [], False: [pytest.mark.slow]}
    return [pytest.param(p, marks=marks[p.stem in often], id=p.stem) for p in paths]


@pytest.mark.parametrize("path", each_of(CONFIGS, ("quickstart", "canaries", "deviations")))
def test_the_config_plans_and_a_step_of_it_is_traced(path):
    static, _, arguments = one_step(path)
    run = jax.vmap(training.make_run(*static), in_axes=(0, None))
    snapshot, finite = jax.eval_shape(run, *arguments)
    assert finite.dtype == bool
    assert snapshot.record.loss.shape[0] == len(finite)


# the config that every newcomer meets
@pytest.mark.parametrize("path", each_of(CONFIGS, ("quickstart",)))
def test_the_config_trains_one_step(path):
    static, layout, arguments = one_step(path)
    program = programs.program(training.make_run, static, layout, *arguments)
    snapshot, finite = program(*arguments)
    assert np.asarray(finite).all()
    assert float(snapshot.record.loss[0, 0]) != 0  # a loss with log dCor in it may be negative


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_the_config_s_names_axes_and_sizes_are_within_the_rules(path):
    assert parse(load(path).get_config()).grid


GAFM = load(next(path for path in CONFIGS if path.stem == "gafm_table2_spambase"))


@pytest.mark.parametrize("variant", ["", *GAFM.VARIANTS])
def test_gafm_s_table_and_its_variants_plan_on_data_of_spambase_s_shape(variant, monkeypatch):
    rng = np.random.default_rng(0)
    labels = (rng.random(4601) < 0.394).astype(np.int32)
    columns = rng.exponential(size=(4601, 57)).astype(np.float32)
    like = core.Dataset("spambase", columns, labels, 2)
    monkeypatch.setattr(datasets, "load", lambda name, folder, options: like)
    plan = make_plan(parse(GAFM.get_config(variant)))
    assert all(len(group.trials) % 10 == 0 for group in plan.groups)
    assert {g.spec.num_rows for g in plan.groups} == {3221}
    if not variant:
        assert sum(len(group.trials) for group in plan.groups) == 40
        assert [g.spec.steps_per_epoch for g in plan.groups] == [4] * 4


@pytest.mark.parametrize(("name", "classes"), [("defenses_spambase", 2), ("defenses_digits", 10)])
def test_every_defense_is_in_one_of_the_variants_of_the_sweep_of_defenses(name, classes):
    module = load(FOLDER / f"{name}.py")
    arms = [arm for variant in module.VARIANTS for arm in module.get_config(variant).grid.values()]
    listed = {defense for arm in arms for defense in arm}
    assert listed == {d for d, row in TABLE.items() if classes == 2 or not row.two_classes}
    for variant in module.VARIANTS:
        assert parse(module.get_config(variant)).grid
