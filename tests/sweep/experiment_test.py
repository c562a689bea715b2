"""A config parsed: frozen records, which refuse bad values in one line before any data is read."""

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.config_test import json_values
from tests.refusals import line_of, refused
from tests.stored_sweep import CONFIG, FIXTURE
from tests.sweeps import tiny
from vfljax import datasets
from vfljax.config import DEFAULT, FREE, resolve
from vfljax.errors import UserError
from vfljax.sweep.experiment import changed, parse, with_knob
from vfljax.sweep.methods import combinations
from vfljax.sweep.records import written
from vfljax.types import DefenseSpec

# what config_misuses_test refuses by the public function is not listed again
BAD = [
    ({"federations": ("split", 1)}, "federations 1", "choose from split, malicious, no_split"),
    ({"federations": ("split", "split")}, "'split' twice", "leave one"),
    ({"federations": ("malicious", "no_split")}, "['malicious', 'no_split']", "add 'split'"),
    ({"federations": ("split", "malicious"), "malicious.parties": ()}, "names nobody", "((0,),)"),
    (
        {"federations": ("no_split",), "grid": {"x": {"gafm": {"delta": 0.1}}}},
        "config.grid.x needs a top model",
        "add 'split'",
    ),
    ({"grid": {"x": {"max_norm": {"scale": 1}}}}, "unknown knob of max_norm", "scale"),
    ({"grid": {"x": {"noise": {"scale": 10**400}}}}, "noise.scale", "too large"),
    ({"model.top_hidden": (0,)}, "config.model.top_hidden=(0,)", "at least 1"),
    ({"model.top_hidden": (-2,)}, "config.model.top_hidden=(-2,)", "at least 1"),
    ({"model.top_hidden": ("a",)}, "config.model.top_hidden=('a',)", "whole numbers"),
    ({"model.top_hidden": (2.5,)}, "config.model.top_hidden=(2.5,)", "whole numbers"),
    ({"grid": {"x": {"model": {"top_hidden": (0,)}}}}, "grid.x.model.top_hidden=(0,)", "at least"),
    ({"grid": {"x": {"model": {"tops": "mlp"}}}}, "'tops'", "did you mean 'top'"),
    ({"grid": {"x": {"model": {"cut": 2}}}}, "field of config.grid.x.model 'cut'", "top_hidden"),
    ({"grid": {"x": {"model": {"top_hidden": 3}}}}, "config.grid.x.model.top_hidden=3", "tuple"),
    ({"grid": {"x": {"model": {"top": "mlpp"}}}}, "mlpp", "did you mean 'mlp'"),
    ({"grid": {"x": {"model": "mlp"}}}, "config.grid.x.model='mlp'", "group of fields"),
    ({"attackers": ()}, "attackers=()", "names nobody"),
]


@pytest.mark.parametrize(("changes", "value", "remedy"), BAD, ids=[str(b[0])[:60] for b in BAD])
def test_bad_input_is_one_line_with_the_value_and_the_remedy(changes, value, remedy):
    with refused(value, remedy):
        parse(tiny(**changes))


