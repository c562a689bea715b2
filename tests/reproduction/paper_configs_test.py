"""The configs of the papers' tables: every run of ``configs.papers.tables`` is of what was published."""

import importlib

import numpy as np
import pytest

from analysis.reproduction import our_figures, papers
from configs.papers import gafm, sun
from configs.papers.tables import TABLES
from vfljax import datasets
from vfljax.attack_runs.jobs import layers
from vfljax.config import changed
from vfljax.datasets.core import Column, Dataset
from vfljax.datasets.options import complete
from vfljax.errors import UserError
from vfljax.sweep.grid import configurations, parse, trial_rows
from vfljax.sweep.plan import make_plan
from vfljax.sweep.variants import attack_variants
from vfljax.types import Input

RUNS = [
    (table, dataset, run)
    for table, by_dataset in TABLES.items()
    for dataset, runs in by_dataset.items()
    for run in runs
]
CONFIGS = dict.fromkeys(run.config for _, _, run in RUNS)
READS = {
    **{name: Input("image", (32, 16, 3), ()) for name in ("cifar10", "cifar100", "cinic10")},
    "yahoo": Input("text", (256,), (30522,)),
    "bhi": Input("image", (50, 50, 3), ()),
    "isic": Input("image", (84, 84), ()),
}
CLASSES = {"cifar100": 100, **dict.fromkeys(("cifar10", "cinic10", "yahoo"), 10)}  # else two
AVERAGE = "average of norm, mean, median"  # no attack by itself


def module(config):
    return importlib.import_module(f"configs.papers.{config}")


def points_of(number, experiment):
    """The points of the methods that answer a printed number."""
    reproduces, knobs = experiment.reproduces, our_figures.KNOBS.get(number.defense, {})
    points = []
    for point in trial_rows(configurations(experiment)):
        method = point["method"]
        facts = {**our_figures.NEUTRAL.get(number.defense, {}), **reproduces.setting}
        facts |= reproduces.setting.get(method, {})
        if reproduces.arms.get(method) == number.defense:
            ours = {n: point.get(knobs[n]) if n in knobs else facts.get(n) for n in number.setting}
            points += [point] * (ours == number.setting)
    return points


def unanswered(number, run):
    """Whether a run cannot have what a number of its table is of."""
    impossible = (number.table, number.dataset, number.defense) == ("kdk/5", "Criteo", "kdk")
    if impossible:  # k = 3, and there are two classes
        return True
    if number.table != "gafm/D.6":
        return False
    return (number.setting["sampling_ratio"] < 1) != (run.rule == "subset")


@pytest.mark.parametrize("config", CONFIGS)
def test_every_run_is_of_its_table_and_answers_every_printed_number_at_one_point(config):
    for table, dataset, run in (each for each in RUNS if each[2].config == config):
        experiment = parse(module(config).get_config(run.variant))
        reproduces, data = experiment.reproduces, experiment.data
        assert (reproduces.table, reproduces.dataset) == (table, dataset)
        small = next((word for word in ("sample", "reduced") if word in run.variant), "")
        if table.startswith("gafm/"):  # reduced in rows alone, which is a sample of them
            small = "sample" * bool(small)
        assert reproduces.scale == (small or "full")
        changes = {*run.rule.split("-")} - {"", "sample", "reduced", "subset"}
        assert reproduces.variant == "-".join(changes)
        printed = papers.numbers_of(table, dataset)
        if table.startswith("sun/"):
            assert experiment.seeds == 5
            assert (data.options["rows"] > 0) == (small == "sample")
            ratios = {n.setting["positive_ratio"] for n in printed if "positive_ratio" in n.setting}
            assert ratios <= {data.options.get("positive_ratio")}
        if run.rule not in ("", "subset"):
            continue
        reads = READS.get(data.name, Input("table", (4096,), ()))
        variants = attack_variants(experiment, CLASSES.get(data.name, 2), reads)
        labels = {variant.label for variant in variants}
        for number in printed:
            assert len(points_of(number, experiment)) == (not unanswered(number, run)), number
            if number.attack not in ("", AVERAGE):
                assert reproduces.attacks.get(number.attack, number.attack) in labels


