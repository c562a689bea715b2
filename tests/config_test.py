"""A config file's fields: their order, their defaults, and one clear line for what is no field."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from tests.sweeps import tiny
from vfljax.config import DEFAULT, ordered, resolve
from vfljax.errors import UserError


def test_an_empty_config_is_the_default():
    resolved = resolve({})
    assert resolved["grid"] == {"undefended": {}}
    assert resolved["training"]["epochs"] == DEFAULT["training"]["epochs"]


def test_listing_order_is_kept_at_every_level():
    config = ordered({"grid": {"b": {"noise": {"scale": 1}, "kdk": {}}, "a": {}}})
    assert list(config.grid) == ["b", "a"]
    assert list(config.grid["b"]) == ["noise", "kdk"]
    assert list(resolve(config)["grid"]["b"]) == ["noise", "kdk"]


# what the fields' names and types refuse; values are refused where they are parsed
BAD = [
    ({"training.epoch": 3}, "training.epoch", "did you mean 'training.epochs'? choose"),
    ({"training.LR": 3}, "training.LR", "did you mean 'training.learning_rate'? choose"),
    ({"training.batch-size": 3}, "batch-size", "did you mean 'training.batch_size'? choose"),
    ({"batch_size": 3}, "'batch_size'", "'training.batch_size' or 'teacher.batch_size'? choose"),
    ({"model.seed": 3}, "'model.seed'", "did you mean 'seeds'? choose from model.bottom,"),
    ({"model.embedding": 3}, "'model.embedding': choose", "model.cut"),
    ({"seeds": "three"}, "config.seeds='three'", "int"),
    ({"malicious.rule": ("intended", "released")}, "malicious.rule", "type str"),
    ({"data": 3}, "config.data=3", "group of fields"),
    ({5: 3}, "unknown config field 5", "choose from name"),
]


@pytest.mark.parametrize(("changes", "value", "remedy"), BAD, ids=[str(b[0])[:60] for b in BAD])
def test_what_is_no_field_or_of_another_type_is_one_line_with_the_remedy(changes, value, remedy):
    with refused(value, remedy):
        resolve(changes if 5 in changes else tiny(**changes))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(field=st.sampled_from(sorted(DEFAULT)), value=json_values)
def test_any_value_of_any_field_resolves_or_is_refused_in_one_line(field, value):
    try:
        assert field in resolve({field: value})
    except UserError as error:
        assert field in str(error)
        assert len(str(error).splitlines()) == 1


def test_whole_numbers_of_any_length_resolve():
    assert resolve({"seeds": 10**400})["seeds"] == 10**400
