"""Mapping over members and devices, and the one cache of compiled programs."""

import dataclasses
import pathlib
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import machine
from vfljax.sweep import batch_layout, programs


def square(member, shared):
    return member["x"] ** 2 + shared


def counting(count):
    return {"x": np.arange(count, dtype=np.float32)}


@pytest.mark.parametrize("dealt", [False, True])
def test_every_member_gets_its_own_result_and_groups_without_a_member_are_skipped(dealt):
    devices, computed = jax.device_count(), []
    layout = batch_layout.Layout(4 * devices, 2, dealt)

    def seen(member, shared):
        jax.debug.callback(lambda x: computed.append(float(x)), member["x"])
        return square(member, shared)

    program, shared = programs.Program(seen, layout), batch_layout.share(jnp.float32(1))
    for count in (layout.capacity, 1, 3):
        computed.clear()
        padded = layout.pad(counting(count))
        assert batch_layout.leading(padded) == layout.capacity
        results = layout.unpad(program(padded, shared, count=count), count)
        np.testing.assert_array_equal(results, np.arange(count) ** 2 + 1)
        jax.effects_barrier()
        of_device = np.bincount(np.arange(count) % devices if dealt else np.arange(count) // 4)
        assert len(computed) == sum(-(-of_device // 2) * 2)
    assert program.traces == 1


def test_more_members_than_the_block_are_refused():
    with pytest.raises(ValueError, match="9 members given to a program of 8"):
        batch_layout.layout(8, 2).pad(counting(9))


@pytest.mark.parametrize(
    ("trials", "width", "capacity"), [(50, 5, 50), (18, 3, 18), (2, 1, 2), (7, 4, 8)]
)
def test_the_width_is_the_largest_that_pads_least(trials, width, capacity):
    assert batch_layout.layout(trials, 6) == batch_layout.Layout(capacity, width)


@pytest.mark.parametrize(("limit", "width"), [(None, 5), (4, 3), (1, 1)])
def test_a_dividing_width_pads_nothing(limit, width):
    assert batch_layout.dividing_width(30, limit) == width
    assert batch_layout.layout(30, width) == batch_layout.Layout(30, width)


def test_a_second_trace_raises():
    layout = batch_layout.layout(4, 1)
    program, shared = programs.Program(square, layout), batch_layout.share(jnp.float32(0))
    program(layout.pad(counting(4)), shared)
    with pytest.raises(AssertionError, match="traced twice"):
        program(layout.pad({"x": np.zeros((4, 2), np.float32)}), shared)


def power_sum(member, shared):
    """A sum over an array that is only needed while it runs."""
    return jnp.sum(jnp.sort(member["x"] + shared, axis=0)[::3], axis=0)


def make_sum():
    return power_sum


@pytest.mark.usefixtures("cache")
def test_a_program_that_does_not_fit_is_not_run_and_fewer_members_at_once_are(monkeypatch):
    layout = batch_layout.layout(8, 1 << 30)
    rows = layout.pad({"x": np.arange(8 * 3000.0, dtype=np.float32).reshape(8, -1)})
    arguments = rows, batch_layout.share(jnp.float32(1))
    program = programs.Program(power_sum, layout)
    expected = batch_layout.unpad(program(*arguments), 8)
    needed = machine.needed_bytes(program.waited())
    assert needed >= 4 * 3000 * 4  # of one device: its members

    def memory(needed):
        offered = machine.Offered(False, needed / machine.FITS)
        monkeypatch.setattr(machine, "offered", lambda: offered)

    program._fits = False  # as if it had not run
    memory(needed)
    assert program.fits()
    memory(needed - 1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as caught:
        program(*arguments)
    said = []
    assert batch_layout.halved(layout, "training", caught.value, said.append) == 2
    assert said[0].endswith("goes on with 4")
    # where nobody stores the width, the same block goes on with fewer members at once
    dealt = dataclasses.replace(layout, dealt=True)
    fitting = programs.program(make_sum, (), dealt, arguments, fitting=True)
    assert fitting.layout == batch_layout.Layout(8, 2, dealt=True)
    np.testing.assert_array_equal(batch_layout.unpad(fitting(*arguments), 8), expected)
    memory(1)  # one at a time is tried
    one = programs.program(make_sum, (), layout, arguments, fitting=True)
    assert one.layout.width == 1
    assert one.fits()


def test_only_exhausted_memory_is_met_by_half_the_width_and_one_member_is_the_least():
    exhausted = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating")
    wide, said = batch_layout.Layout(16, 4), []
    assert batch_layout.halved(wide, "training", exhausted, said.append) == 2
    assert said == [f"training: 8 trials at once do not fit ({exhausted}), goes on with 4"]
    # of 45 members on each device 20 at most fit: 15 pad none
    assert (
        batch_layout.halved(batch_layout.Layout(90, 45), "training", exhausted, said.append) == 15
    )
    other = jax.errors.JaxRuntimeError("INTERNAL: another error")
    for layout, error in ((wide, other), (batch_layout.Layout(4, 1), exhausted)):
        with pytest.raises(jax.errors.JaxRuntimeError, match=str(error)):
            batch_layout.halved(layout, "training", error, said.append)


# the cache: `calls` says how often a program was made, and its key is these functions


calls = []


def make_power(power):
    calls.append(power)
    return lambda member, shared: member["x"] ** power + shared


@pytest.fixture
def cache(monkeypatch):
    """An empty cache of programs."""
    monkeypatch.setattr(programs, "_PROGRAMS", type(programs._PROGRAMS)())
    calls.clear()
    return programs._PROGRAMS


ONE = np.float32(1)


def requested(count=4, width=2, power=2, columns=(), dtype=np.float32, shared=ONE, level=None):
    """The program of ``make_power`` for members of this shape, and its arguments."""
    layout = batch_layout.layout(count, width)
    members = layout.pad({"x": np.ones((count, *columns), dtype)})
    arguments = members, jax.tree.map(jnp.asarray, shared)
    return programs.program(make_power, (power,), layout, arguments, level), arguments


def test_equal_requests_share_one_program_and_others_do_not(cache):
    """Another layout, static value, shape, type, structure, weak type or level is another program."""
    others = [{"count": 8}, {"width": 1}, {"power": 3}, {"columns": (2,)}, {"dtype": np.int32}]
    others += [{"shared": np.ones(3, "f")}, {"shared": (ONE,)}, {"shared": 1.0}, {"level": 1}]
    made = [requested(**other)[0] for other in ({}, *others)]
    assert len(set(map(id, made))) == len(made) == len(cache)
    assert [requested(**other)[0] for other in ({}, *others)] == made
    assert len(calls) == len(made)


def test_a_program_compiled_ahead_is_the_one_that_runs_and_outlives_jax_s_own_caches(cache):
    program, arguments = requested()
    with ThreadPoolExecutor(1) as pool:
        program.compile(*arguments, pool=pool)
        program.compile(*arguments, pool=pool)  # asked again it is compiled no second time
    np.testing.assert_array_equal(batch_layout.unpad(program(*arguments), 4), np.full(4, 2.0))
    jax.clear_caches()
    np.testing.assert_array_equal(batch_layout.unpad(program(*arguments), 4), np.full(4, 2.0))
    assert program.traces == 1
    assert list(cache.values()) == [program]


def test_the_older_half_of_all_programs_is_forgotten_when_memory_maps_are_many(cache, monkeypatch):
    cleared = []
    monkeypatch.setattr(batch_layout.jax, "clear_caches", lambda: cleared.append(True))
    monkeypatch.setattr(programs, "MOST_MAPS", 1 << 40)
    made = [requested(power=power)[0] for power in range(5)]
    assert requested(power=0)[0] is made[0]  # used again: the youngest now
    assert not cleared
    monkeypatch.setattr(programs, "MOST_MAPS", 0)
    programs.make_room()
    assert cleared
    assert list(cache.values()) == [made[4], made[0]]
    again, _ = requested(power=1)  # it is made again when it is asked for
    assert again is not made[1]


@pytest.mark.skipif(not pathlib.Path("/proc/self/maps").exists(), reason="not Linux")
def test_memory_maps_of_this_process_are_counted():
    assert 50 < programs._memory_maps() < 65_530


def test_results_are_written_over_earlier_ones():
    """The same figures, in the memory of results that are gone then; keys are results too."""
    layout = batch_layout.layout(8 * jax.device_count(), 2)
    keys = jax.random.split(jax.random.key(0), layout.capacity)
    given = layout.pad({"a": np.arange(layout.capacity, dtype=np.float32), "key": keys})
    earlier = layout.pad({"a": np.full(layout.capacity, -1, np.float32), "key": keys})
    factor = batch_layout.share(np.float32(3))

    def one(member, shared):
        return {"a": member["a"] * shared, "key": member["key"]}

    program = programs.Program(one, layout)
    result = program(given, factor, earlier)
    np.testing.assert_array_equal(result["a"], 3 * np.arange(layout.capacity))
    assert jnp.all(result["key"] == given["key"])
    assert earlier["a"].is_deleted()
    assert not given["a"].is_deleted()


def test_a_level_is_the_compiler_s_option_on_a_cpu_unless_the_user_names_one(monkeypatch):
    # as users run it: conftest sets a level for all programs
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true")
    assert programs.compiler_options(None) == {}
    assert programs.compiler_options(1) == {"xla_backend_optimization_level": 1}
    least, plain = programs.compiler_options(0), programs.compiler_options(2)
    assert plain == {**least, "xla_backend_optimization_level": 1}
    assert least[programs.FLAG] == 0
    # this version of XLA knows each of them
    jax.jit(lambda x: x + 1).lower(1.0).compile(compiler_options=least)
    with monkeypatch.context() as patched:
        patched.setattr(machine, "offered", lambda: machine.Offered(cpu=False))
        assert programs.compiler_options(1) == {}
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    assert programs.compiler_options(1) == {}
