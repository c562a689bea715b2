"""A config's fields: their order, defaults and types, and one clear line for what a field cannot have."""

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_collections import ConfigDict

import vfljax
from tests.refusals import refused
from tests.stored_sweep import CONFIG, FIXTURE
from tests.sweeps import tiny
from vfljax.config import DEFAULT, FIELDS, FREE, changed, from_file, make, ordered, resolve
from vfljax.errors import UserError, written
from vfljax.sweep.grid import check_new


def test_an_empty_config_is_the_default():
    resolved = resolve({})
    assert resolved["grid"] == {"undefended": {}}
    assert resolved["training"]["epochs"] == DEFAULT["training"]["epochs"]
    assert all(field.meaning for field in FIELDS.values())


def test_listing_order_is_kept_at_every_level():
    config = ordered({"grid": {"b": {"noise": {"scale": 1}, "kdk": {}}, "a": {}}})
    assert list(config.grid) == ["b", "a"]
    assert list(config.grid["b"]) == ["noise", "kdk"]
    assert list(resolve(config)["grid"]["b"]) == ["noise", "kdk"]


# what is no field, and what contradicts another field
BAD = [
    ({"training.LR": 3}, "training.LR", "did you mean 'training.learning_rate'? choose"),
    ({"batch_size": 3}, "'batch_size'", "'training.batch_size' or 'teacher.batch_size'? choose"),
    ({"trainning": {"epochs": 3}}, "'trainning'", "'training'"),
    ({"model.embedding": 3}, "'model.embedding': choose", "model.cut"),
    ({"data": 3}, "config.data=3", "group of fields"),
    ({5: 3}, "unknown config field '5'", "choose from name"),
    ({"reproduces": {"dataset": "IMDB"}}, "names no table", "'gafm/2'"),
    ({"reproduces": {"table": "x", "seed": 3}}, "reproduces.seed", "reproduces.dataset"),
    ({"reproduces": {"table": "x", "arms": {"kdkk": "y"}}}, "'kdkk'", "did you mean 'kdk'"),
    ({"federations": ("split", "split")}, "'split' twice", "leave one"),
    ({"federations": ("malicious", "no_split")}, "('malicious', 'no_split')", "add 'split'"),
    (
        {"federations": ("split", "malicious"), "malicious.parties": ()},
        "without a malicious party",
        "((0,),)",
    ),
    ({"malicious.parties": ((0, 0),)}, "names [0, 0]", "name each party once"),
    ({"malicious.rule": ("intended", "released")}, "malicious.rule ['intended", "choose from"),
    ({"attackers": ()}, "config.attackers=()", "((0,),)"),
    ({"attackers": ((0,), ())}, "config.attackers names []", "0..0"),
    ({"attackers": ((1,),)}, "config.attackers names [1]", "0..0"),
    ({"attackers": ((0,), (0,))}, "config.attackers names (0,)", "leave one"),
    ({"training.learning_rate": ()}, "learning_rate=()", "give"),
    ({"training.decay": (0, 0.0)}, "training.decay names 0.0", "leave one"),
]


@pytest.mark.parametrize(("changes", "value", "remedy"), BAD, ids=[str(b[0])[:60] for b in BAD])
def test_what_is_no_field_or_contradicts_another_is_one_line(changes, value, remedy):
    with refused(value, remedy):
        make(changes if 5 in changes else tiny(**changes))


# (field, value, a word of what it may be)
WRONG = [
    ("seeds", 10**5000, "a whole number"),
    ("seeds", (0, 1), "a whole number"),
    ("seeds", 0, "from 1 to"),
    ("data.train", -0.5, "from 0 to"),
    ("data.test", math.nan, "from 0"),
    ("data.scaling", "standart", "did you mean 'standard'"),
    ("data.permute_labels", 1.5, "from 0 to 1"),
    ("parties.rule", "columns", "contiguous"),
    ("parties.shares", (1.0,), "one each"),
    ("parties.shares", (0.0, 1.0), "a number above 0"),
    ("parties.names", ("bank",), "one for each of the 1 passive parties"),
    ("goal.max_leak", 60, "from 0 to 1"),
    ("model.cut", 2**31, "to 2,147,483,647"),
    ("model.weights", "pytorch", "did you mean 'torch'"),
    ("model.top_hidden", (2.5,), "a whole number"),
    ("training.epochs", 2.5, "a whole number"),
    ("training.batch_size", 0, "from 1 to"),
    ("training.learning_rate", (0.1, -0.1), "from 0"),
    ("training.class_weights", (1.0, True), "a number"),
    ("training.record", (0, 3), "choose 0 to 2"),
    ("training.drop_last", 1, "True or False"),
    ("teacher.temperature", 0.0, "from 1e-06"),
    ("execution.shard_seconds", math.nan, "from 0.001"),
    ("federations", ("split", 1), "one of malicious, no_split, split"),
]


