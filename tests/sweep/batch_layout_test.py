"""Mapping over members and devices, and the one cache of compiled programs."""

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


@pytest.mark.parametrize(("capacity", "width"), [(4, 1), (8, 2), (8, 4), (6, 2)])
def test_every_member_gets_its_own_result_whatever_the_width(capacity, width):
    layout = batch_layout.layout(capacity, width)
    program = programs.Program(square, layout)
    out = program(layout.pad(counting(capacity)), batch_layout.share(jnp.float32(1)))
    np.testing.assert_array_equal(batch_layout.unpad(out, capacity), np.arange(capacity) ** 2 + 1)


def test_short_blocks_are_padded_and_the_copies_dropped():
    layout = batch_layout.layout(8, 2)
    padded = layout.pad(counting(3))
    assert batch_layout.leading(padded) == 8
    out = programs.Program(square, layout)(padded, batch_layout.share(jnp.float32(0)))
    np.testing.assert_array_equal(batch_layout.unpad(out, 3), [0, 1, 4])


@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize("dealt", [False, True])
def test_groups_without_a_member_are_skipped_in_the_same_program(count, dealt):
    devices, computed = jax.device_count(), []
    layout = batch_layout.Layout(4 * devices, 2, dealt)
    count = min(count, layout.capacity)

    def seen(member, shared):
        jax.debug.callback(lambda x: computed.append(float(x)), member["x"])
        return square(member, shared)

    program, shared = programs.Program(seen, layout), batch_layout.share(jnp.float32(1))
    every = layout.unpad(program(layout.pad(counting(layout.capacity)), shared), layout.capacity)
    np.testing.assert_array_equal(every, np.arange(layout.capacity) ** 2 + 1)
    jax.effects_barrier()
    computed.clear()
    some = layout.unpad(program(layout.pad(counting(count)), shared, count=count), count)
    np.testing.assert_array_equal(some, every[:count])
    jax.effects_barrier()
    of_device = np.bincount(np.arange(count) % devices if dealt else np.arange(count) // 4)
    assert len(computed) == sum(-(-of_device // 2) * 2)
    assert program.traces == 1


def test_more_members_than_the_block_are_refused():
    with pytest.raises(ValueError, match="9 members given to a program of 8"):
        batch_layout.layout(8, 2).pad(counting(9))


@pytest.mark.parametrize(
    ("trials", "width", "capacity"),
    [(50, 5, 50), (84, 6, 84), (18, 3, 18), (1000, 5, 1000), (2, 1, 2), (7, 4, 8)],
)
def test_the_width_is_the_largest_that_pads_least(trials, width, capacity):
    assert batch_layout.layout(trials, 6) == batch_layout.Layout(capacity, width)


@pytest.mark.parametrize("capacity", [2, 6, 26, 30, 32, 106])
@pytest.mark.parametrize("limit", [None, 1, 4, 6, 100])
def test_a_dividing_width_pads_nothing(capacity, limit):
    width = batch_layout.dividing_width(capacity, limit)
    assert batch_layout.layout(capacity, width) == batch_layout.Layout(capacity, width)
    assert width <= (limit or batch_layout.default_width())


def test_a_second_trace_raises():
    layout = batch_layout.layout(4, 1)
    program = programs.Program(square, layout)
    program(layout.pad({"x": np.zeros(4, np.float32)}), batch_layout.share(jnp.float32(0)))
    program(layout.pad({"x": np.ones(4, np.float32)}), batch_layout.share(jnp.float32(5)))
    assert program.traces == 1
    with pytest.raises(AssertionError, match="traced twice"):
        program(layout.pad({"x": np.zeros((4, 2), np.float32)}), batch_layout.share(jnp.float32(0)))


def power_sum(member, shared):
    """A sum over an array that is only needed while it runs."""
    return jnp.sum(jnp.sort(member["x"] + shared, axis=0)[::3], axis=0)


def accelerator(monkeypatch, memory):
    monkeypatch.setattr(machine, "offered", lambda: machine.Offered(False, memory))


@pytest.fixture
def sums(monkeypatch):
    """The layout, arguments and results of a program of eight members, and what it needs."""
    layout = batch_layout.layout(8, 1 << 30)
    arguments = layout.pad({"x": np.arange(8 * 3000.0, dtype=np.float32).reshape(8, -1)}), ()
    arguments = arguments[0], batch_layout.share(jnp.float32(1))
    program = programs.Program(power_sum, layout)
    out = batch_layout.unpad(program(*arguments), 8)
    return layout, arguments, out, machine.needed_bytes(program._waited())


def test_a_program_that_does_not_fit_is_not_run_and_says_how_many_would(monkeypatch, sums):
    layout, arguments, _, (needed, running) = sums
    assert needed - running >= 4 * 3000 * 4  # of one device: its members
    accelerator(monkeypatch, needed / machine.FITS)
    assert programs.Program(power_sum, layout)(*arguments) is not None
    accelerator(monkeypatch, (needed - 0.6 * running) / machine.FITS)
    program, said = programs.Program(power_sum, layout), []
    with pytest.raises(
        batch_layout.TooLarge, match="RESOURCE_EXHAUSTED: the program needs"
    ) as caught:
        program(*arguments)
    assert machine.exhausted(caught.value)
    assert (
        batch_layout.fewer(layout, "training", caught.value, said.append) == caught.value.width == 1
    )
    assert "training: 8 trials at once need" in said[0]
    assert said[0].endswith("goes on with 2")
    one = batch_layout.Layout(8, 1)
    accelerator(monkeypatch, 1)
    assert programs.Program(power_sum, one)(*arguments) is not None  # one at a time is tried


def make_sum():
    return power_sum


@pytest.mark.usefixtures("cache")
def test_a_call_whose_width_nobody_stores_takes_fewer_members_at_once_of_the_same_block(
    monkeypatch, sums
):
    layout, arguments, expected, (needed, running) = sums
    whole = programs.program(make_sum, (), layout, *arguments, fitting=True)
    assert whole.layout == layout == batch_layout.Layout(8, 4)
    accelerator(monkeypatch, (needed - 0.4 * running) / machine.FITS)
    program = programs.program(make_sum, (), layout, *arguments, fitting=True)
    assert program.layout.capacity == 8
    assert program.layout.width < 4
    np.testing.assert_array_equal(batch_layout.unpad(program(*arguments), 8), expected)


def test_keys_can_be_members():
    layout = batch_layout.layout(4, 2)
    program = programs.Program(lambda key, _: jax.random.normal(key), layout)
    keys = jax.random.split(jax.random.key(0), 3)
    out = batch_layout.unpad(program(layout.pad(keys), ()), 3)
    np.testing.assert_array_equal(out, jax.vmap(jax.random.normal)(keys))


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


def requested(count=4, width=2, power=2, columns=(), dtype=np.float32):
    """The program of ``make_power`` for members of this shape, and its arguments."""
    layout = batch_layout.layout(count, width)
    arguments = (
        layout.pad({"x": np.ones((count, *columns), dtype)}),
        batch_layout.share(jnp.float32(1)),
    )
    return programs.program(make_power, (power,), layout, *arguments), arguments


@pytest.mark.usefixtures("cache")
def test_equal_requests_share_one_program_which_is_made_once():
    program, arguments = requested()
    again, _ = requested()
    assert again is program
    assert calls == [2]
    np.testing.assert_array_equal(batch_layout.unpad(program(*arguments), 4), np.full(4, 2.0))
    np.testing.assert_array_equal(batch_layout.unpad(again(*arguments), 4), np.full(4, 2.0))
    assert program.traces == 1


@pytest.mark.parametrize(
    "other", [{"count": 8}, {"width": 1}, {"power": 3}, {"columns": (2,)}, {"dtype": np.int32}]
)
@pytest.mark.usefixtures("cache")
def test_another_layout_static_shape_or_type_is_another_program(other):
    program, arguments = requested()
    second, others = requested(**other)
    assert second is not program
    for chosen, inputs in ((program, arguments), (second, others), (program, arguments)):
        chosen(*inputs)
    assert (program.traces, second.traces) == (1, 1)  # neither is ever traced twice
    assert requested()[0] is program


@pytest.mark.usefixtures("cache")
def test_shapes_and_weak_types_of_what_members_share_are_part_of_the_request():
    layout = batch_layout.layout(4, 2)
    member = layout.pad(counting(4))
    shared = [batch_layout.share(a) for a in (jnp.float32(1), jnp.ones(3), (jnp.ones(3),))]
    shared += [jnp.asarray(1.0), jnp.asarray(np.float32(1))]  # tracing tells these two apart
    requested = [programs.program(make_power, (2,), layout, member, a) for a in shared]
    assert len(set(map(id, requested[:3]))) == 3
    assert requested[3] is not requested[4]


@pytest.mark.usefixtures("cache")
def test_a_program_outlives_the_clearing_of_jax_s_own_caches():
    program, arguments = requested()
    before = batch_layout.unpad(program(*arguments), 4)
    jax.clear_caches()
    np.testing.assert_array_equal(batch_layout.unpad(program(*arguments), 4), before)
    assert program.traces == 1


def test_a_program_compiled_ahead_is_the_one_that_runs(cache):
    program, arguments = requested()
    with ThreadPoolExecutor(1) as pool:
        program.compile(*arguments, pool=pool)
        program.compile(*arguments, pool=pool)  # asked again it is compiled no second time
    np.testing.assert_array_equal(batch_layout.unpad(program(*arguments), 4), np.full(4, 2.0))
    assert program.traces == 1
    assert list(cache.values()) == [program]


@pytest.mark.usefixtures("cache")
def test_plain_functions_are_compiled_once_for_each_shape_and_option():
    arguments = {"x": jnp.arange(3.0)}, jnp.float32(0)
    compiled = programs.compiled(make_power, (2,), arguments)
    np.testing.assert_array_equal(compiled(*arguments), [0, 1, 4])
    assert programs.compiled(make_power, (2,), arguments) is compiled
    longer = {"x": jnp.arange(4.0)}, jnp.float32(0)
    assert programs.compiled(make_power, (2,), longer) is not compiled
    assert programs.compiled(make_power, (2,), arguments, level=0) is not compiled
    assert len(calls) == 3


def test_programs_are_kept_while_memory_maps_are_few(cache, monkeypatch):
    monkeypatch.setattr(programs, "MOST_MAPS", 1 << 40)
    monkeypatch.setattr(batch_layout.jax, "clear_caches", lambda: pytest.fail("caches cleared"))
    made = [requested(power=power)[0] for power in range(4)]
    assert list(cache.values()) == made


def test_the_older_half_of_all_programs_is_forgotten_when_memory_maps_are_many(cache, monkeypatch):
    cleared = []
    programs_of = [requested(power=power) for power in range(5)]
    assert requested(power=0)[0] is programs_of[0][0]  # used again: the youngest now
    monkeypatch.setattr(programs, "MOST_MAPS", 0)
    monkeypatch.setattr(batch_layout.jax, "clear_caches", lambda: cleared.append(True))
    programs.make_room()
    assert cleared
    assert list(cache.values()) == [programs_of[4][0], programs_of[0][0]]
    program, arguments = programs_of[1]  # who still holds one keeps it
    again, _ = requested(power=1)  # and it is made again when it is asked for
    assert again is not program
    for each in (program, again):
        np.testing.assert_array_equal(batch_layout.unpad(each(*arguments), 4), np.full(4, 2.0))


@pytest.mark.skipif(not pathlib.Path("/proc/self/maps").exists(), reason="not Linux")
def test_memory_maps_of_this_process_are_counted():
    assert 50 < programs._memory_maps() < 65_530


def test_the_memory_of_a_member_is_what_goes_in_comes_out_and_is_computed_on_the_way():
    def one(member, shared):
        return (member[:, None] * member[None, :]) @ jnp.sin(
            member[:, None] * shared[None, :]
        )  # [64, 64] between

    def bytes_at(width):
        layout = batch_layout.Layout(4 * jax.device_count(), width)
        given = (
            layout.pad(np.ones((layout.capacity, 64), np.float32)),
            batch_layout.share(np.ones(64, "f")),
        )
        program = programs.Program(one, layout)
        program(*given)
        return program.member_bytes(given[0])

    each = 4 * (64 + 64 * 64)  # its row, and the matrix that comes out
    assert bytes_at(4) > bytes_at(1) >= each


def test_results_are_written_over_earlier_ones():
    """The same figures, in the memory of results that are gone then; keys are results too."""
    layout = batch_layout.layout(8 * jax.device_count(), 2)
    keys = jax.random.split(jax.random.key(0), layout.capacity)
    given = layout.pad({"a": np.arange(layout.capacity, dtype=np.float32), "key": keys})
    earlier = layout.pad({"a": np.full(layout.capacity, -1, np.float32), "key": keys})
    factor = batch_layout.share(np.float32(3))

    def one(member, shared):
        return {"a": member["a"] * shared, "key": member["key"]}

    wanted = programs.Program(one, layout)(given, factor)
    program = programs.Program(one, layout)
    result = program(given, factor, earlier)
    np.testing.assert_array_equal(result["a"], wanted["a"])
    assert earlier["a"].is_deleted()
    assert not given["a"].is_deleted()
    np.testing.assert_array_equal(program(result, factor, wanted)["a"], 9 * np.asarray(given["a"]))