# (record, field, value, remedy)
RECORDS = [
    ("data", "train", -0.5, "at least 0"),
    ("data", "validation", -1, "at least 0"),
    ("data", "test", math.nan, "at least 0"),
    ("data", "resident_gb", -1.0, "at least 0"),
    ("data", "scaling", "standart", "did you mean 'standard'"),
    ("data", "permute_labels", 1.5, "from 0 (no label is permuted) to 1"),
    ("data", "permute_labels", 2, "from 0 (no label is permuted) to 1"),
    ("data", "permute_labels", math.nan, "from 0 (no label is permuted) to 1"),
    ("data", "scaling_rows", "tain", "did you mean 'train'"),
    ("parties", "passive", 0, "at least 1"),
    ("parties", "rule", "columns", "contiguous, rows, grid"),
    ("parties", "shares", (1.0,), "one each"),
    ("parties", "shares", ("a", 1.0), "must be numbers"),
    ("parties", "shares", (0.0, 1.0), "above 0"),
    (
        "parties",
        "names",
        ("bank",),
        "one for each of the 1 passive parties and, last, one for the label",
    ),
    ("parties", "names", ("bank", "bank"), "alike"),
    ("goal", "max_leak", 1.5, "from 0 to 1"),
    ("goal", "max_cost", -0.1, "from 0 to 1"),
    ("goal", "keep_gain", 10**400, "from 0 to 1"),
    ("model", "cut", 0, "at least 1"),
    ("model", "top", "heat", "did you mean 'head'"),
    ("model", "weights", "pytorch", "did you mean 'torch'"),
    ("model", "aggregation", "means", "did you mean 'mean'"),
    ("training", "epochs", 0, "at least 1"),
    ("training", "batch_size", -32, "at least 1"),
    ("training", "record_rows", -1, "at least 0"),
    ("training", "learning_rate", (0.1, -0.1), "at least 0"),
    ("training", "momentum", (-0.9,), "at least 0"),
    ("training", "weight_decay", (math.nan,), "at least 0"),
    ("training", "decay", (-1.0,), "at least 0"),
    ("training", "scope", "active", "'passive'"),
    ("training", "milestones", (10, -1), "0 or later"),
    ("training", "milestones", (math.inf,), "0 or later"),
    ("training", "milestones", ("a",), "give numbers"),
    ("training", "class_weights", (1.0, True), "positive"),
    ("training", "class_weights", (0.0,) * 10, "positive"),
    ("training", "record", (-2,), "-1 for the last"),
    ("training", "record", (0, 3), "choose 0 to 2"),
    ("training", "record", (True,), "-1 for the last"),
    ("training", "record", (0.5,), "-1 for the last"),
    ("training", "evaluation", "last", "final, released"),
    ("training", "optimizer", "adamm", "did you mean 'adam'"),
    ("malicious", "gamma", (1.0, -1.0), "at least 0"),
    ("malicious", "rule", "release", "did you mean 'released'"),
    ("teacher", "epochs", 0, "at least 1"),
    ("teacher", "batch_size", 0, "at least 1"),
    ("teacher", "learning_rate", -1e-3, "at least 0"),
    ("teacher", "temperature", 0.0, "at least 1e-06"),
    ("execution", "width", -1, "at least 0"),
    ("execution", "shard_seconds", 0.0, "at least 0.001"),
    ("execution", "shard_seconds", math.inf, "at most 1e+30"),
    ("execution", "shard_seconds", math.nan, "at least 0.001"),
    ("execution", "width", 2**31, "at most 2,147,483,647"),
    ("data", "train", math.inf, "at most 1e+30"),
    ("model", "cut", 2**31, "at most 2,147,483,647"),
    ("training", "batch_size", 2**31, "at most 2,147,483,647"),
    ("training", "learning_rate", (math.inf,), "at most 1e+30"),
    ("training", "weight_decay", (10**400,), "at most 2,147,483,647"),
    ("training", "milestones", (10**400,), "0 or later"),
    ("malicious", "gamma", (math.inf,), "at most 1e+30"),
    ("teacher", "learning_rate", math.inf, "at most 1e+30"),
    ("teacher", "temperature", math.inf, "at most 1e+30"),
]


@pytest.mark.parametrize(("group", "field", "value", "remedy"), RECORDS)
def test_a_record_refuses_a_bad_value_with_its_field_and_the_remedy(group, field, value, remedy):
    record = getattr(parse(tiny()), group)
    line = line_of(lambda: dataclasses.replace(record, **{field: value}))
    assert f"config.{group}.{field}" in line
    assert remedy in line
    wrong = [value] if not isinstance(value, tuple) else value
    assert any(str(item) in line or written(item) in line for item in wrong)
    assert line_of(lambda: parse(tiny(**{f"{group}.{field}": value}))) == line


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"parties.shares": (1.0, 1.0), "parties.columns": (("a",), ("*",))},
            ("config.parties.shares=(1.0, 1.0)", "leave one of the two empty"),
        ),
        ({"malicious.parties": ((0, 0),)}, ("config.malicious.parties names [0, 0]", "twice")),
        ({"malicious.parties": (("a",),)}, ("names ['a']", "0..0", "such as ((0,),)")),
        ({"attackers": ((0,), ())}, ("config.attackers names []", "0..0")),
        ({"attackers": ((1,),)}, ("config.attackers names [1]", "0..0")),
        ({"reproduces": "gafm/2"}, ("config.reproduces='gafm/2'", "for example {'table'")),
        ({"reproduces": {"dataset": "IMDB"}}, ("names no table", "'gafm/2'")),
        ({"reproduces": {"table": 2}}, ("config.reproduces.table=2", "no text")),
        (
            {"reproduces": {"table": "kdk/figure6", "scale": "half"}},
            ("config.reproduces.scale", "half", "reduced"),
        ),
        ({"reproduces": {"table": "kdk/figure6", "arms": 3}}, ("config.reproduces.arms=3",)),
        ({"reproduces": {"table": "kdk/figure6", "seed": 3}}, ("reproduces.seed", "dataset")),
        (
            {"reproduces": {"table": "kdk/figure6", "arms": {"kdkk": "kdk"}}},
            ("method of config.reproduces", "did you mean 'kdk'"),
        ),
    ],
)
def test_values_that_contradict_each_other_are_one_line(changes, words):
    with refused(*words):
        parse(tiny(**changes))


def leaves(group, path="") -> list[str]:
    """Every field by its dotted path."""
    out = []
    for name, value in group.items():
        inner = isinstance(value, dict) and f"{path}{name}" not in FREE
        out += leaves(value, f"{path}{name}.") if inner else [f"{path}{name}"]
    return out


