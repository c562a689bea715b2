"""Keys by name: stable between processes, ordered, and never dependent on a member."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import keys


def words(key):
    return np.asarray(jax.random.key_data(key)).tolist()


@pytest.mark.parametrize(
    ("path", "expected"),
    [(("noise",), [1747478164, 2027742425]), (("step", 7, "kdk"), [67901013, 2611328819])],
)
def test_named_folds_are_what_they_always_were(path, expected):
    """If these change, no stored run can be reproduced from its seed any more."""
    assert words(keys.fold(keys.run_key(0), *path)) == expected


def test_a_run_key_is_a_function_of_the_seed_alone_and_threefry():
    assert words(keys.run_key(5)) == words(keys.run_key(jnp.uint32(5))) == [0, 5]
    assert str(jax.random.key_impl(keys.run_key(0))) == "threefry2x32"


def test_folding_nothing_leaves_the_key():
    assert words(keys.fold(keys.run_key(3))) == words(keys.run_key(3))


def test_names_numbers_and_their_order_all_matter():
    key = keys.run_key(0)
    paths = [("a",), ("b",), ("a", "b"), ("b", "a"), ("a", 0), ("a", 1), (0,), (1,), (0, "a")]
    assert len({tuple(words(keys.fold(key, *path))) for path in paths}) == len(paths)


def test_folding_in_parts_is_folding_the_path():
    key = keys.run_key(1)
    assert words(keys.fold(keys.fold(key, "step", 3), "noise")) == words(
        keys.fold(key, "step", 3, "noise")
    )


def test_traced_and_concrete_numbers_give_the_same_key():
    traced = jax.jit(lambda seed, step: keys.fold(keys.run_key(seed), "step", step))
    assert words(traced(4, 9)) == words(keys.fold(keys.run_key(4), "step", 9))


def test_a_members_draws_equal_those_of_the_setting_alone():
    def draw(seed):
        return jax.random.normal(keys.fold(keys.run_key(seed), "noise"), (4,))

    members = jax.vmap(draw)(jnp.uint32([0, 1, 0]))
    np.testing.assert_array_equal(members[0], members[2])
    np.testing.assert_array_equal(members[1], draw(1))
    assert np.all(np.asarray(members[0]) != np.asarray(members[1]))
