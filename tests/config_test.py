"""A config's fields: their order, defaults and types, and one clear line for what a field cannot have."""

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


# what is no field, and what no type says
BAD = [
    ({"training.epoch": 3}, "training.epoch", "did you mean 'training.epochs'? choose"),
    ({"training.LR": 3}, "training.LR", "did you mean 'training.learning_rate'? choose"),
    ({"training.batch-size": 3}, "batch-size", "did you mean 'training.batch_size'? choose"),
    ({"batch_size": 3}, "'batch_size'", "'training.batch_size' or 'teacher.batch_size'? choose"),
    ({"model.seed": 3}, "'model.seed'", "did you mean 'seeds'? choose from model.bottom,"),
    ({"model.embedding": 3}, "'model.embedding': choose", "model.cut"),
    ({"data": 3}, "config.data=3", "group of fields"),
    ({5: 3}, "unknown config field '5'", "choose from name"),
    ({"reproduces": "gafm/2"}, "config.reproduces='gafm/2'", "group of fields"),
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
    ({"malicious.parties": (("a",),)}, "config.malicious.parties=(['a'],)", "a whole number"),
    ({"malicious.rule": ("intended", "released")}, "malicious.rule ['intended", "choose from"),
    ({"attackers": ()}, "config.attackers=()", "((0,),)"),
    ({"attackers": ((0,), ())}, "config.attackers names []", "0..0"),
    ({"attackers": ((1,),)}, "config.attackers names [1]", "0..0"),
    ({"attackers": ((0,), (0,))}, "config.attackers names (0,)", "leave one"),
    (
        {"malicious.parties": ((0, 0),)},
        "config.malicious.parties names [0, 0]",
        "name each party once",
    ),
    ({"training.learning_rate": (0.1, 0.1)}, "training.learning_rate names 0.1", "leave one"),
    ({"training.decay": (0, 0.0)}, "training.decay names 0.0", "leave one"),
]


@pytest.mark.parametrize(("changes", "value", "remedy"), BAD, ids=[str(b[0])[:60] for b in BAD])
def test_what_is_no_field_or_contradicts_another_is_one_line(changes, value, remedy):
    with refused(value, remedy):
        make(changes if 5 in changes else tiny(**changes))


# (field, value, a word of what it may be)
WRONG = [
    ("seeds", "three", "a whole number"),
    ("seeds", 10**5000, "a whole number"),
    ("data.train", -0.5, "from 0 to"),
    ("data.test", math.nan, "from 0"),
    ("data.resident_gb", -1.0, "at least 0"),
    ("data.scaling", "standart", "did you mean 'standard'"),
    ("data.permute_labels", 1.5, "from 0 to 1"),
    ("data.permute_labels", math.nan, "from 0 to 1"),
    ("parties.rule", "columns", "contiguous"),
    ("parties.shares", (1.0,), "one each"),
    ("parties.shares", ("a", 1.0), "a number above 0"),
    ("parties.shares", (0.0, 1.0), "a number above 0"),
    ("parties.names", ("bank",), "one for each of the 1 passive parties"),
    ("goal.keep_gain", 10**400, "from 0 to 1"),
    ("model.cut", 2**31, "to 2,147,483,647"),
    ("model.weights", "pytorch", "did you mean 'torch'"),
    ("model.top_hidden", (2.5,), "a whole number"),
    ("training.learning_rate", (0.1, -0.1), "from 0"),
    ("training.weight_decay", math.inf, "to 1e+30"),
    ("training.milestones", (10, -1), "from 0"),
    ("training.class_weights", (1.0, True), "a number"),
    ("training.record", (0, 3), "choose 0 to 2"),
    ("training.record", (0.5,), "a whole number"),
    ("training.drop_last", 1, "True or False"),
    ("teacher.temperature", 0.0, "from 1e-06"),
    ("execution.width", -1, "a whole number"),
    ("execution.shard_seconds", math.nan, "from 0.001"),
    ("federations", ("split", 1), "one of malicious, no_split, split"),
]


@pytest.mark.parametrize(("field", "value", "remedy"), WRONG, ids=[w[0] for w in WRONG])
def test_a_bad_value_is_one_line_with_its_field_the_value_and_what_it_may_be(field, value, remedy):
    with refused(f"config.{field}", written(value), remedy):
        make(tiny(**{field: value}))


def test_an_int_of_rows_is_a_count_and_a_float_a_share_in_files_and_flags_alike(tmp_path):
    file = tmp_path / "c.py"
    file.write_text("def get_config():\n    return {'data': {'test': 1, 'train': 1.0}}\n")
    for text, value in (("1", 1), ("1.0", 1.0), ("0.5", 0.5)):
        of_flag = make(from_file(str(file), {"data.test": text})).data.test
        assert (type(of_flag), of_flag) == (type(value), value)
    data = make(from_file(str(file))).data
    assert (type(data.test), type(data.train)) == (int, float)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("training.epochs", "7", 7),
        ("training.learning_rate", "1", 1.0),
        ("training.learning_rate", "(.1, .2)", (0.1, 0.2)),
        ("training.drop_last", "True", True),
        ("training.scope", "passive", "passive"),
        ("name", "3", "3"),
        ("notes", "one", ("one",)),
        ("model.hidden", "8", (8,)),
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


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None)
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
        assert {name: made[name] for name in stored} == stored
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
    ("record", "epochs"), [((0, -1), [0, 2]), ((), [2]), ((1,), [1, 2]), ((2, -1, 2), [2])]
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
