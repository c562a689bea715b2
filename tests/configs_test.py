"""Every config loads, plans, and its first structure takes one epoch."""

import importlib.util
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

from tests.conftest import real_data
from vfljax import datasets, grid, lab, lanes, sweep, training
from vfljax.datasets import core

FOLDER = pathlib.Path(__file__).parents[1] / "configs"
# those of data sets need files: datasets_sweeps_test.py makes them, and trains to the end
CONFIGS = [p for p in sorted(FOLDER.rglob("*.py")) if p.parent.name != "datasets"]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_config_plans_and_trains_one_epoch(path):
    module = load(path)
    assert "python -m launch.sweep" in module.__doc__
    config = module.get_config()
    if config.data.name == "spambase":
        config.data.dir = str(real_data("spambase"))
    made = lab.prepare(config)
    group = made.groups[-1]
    table = made.table
    if any(d.name == "kdk" for d in group.spec.defenses):
        rows = len(made.splits[0].train), made.dataset.num_classes
        table = table._replace(scores=np.full((len(made.splits), *rows), 0.1, np.float32))
    program = lanes.Program(training.make_run(group.spec), 2)
    own = program.pad(grid.lanes_of(group, list(group.settings[:2]), []))
    initial = lab.initial_weights(group.spec, made)
    seeds = jnp.asarray(made.seeds)
    now = training.epoch_of(jnp.int32(0), seeds, group.spec.num_rows)
    shared = program.share((table, initial, now))
    state = program.pad(sweep.empty_progress(group.spec, own, *shared[:2]))
    progress, finite = program((own, state), shared)
    assert np.asarray(finite).all()
    assert float(progress.record.loss[0, 0]) != 0  # a loss with log dCor in it may be negative


GAFM = load(next(path for path in CONFIGS if path.stem == "gafm_table2_spambase"))


@pytest.mark.parametrize("variant", ["", *GAFM.VARIANTS])
def test_gafm_s_table_and_its_variants_plan_on_data_of_spambase_s_shape(variant, monkeypatch):
    rng = np.random.default_rng(0)
    labels = (rng.random(4601) < 0.394).astype(np.int32)
    columns = rng.exponential(size=(4601, 57)).astype(np.float32)
    made_up = core.Dataset("spambase", columns, labels, 2)
    monkeypatch.setitem(datasets.TABLE, "spambase", lambda folder: made_up)
    made = lab.prepare(GAFM.get_config(variant))
    assert all(len(group.settings) % 10 == 0 for group in made.groups)
    assert {g.spec.num_rows for g in made.groups} == {3221}
    if not variant:
        assert sum(len(group.settings) for group in made.groups) == 40
        assert [g.spec.steps_per_epoch for g in made.groups] == [4] * 4