@pytest.mark.parametrize(("field", "value", "remedy"), WRONG, ids=[w[0] for w in WRONG])
def test_a_bad_value_is_one_line_with_its_field_the_value_and_what_it_may_be(field, value, remedy):
    with refused(f"config.{field}", written(value), remedy):
        make(tiny(**{field: value}))


# what the tables of defenses, attacks, data sets and networks rule out
LATER = [
    ({"grid": {}}, "config.grid is empty", "undefended"),
    ({"grid": ["noise"]}, "config.grid=('noise',)", "group"),
    ({"grid": {"a": "noise"}}, "config.grid.a='noise'", "{defense"),
    ({"grid": {"a": {"nois": {"scale": 1}}}}, "'nois'", "did you mean 'noise'"),
    ({"grid": {"a": {"noise": {"scael": 1}}}}, "'scael'", "'scale'"),
    ({"grid": {"a": {"noise": {}}}}, "gives no scale", "name its value"),
    ({"grid": {"a": {"noise": {"scale": ()}}}}, "scale is empty", "at least one"),
    ({"grid": {"a": {"noise": {"scale": -1.0}}}}, "-1.0", "from 0 to"),
    ({"grid": {"a": {"noise": {"scale": math.nan}}}}, "nan", "give"),
    ({"grid": {"a": {"kdk": {"epsilon": 0.5, "k": 1.5}}}}, "1.5", "whole number"),
    ({"grid": {"a": {"mine:x": {}}}}, "mine:x", "--plugin=mine"),
    ({"attacks": {"mine:x": {}}}, "mine:x", "--plugin=mine"),
    ({"attacks": {"pasive": {}}}, "'pasive'", "did you mean 'passive'"),
    ({"attacks": {"direct": {"rul": "x"}}}, "'rul'", "'rule'"),
    ({"attacks": {"direct": {"rule": "any"}}}, "rule='any'", "most_negative"),
    ({"attacks": {"passive": {"known": -5}}}, "known=-5", "from 0 to"),
    ({"attacks": {"passive": {"known": 1000000}}}, "1000000", "up to all"),
    ({"data": {"name": "mnist"}}, "'mnist'", "choose"),
    ({"data": {"train": 5000}}, "[5000, ", "at most all rows"),
    (
        {"data": {"name": "breast_cancer"}, "parties": {"columns": (("column 30",), ("*",))}},
        "'column 30'",
        "'column 3'",
    ),
    ({"parties": {"columns": (("a",), ("*",))}}, "digits", "shares"),
    ({"training": {"optimizer": "adamw"}}, "'adamw'", "'adam'"),
    ({"model": {"bottom": "resnet9"}}, "'resnet9'", "'resnet"),
]


@pytest.mark.parametrize(("config", "value", "remedy"), LATER, ids=[str(b[0])[:60] for b in LATER])
def test_a_config_that_the_tables_rule_out_is_one_line_and_nothing_is_written(
    config, value, remedy, tmp_path
):
    with refused(value, remedy):
        vfljax.run_sweep(ConfigDict(config), tmp_path / "w", say=print)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("data.test", "1", 1),  # rows
        ("data.test", "1.0", 1.0),  # a share
        ("training.learning_rate", "1", 1.0),
        ("training.learning_rate", "(.1, .2)", (0.1, 0.2)),
        ("training.drop_last", "True", True),
        ("name", "3", "3"),
        ("notes", "one", ("one",)),
        ("attackers", "((0,),)", ((0,),)),
    ],
)
def test_a_flag_is_read_as_the_type_of_its_field(field, text, value, tmp_path):
    file = tmp_path / "c.py"
    file.write_text("def get_config():\n    return {}\n")
    made = make(from_file(str(file), {field: text}))
    for name in field.split("."):
        made = getattr(made, name)
    assert made == value
    assert type(made) is type(value)