@settings(deadline=None)
@given(field=st.sampled_from(leaves(DEFAULT)), value=json_values)
def test_any_value_of_any_field_is_parsed_or_refused_in_one_line(field, value):
    try:
        parse(tiny(**{field: value}))
    except UserError as error:
        assert len(str(error).splitlines()) == 1


def test_nothing_is_read_while_a_config_is_parsed(monkeypatch):
    def load(*arguments):
        raise AssertionError(f"data was read: {arguments}")

    monkeypatch.setattr(datasets, "load", load)
    monkeypatch.setattr(datasets, "TABLE", dict.fromkeys(datasets.TABLE, load))
    experiment = parse(tiny(**{"data.name": "criteo", "data.dir": "/nowhere"}))
    assert (experiment.data.name, experiment.data.dir) == ("criteo", "/nowhere")


def test_what_is_stored_of_an_experiment_is_the_json_that_stored_sweeps_have():
    stored = json.loads((FIXTURE / "sweep.json").read_text())["config"]
    # as text: the order of fields counts too
    text = json.dumps({name: stored[name] for name in DEFAULT})
    for config in (CONFIG, stored):
        assert json.dumps(parse(config).stored) == text


def test_features_may_be_resident_whatever_their_size():
    assert parse(tiny(**{"data.resident_gb": math.inf})).data.resident_gb == math.inf


def test_records_are_frozen_and_hold_tuples():
    experiment = parse(CONFIG)
    assert experiment.training.learning_rate == (0.05,)  # an axis, also of one value
    assert experiment.model.hidden == (8,)
    assert experiment.malicious.parties == ((0,),)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(experiment.training, "epochs", 4)  # noqa: B010


def test_the_points_of_an_arm_are_every_combination_with_defaults_filled_in():
    noise = {"scale": (0.1, 0.2), "law": ("laplace", "gaussian")}
    (method,) = parse(tiny(grid={"a": {"noise": noise}})).methods
    assert [(p.knobs["noise"]["scale"], p.options["noise"]["law"]) for p in method.chains] == [
        (0.1, "laplace"),
        (0.1, "gaussian"),
        (0.2, "laplace"),
        (0.2, "gaussian"),
    ]
    assert method.chains[1].specs == (DefenseSpec("noise", (("law", "gaussian"),)),)
    assert combinations({"a": 1, "b": (2, 3)}, "attacks.x") == [{"a": 1, "b": 2}, {"a": 1, "b": 3}]


def test_an_arm_has_the_sweep_s_model_but_for_the_top_that_it_names():
    methods = {"plain": {}, "wide": {"model": {"top": "mlp", "top_hidden": (8,)}}}
    plain, wide = parse(tiny(grid=methods)).methods
    experiment = parse(tiny(grid=methods))
    assert plain.model == experiment.model
    assert wide.model == dataclasses.replace(experiment.model, top="mlp", top_hidden=(8,))
    assert wide.top_columns() == {"model.top": "mlp", "model.top_hidden": "8"}


@pytest.mark.parametrize(
    ("record", "epochs"), [((0, -1), [0, 2]), ((), [2]), ((1,), [1, 2]), ((2, -1, 2), [2])]
)
def test_the_last_epoch_is_always_recorded_and_none_twice(record, epochs):
    assert parse(tiny(**{"training.record": record})).training.recorded_epochs == epochs


def test_fields_are_changed_by_their_path_and_everything_else_is_kept():
    experiment = parse(tiny())
    moved = changed(experiment, {"data.dir": "/elsewhere", "seeds": 5})
    assert (moved.data.dir, moved.seeds) == ("/elsewhere", 5)
    assert moved.stored == resolve(tiny(**{"data.dir": "/elsewhere", "seeds": 5}))
    assert experiment.stored == resolve(tiny())  # itself it stays as it was
    with pytest.raises(UserError, match="config.seeds=0"):
        changed(experiment, {"seeds": 0})


def test_a_knob_is_set_in_every_arm_that_has_the_defense():
    methods = {"a": {"noise": {"scale": (1.0, 2.0)}}, "b": {"noise": {"scale": 3.0}}, "c": {}}
    experiment = with_knob(parse(tiny(grid=methods)), "noise", "scale", 0.5)
    knobs = [[point.knobs for point in method.chains] for method in experiment.methods]
    assert knobs == [[{"noise": {"scale": 0.5}}], [{"noise": {"scale": 0.5}}], [{}]]


def test_attacks_asked_for_by_name_have_the_config_s_options_where_it_names_them():
    experiment = parse(tiny()).with_attacks(["probe", "passive"])
    assert list(experiment.attacks) == ["probe", "passive"]
    assert experiment.attacks["probe"] == {}
    assert experiment.attacks["passive"] == {"known": 20, "steps": 20, "ema": 0.9}
    with pytest.raises(UserError, match="unknown attack 'pasive'.*did you mean 'passive'"):
        parse(tiny()).with_attacks(["pasive"])
