"""The configs of KDk's tables and Fu et al.'s: every variant parses, and every printed number has one point."""

import importlib

import numpy as np
import pytest

from configs.papers import kdk
from vfljax import datasets, papers
from vfljax.datasets.core import Dataset
from vfljax.errors import UserError
from vfljax.papers.reproduction import KNOBS
from vfljax.sweep.attack_variants import attack_variants
from vfljax.sweep.experiment import changed, parse
from vfljax.sweep.plan import make_plan
from vfljax.types import Input

TABLES = {
    **{f"kdk/{n}": f"kdk_{n}" for n in range(4, 10)},
    "kdk/figure6": "kdk_figure6",
    "kdk/figure7": "kdk_figure7",
    "fu/attacks": "fu_attacks",
}
READS = {
    "cifar10": Input("image", (32, 16, 3), ()),
    "yahoo": Input("text", (256,), (30522,)),
    "criteo": Input("table", (4096,), ()),
    "bhi": Input("image", (50, 50, 3), ()),
}
IMPOSSIBLE = "kdk/5", "Criteo", "kdk"  # printed with k = 3, and there are two classes


def module(table):
    return importlib.import_module(f"configs.papers.{TABLES[table]}")


def experiments(table):
    """The parsed experiment of every variant of a table, by data set and rule."""
    offered = module(table).VARIANTS
    variants = {(name, rule): name for name, rules in offered.items() for rule in ("", *rules)}
    return {
        (name, rule): parse(module(table).get_config(f"{name}-{rule}" if rule else name))
        for name, rule in variants
    }


def named(experiment):
    """The table that it is a run of."""
    assert experiment.reproduces is not None
    return experiment.reproduces


def points_of(number, experiment):
    """The points of the arms that answer a printed number."""
    knobs, arms = KNOBS[number.defense], named(experiment).arms
    facts, out = named(experiment).setting, []
    for arm in experiment.methods:
        for point in arm.chains:
            values = {f"{d}.{k}": v for d, ks in point.knobs.items() for k, v in ks.items()}
            ours = {n: values.get(knobs[n], facts.get(n)) for n in number.setting if n in knobs}
            ours |= {n: facts.get(n) for n in number.setting if n not in knobs}
            if arms.get(arm.name) == number.defense and ours == number.setting:
                out.append(point)
    return out


@pytest.mark.parametrize("table", TABLES)
def test_every_variant_parses_and_every_printed_number_has_one_point_and_one_attack(table):
    docstring = module(table).__doc__
    assert f"python -m launch.sweep --config=configs/papers/{TABLES[table]}.py" in (docstring or "")
    parsed = experiments(table)
    assert len({experiment.name for experiment in parsed.values()}) == len(parsed)
    for (name, rule), experiment in parsed.items():
        run = named(experiment)
        assert run.table == table
        assert run.scale == (rule if rule in kdk.SMALL else "full")
        assert (run.variant == rule) == (run.scale == "full")
        if rule:
            continue
        classes = 2 if name in ("criteo", "bhi") else 100 if name == "cifar100" else 10
        reads = READS.get(name, READS["cifar10"])
        labels = {form.label for form in attack_variants(experiment, classes, reads)}
        for number in papers.numbers_of(table, run.dataset):
            impossible = (table, number.dataset, number.defense) == IMPOSSIBLE
            assert len(points_of(number, experiment)) == (not impossible), number
            if number.attack:
                assert run.attacks.get(number.attack, number.attack) in labels


def test_the_configs_answer_all_numbers_of_the_tables():
    covered = {
        (table, named(experiment).dataset)
        for table in TABLES
        for experiment in experiments(table).values()
    }
    printed = {(t, d) for t in TABLES for d in papers.tables()[t]}
    assert printed <= covered


def test_a_variant_nobody_offers_is_one_line_that_names_what_there_is():
    with pytest.raises(UserError, match="unknown variant 'cifar10-reducd': did you mean") as error:
        module("kdk/4").get_config("cifar10-reducd")
    assert "criteo-sample" in str(error.value)
    assert module("kdk/9").get_config().name == "kdk_9_cinic10"


def pictures(folder, *, rows):
    del folder, rows
    pixels = np.random.default_rng(0).integers(0, 256, (120, 32, 32, 3), np.uint8)
    return Dataset(
        *("cifar10", pixels, np.arange(120) % 10, 10, "image"), test=np.arange(120) >= 80
    )


def clicks(folder, *, form, buckets, crosses, counts, balanced, rows, file):
    del folder, buckets, rows, file
    assert (form, crosses, counts, balanced) == ("hashed", True, True, True)
    columns = np.random.default_rng(0).integers(0, 3, (200, 64), np.uint8)
    return Dataset("criteo", columns, np.arange(200) % 2, 2)


SMALL = {"data.train": 60, "data.validation": 20, "data.test": 40}


@pytest.mark.parametrize(
    ("table", "variant", "fields", "count"),
    [("kdk/figure6", "cifar10-reduced", SMALL, 20), ("kdk/5", "criteo-sample", {}, 12)],
)
def test_small_variants_plan_on_data_of_the_set_s_shape(table, variant, fields, count, monkeypatch):
    monkeypatch.setitem(datasets.TABLE, "cifar10", pictures)
    monkeypatch.setitem(datasets.TABLE, "criteo", clicks)
    experiment = changed(parse(module(table).get_config(variant)), fields)
    plan = make_plan(experiment)
    assert sum(len(group.trials) for group in plan.groups) == count
