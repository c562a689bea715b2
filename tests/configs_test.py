"""Every config loads, plans, and a step of one of its structures can be taken."""

import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.conftest import real_data
from vfljax.config import changed
from vfljax.defenses import TABLE
from vfljax.federation import training
from vfljax.sweep import batch_layout, initial, programs, shard_trainer, specs
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import make_plan

FOLDER = pathlib.Path(__file__).parents[1] / "configs"
# those of papers are in tests/reproduction, but for the one whose data are here
PAPERS = [p for p in FOLDER.glob("papers/*.py") if p.stem != "gafm_table2_spambase"]
# that of trees is no sweep: tests/auditing/trees_test.py reads it
OTHERS = [*PAPERS, FOLDER / "trees.py"]
ALL = [p for p in sorted(FOLDER.rglob("*.py")) if p not in OTHERS]
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
    member = layout.pad(specs.member_of_trials(spec, settings, []))
    # any weights will do, and drawing them takes a program a config
    rng, shapes = np.random.default_rng(0), initial.weight_shapes(spec, plan.seeds, plan.table)
    weights = jax.tree.map(lambda a: rng.uniform(0.01, 0.2, a.shape).astype(a.dtype), shapes)
    now = training.epoch_of(0, plan.seeds, rows)
    shared = batch_layout.share((table, weights, now))
    arguments = (
        (member, layout.pad(shard_trainer.empty_snapshot(spec, member, *shared[:2]))),
        shared,
    )
    return (spec, None), layout, arguments


# the config that every newcomer meets
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=[pytest.mark.slow] * (p.stem != "quickstart"), id=p.stem)
        for p in CONFIGS
    ],
)
def test_the_config_trains_one_step(path):
    static, layout, arguments = one_step(path)
    program = programs.program(training.make_run, static, layout, arguments)
    snapshot, finite = program(*arguments)
    assert np.asarray(finite).all()
    assert float(snapshot.record.loss[0, 0]) != 0  # a loss with log dCor in it may be negative


def test_every_config_s_names_axes_and_sizes_are_within_the_rules():
    for path in ALL:
        module = load(path)
        for variant in getattr(module, "VARIANTS", ()):
            assert parse(module.get_config(variant)).grid, (path.stem, variant)
        assert parse(module.get_config()).grid, path.stem


@pytest.mark.parametrize(("name", "classes"), [("defenses_spambase", 2), ("defenses_digits", 10)])
def test_every_defense_is_in_one_of_the_variants_of_the_sweep_of_defenses(name, classes):
    module = load(FOLDER / f"{name}.py")
    arms = [arm for variant in module.VARIANTS for arm in module.get_config(variant).grid.values()]
    listed = {defense for arm in arms for defense in arm}
    assert listed == {d for d, row in TABLE.items() if classes == 2 or not row.two_classes}