# the variants of the config left out are in tests/configs_test.py
@pytest.mark.parametrize("config", [c for c in CONFIGS if c != "gafm_table2_spambase"])
def test_every_variant_that_is_offered_has_the_defenses_of_its_table(config):
    assert f"python -m launch.sweep --config=configs/papers/{config}.py" in module(config).__doc__
    with pytest.raises(UserError, match="unknown variant.*'x'") as error:
        module(config).get_config("x")
    names = str(error.value).split("choose from ")[1].removesuffix(".").split(", ")
    for variant in names:
        experiment = parse(module(config).get_config(variant))
        reproduces = experiment.reproduces
        assert (reproduces.scale != "full") == any(x in variant for x in ("reduced", "sample"))
        printed = {n.defense for n in papers.numbers_of(reproduces.table, reproduces.dataset)}
        ours = set(reproduces.arms.values())
        if reproduces.variant in gafm.RELEASED.get(variant.partition("-")[0], ()):
            assert ours < printed
        else:
            assert printed <= ours
    default = module(config).get_config()
    published = [run.variant for _, _, run in RUNS if run.config == config and not run.rule]
    settings = [module(config).get_config(variant) for variant in published]
    for setting in settings:
        setting["name"] = default["name"]
    assert default in settings


def test_every_table_of_the_papers_has_runs_of_different_names_the_published_one_first():
    absent = set(papers.tables()) - set(TABLES)
    # statements about other tables, weighed as claims; and a network that no config can have
    assert absent == {"kdk/text", "li/isic"}
    for table, by_dataset in TABLES.items():
        if not table.endswith("/text"):
            assert set(papers.tables()[table]) <= set(by_dataset), table
        for runs in by_dataset.values():
            rules = [run.rule for run in runs]
            assert rules[0] == ""
            assert len(set(rules)) == len(rules), runs
    names = [parse(module(c).get_config(v)).name for c, v in {run[:2] for _, _, run in RUNS}]
    assert len(set(names)) == len(names)


def small(rows):
    """A function that loads so many rows of a set's kind and shape."""

    def load(name, folder, options):
        del folder
        options = complete(name, datasets.TABLE[name], options)
        rng = np.random.default_rng(0)
        labels = np.arange(rows, dtype=np.int32) % 2
        if options.get("form") == "hashed":
            assert all(options[name] for name in ("crosses", "counts", "balanced"))
            return Dataset(name, rng.integers(0, 3, (rows, 64), np.uint8), labels, 2)
        columns = tuple(Column(f"I{j}") for j in range(57))
        features = rng.integers(5, size=(rows, len(columns))).astype(np.float32)
        return Dataset(name, features, labels, 2, columns=columns)

    return load


SUN = {"training.batch_size": 128, "training.record_rows": 0}


@pytest.mark.parametrize(
    ("config", "variant", "rows", "fields", "trials"),
    [
        ("gafm_2", "spambase", 2400, {}, 40),
        ("sun_2", "avazu-sample", 400, SUN, 10),
        ("sun_figure7", "criteo-sample", 400, SUN, 40),
    ],
)
def test_its_programs_can_be_made(config, variant, rows, fields, trials, monkeypatch):
    experiment = changed(parse(module(config).get_config(variant)), fields)
    monkeypatch.setattr(datasets, "load", small(rows))
    plan = make_plan(experiment)
    assert sum(len(group.trials) for group in plan.groups) == trials
    if config.startswith("sun_"):
        names = set(layers(plan))
        assert set(sun.PASSIVE_LAYERS) <= names
        assert config != "sun_figure7" or set(sun.LAYERS) == names
    assert sun.LAYERS[:5] == sun.PASSIVE_LAYERS
