"""Keys by name: stable between processes, ordered, and never dependent on a member."""

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import keys


def words(key):
    return np.asarray(jax.random.key_data(key)).tolist()


def test_keys_are_what_they_always_were():
    """If these change, no stored run can be reproduced from its seed any more."""
    assert words(keys.run_key(5)) == words(keys.run_key(jnp.uint32(5))) == [0, 5]
    assert str(jax.random.key_impl(keys.run_key(0))) == "threefry2x32"
    for path, expected in (
        ((), [0, 0]),
        (("noise",), [1747478164, 2027742425]),
        (("step", 7, "kdk"), [67901013, 2611328819]),
    ):
        assert words(keys.fold(keys.run_key(0), *path)) == expected


def test_names_numbers_and_their_order_all_matter():
    key = keys.run_key(0)
    paths = [("a",), ("b",), ("a", "b"), ("b", "a"), ("a", 0), ("a", 1), (0,), (1,), (0, "a")]
    assert len({tuple(words(keys.fold(key, *path))) for path in paths}) == len(paths)
    assert words(keys.fold(keys.fold(key, "a"), "b")) == words(keys.fold(key, "a", "b"))


def test_a_members_keys_equal_those_of_the_setting_alone():
    @jax.jit
    @jax.vmap
    def members(seed, step):
        return jax.random.key_data(keys.fold(keys.run_key(seed), "step", step))

    traced = members(jnp.uint32([0, 4, 0]), jnp.int32([9, 9, 9])).tolist()
    assert traced == [words(keys.fold(keys.run_key(seed), "step", 9)) for seed in (0, 4, 0)]