def test_a_file_that_is_no_config_is_refused(tmp_path):
    (tmp_path / "mine.py").write_text("row = 1\n")
    for source in (f"{tmp_path}/mine.py", f"{tmp_path}/mine.py:small"):
        with refused("mine.py has no function get_config(): give the file of a config"):
            from_file(source)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=50)
@given(field=st.sampled_from([*DEFAULT, *FIELDS]), value=json_values)
def test_any_value_of_any_field_is_read_or_refused_in_one_line(field, value):
    try:
        assert field.split(".")[0] in resolve(tiny(**{field: value}))
    except UserError as error:
        assert len(str(error).splitlines()) == 1


def test_what_is_stored_of_a_config_is_the_json_that_stored_sweeps_have():
    stored = json.loads((FIXTURE / "sweep.json").read_text())["config"]
    for config in (CONFIG, stored):
        made = make(config).stored
        # a field that is newer than the stored sweep has its default
        newer = {n: {**made[n], **of} for n, of in stored.items() if isinstance(of, dict)}
        assert {name: made[name] for name in stored} == {**stored, **newer}
        assert list(made) == list(DEFAULT)
        assert make(json.loads(json.dumps(made))).stored == made
    assert set(FREE) <= {*DEFAULT, *FIELDS}


def test_records_are_frozen_and_hold_tuples():
    config = make(CONFIG)
    assert config.numbers["learning_rate"] == (0.05,)  # an axis, also of one value
    assert config.model.hidden == (8,)
    with pytest.raises(AttributeError):
        setattr(config.training, "epochs", 4)  # noqa: B010
    with refused("config.training.record=(0, -1, 7)", "choose 0 to 2"):
        msgspec.structs.replace(config.training, record=(0, -1, 7))


@pytest.mark.parametrize(
    ("record", "epochs"), [((0, -1), [0, 2]), ((), [2]), ((2, -1, 1, 2), [1, 2])]
)
def test_the_last_epoch_is_always_recorded_and_none_twice(record, epochs):
    assert make(tiny(**{"training.record": record})).training.recorded_epochs == epochs


def test_fields_are_changed_by_their_path_and_everything_else_is_kept():
    config = make(tiny(), beyond_limits=True)
    moved = changed(config, {"data.dir": "/elsewhere", "seeds": 5})
    assert (moved.data.dir, moved.seeds, moved.beyond_limits) == ("/elsewhere", 5, True)
    assert moved.stored == resolve(tiny(**{"data.dir": "/elsewhere", "seeds": 5}))
    assert config.stored == resolve(tiny())  # itself it stays as it was
    with refused("config.seeds=0"):
        changed(config, {"seeds": 0})


def test_attacks_asked_for_by_name_have_the_config_s_options_where_it_names_them():
    config = make(tiny()).with_attacks(["probe", "passive"])
    assert config.attacks == {"probe": {}, "passive": {"known": 20, "steps": 20, "ema": 0.9}}
    assert config.with_attacks({"probe": {"known": (1, 2)}}).attacks["probe"]["known"] == [1, 2]


@pytest.mark.parametrize(
    ("field", "text"),
    [("name", "\x1b[2J"), ("name", " "), ("name", 201 * "a"), ("notes", "a\0b"), ("grid", "a\nb")],
)
def test_a_text_that_a_report_could_not_show_is_refused(field, text):
    value = {"grid": {text: {}}, "notes": (text,)}.get(field, text)
    with refused(f"config.{field}="):
        check_new(make(tiny(**{field: value})))


def test_names_of_any_script_and_notes_of_several_lines_are_fine():
    names = {name: {} for name in ("ε ≤ 0.1", "60 % (β)", "混合", "a/b $x$")}
    check_new(make(tiny(grid=names, notes=("one\n\ttwo",))))
