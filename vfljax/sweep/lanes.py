"""A pure function of one setting, mapped over many settings and over the machine's devices; and the
one cache of compiled programs.

On CPU: one XLA host device a core (``vfljax.use_this_machine``) and few lanes at a time within each,
so that a lane's parameters stay in cache; on an accelerator: one wide ``vmap``, of so many lanes as the
compiled program's memory analysis says fit. No collectives.
"""

from __future__ import annotations

import collections
import dataclasses
import gc
import pathlib
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor, Future
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from vfljax import machine
from vfljax.machine import bytes_text, exhausted
from vfljax.types import PyTree

LANE = PartitionSpec("lane")
SAME = PartitionSpec()
# compiled programs hold memory maps, of which Linux allows a process 65,530; XLA crashes without one
MOST_MAPS = 40_000


def default_width() -> int:
    """Settings mapped at once on each device: about 6 on CPU, elsewhere all, or as many as fit (``TooLarge``).

    On CPU fewer pay for each small operation again, more fall out of the cache. Measured by processor time for
    widths of 1 to 60: the benchmark's MLP is fastest at 1 or 2, a network of 16 hidden units at 60, and 6
    is within about a tenth of both (``python -m launch.benchmark --suite=grid --width=N``).
    """
    return 6 if machine.offered().cpu else 1 << 30


def dividing_width(block: int, width: int | None = None) -> int:
    """The largest width up to ``width`` (None: the backend's) that divides a device's lanes of
    ``block``: a ``Layout`` of it takes the block as it is, arrays already on the devices included.
    """
    each = block // jax.device_count()
    most = min(default_width() if width is None else width, each)
    return next(w for w in range(most, 0, -1) if each % w == 0)


@dataclasses.dataclass(frozen=True)
class Layout:
    """How many lanes a program takes, and how many of them are mapped at once on each device."""

    block: int  # a multiple of the width on every device
    width: int

    def pad(self, lanes: PyTree) -> PyTree:
        """``lanes`` on the devices; short blocks are padded with copies of their last lane."""
        count = leading(lanes)
        if count > self.block:
            raise ValueError(f"{count} lanes given to a block of {self.block}")
        by_lane = NamedSharding(Mesh(jax.devices(), ("lane",)), LANE)

        def one(a: Any) -> Any:
            if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
                raw = np.asarray(jax.random.key_data(a))
                return jax.random.wrap_key_data(one(raw))
            if count < self.block:
                a = np.asarray(a)  # on the host: nothing to compile for each shape
                a = np.concatenate([a, np.repeat(a[-1:], self.block - count, axis=0)])
            return jax.device_put(a, by_lane)

        return jax.tree.map(one, lanes)

    def shapes(self, one: PyTree) -> PyTree:
        """The shapes of what ``pad`` makes of lanes like this ``one``, which has no lane axis."""
        return jax.tree.map(lambda a: _shape(a, LANE, self.block), one)


class TooLarge(jax.errors.JaxRuntimeError):
    """A program would exhaust a device's memory, and was not run; ``width`` lanes at once would fit."""

    def __init__(self, needed: int, width: int) -> None:
        self.needed, self.width = needed, width
        memory = f"{bytes_text(needed)} of a device's {bytes_text(machine.offered().memory)}"
        super().__init__(f"RESOURCE_EXHAUSTED: the program needs {memory}")


def fewer(layout: Layout, what: str, error: Exception, say: Callable[[str], None]) -> int:
    """A smaller width than that of a ``layout``: after ``TooLarge`` the one it says, and half of it after
    another ``error`` of a call that exhausted a device's memory. Raises the error where it says something
    else, and where no more than one lane was mapped at once."""
    width, devices = layout.width // 2, jax.device_count()
    if isinstance(error, TooLarge):
        say(
            f"{what}: {layout.width * devices} settings at once need {bytes_text(error.needed)} of "
            f"a device's {bytes_text(machine.offered().memory)}, goes on with {error.width * devices}"
        )
        return error.width
    if not exhausted(error) or not width:
        raise error
    say(
        f"{what}: {layout.width * devices} settings at once exhaust the device's memory, "
        f"goes on with {width * devices}"
    )
    return width


def share(shared: PyTree) -> PyTree:
    """``shared`` on every device, once."""
    return jax.device_put(shared, NamedSharding(Mesh(jax.devices(), ("lane",)), SAME))


def shared_shapes(shared: PyTree) -> PyTree:
    """The shapes of what ``share`` makes of ``shared``."""
    return jax.tree.map(lambda a: _shape(a, SAME), shared)


def _shape(a: Any, spec: PartitionSpec, *lanes: int) -> jax.ShapeDtypeStruct:
    """What tracing distinguishes of the array ``a`` where it lies on the devices, ``lanes`` before it."""
    dtype = jax.dtypes.canonicalize_dtype(a.dtype, allow_extended_dtype=True)
    by_lane = NamedSharding(Mesh(jax.devices(), ("lane",)), spec)
    weak = getattr(a, "weak_type", False)
    return jax.ShapeDtypeStruct((*lanes, *a.shape), dtype, sharding=by_lane, weak_type=weak)


def layout(count: int, width: int | None = None, devices: int | None = None) -> Layout:
    """The layout of ``count`` lanes, ``width`` of them at once on each device (None: the backend's); the width
    is chosen as a machine with so many ``devices`` would (None: those of this process), so that figures do
    not depend on where they are computed.

    Lanes of a device are a multiple of the width (a remainder would be traced a second time): a width
    up to half as large that pads fewer lanes is taken instead.
    """
    each = -(-count // (devices or jax.device_count()))
    width = min(default_width() if width is None else width, each)
    width = min(range(width, max(width // 2 - 1, 0), -1), key=lambda w: -each % w)
    return layout_of(count, width)


def layout_of(count: int, width: int) -> Layout:
    """The layout of ``count`` lanes, just ``width`` of them at once on each device, if there are so many."""
    each = -(-count // jax.device_count())
    width = min(width, each)
    return Layout((each + -each % width) * jax.device_count(), width)


class Program:
    """``one(lane, shared) -> out`` compiled once for a block of lanes.

    ``lanes`` has a leading axis of ``layout.block``, ``shared`` is the same for every lane: arguments
    come from ``Layout.pad`` and ``share``. Results are those of all lanes of the block, copies
    included: call ``unpad`` on what is kept. ``traces`` counts how often it was traced: a second time
    is a defect (a knob became static, or a shape changed), and raises.

    ``into`` are earlier results, of the same shapes, that nobody reads any more: new ones are written
    over them, and they are gone after the call. Fresh memory for the record of hundreds of settings takes
    about a tenth of an epoch's time on CPU: the system clears each of its pages (measured).
    """

    def __init__(self, one: Callable[[PyTree, PyTree], PyTree], layout: Layout) -> None:
        self.layout, self.traces = layout, 0
        devices, width = jax.devices(), layout.width
        local = layout.block // len(devices)

        def over_local_lanes(lanes: PyTree, shared: PyTree, into: PyTree) -> PyTree:
            self.traces += 1
            if self.traces > 1:
                raise AssertionError("a program was traced twice: a knob became a static value")
            if width == local:
                return jax.vmap(one, in_axes=(0, None))(lanes, shared)

            def some(group: PyTree) -> PyTree:
                return jax.vmap(one, in_axes=(0, None))(group, shared)

            def grouped(tree: PyTree) -> PyTree:
                return jax.tree.map(lambda a: a.reshape(local // width, width, *a.shape[1:]), tree)

            if into is None:
                out = jax.lax.map(some, grouped(lanes))
            else:
                out = _map_into(some, grouped(lanes), grouped(into))
            return jax.tree.map(lambda a: a.reshape(local, *a.shape[2:]), out)

        self._call = jax.jit(
            jax.shard_map(
                over_local_lanes,
                mesh=Mesh(devices, ("lane",)),
                in_specs=(LANE, SAME, LANE),
                out_specs=LANE,
                check_vma=False,
            ),
            donate_argnums=2,
        )
        self._signature: Hashable = None
        self._compiled: Future[Any] | None = None
        self._fits = False  # whether it was asked and found to fit into the devices' memory
        self.results: PyTree = None  # their shapes, once it was traced

    def compile_ahead(
        self, lanes: PyTree, shared: PyTree, pool: Executor, into: PyTree = None
    ) -> None:
        """Trace now and compile in ``pool`` for these arguments' shapes, while others run."""
        if self._compiled is None:
            lowered = self._lower(lanes, shared, into)
            self._compiled = pool.submit(_timed, "compiling", lowered.compile)

    def compile(self, lanes: PyTree, shared: PyTree, into: PyTree = None) -> None:
        """Trace and compile now for these arguments, which may be shapes."""
        compiled: Future[Any] = Future()
        compiled.set_result(_timed("compiling", self._lower(lanes, shared, into).compile))
        self._compiled = compiled

    def compile_once(self, lanes: PyTree, shared: PyTree) -> None:
        """``compile``, unless it is compiled already."""
        if self._compiled is None:
            self.compile(lanes, shared)

    def _lower(self, lanes: PyTree, shared: PyTree, into: PyTree) -> Any:
        self._signature = _abstract((lanes, shared, into))
        lowered = _timed("tracing", lambda: self._call.lower(lanes, shared, into))
        self.results = jax.tree.map(lambda a: _shape(a, LANE), lowered.out_info)
        return lowered

    def __call__(self, lanes: PyTree, shared: PyTree, into: PyTree = None) -> PyTree:
        # ahead of time here too: what jit keeps is lost when JAX's caches are cleared (``make_room``)
        if self._compiled is None:
            self.compile(lanes, shared, into)
        elif _abstract((lanes, shared, into)) != self._signature:
            self._call.lower(lanes, shared, into)  # a second trace, which raises
        assert self._compiled is not None
        if not self._fits and (too_large := self.too_large()) is not None:
            raise too_large
        self._fits = True
        return self._compiled.result()(lanes, shared, into)

    def too_large(self) -> TooLarge | None:
        """What to raise instead of running it, which is compiled already, where a device's memory has room
        for fewer lanes at once only. None on CPU, and for one lane, which is tried."""
        assert self._compiled is not None
        compiled, width = self._compiled.result(), self.layout.width
        fewer = machine.fitting_width(compiled, width)
        if fewer == width:
            return None
        return TooLarge(machine.needed_bytes(compiled)[0], layout(self.layout.block, fewer).width)

    def lane_bytes(self, lanes: PyTree) -> int:
        """Bytes of memory that each of ``lanes`` takes while the program runs: what it is called with, what
        comes out, and what is computed on the way, which few at once share. It is compiled already."""
        assert self._compiled is not None
        needed = self._compiled.result().memory_analysis()  # of one device
        if needed is None:  # this backend has none
            return 0
        each = self.layout.block // jax.device_count()
        arguments = sum(leaf.nbytes for leaf in jax.tree.leaves(lanes)) // self.layout.block
        return arguments + (needed.output_size_in_bytes + needed.temp_size_in_bytes) // each


def _map_into(some: Callable[[PyTree], PyTree], groups: PyTree, into: PyTree) -> PyTree:
    """``jax.lax.map(some, groups)``, written over ``into``."""

    def write(i: Any, out: PyTree) -> PyTree:
        group = jax.tree.map(lambda a: jax.lax.dynamic_index_in_dim(a, i, keepdims=False), groups)
        new = some(group)
        return jax.tree.map(
            lambda all_groups, a: jax.lax.dynamic_update_index_in_dim(all_groups, a, i, 0), out, new
        )

    return jax.lax.fori_loop(0, leading(groups), write, into)


_SPENT = {"tracing": 0.0, "compiling": 0.0}  # seconds of this process, over all threads


def _timed(what: str, do: Callable[[], Any]) -> Any:
    began = time.monotonic()
    try:
        return do()
    finally:
        with _LOCK:
            _SPENT[what] += time.monotonic() - began


def tracing_seconds() -> float:
    """Seconds that this process has spent tracing programs of settings: every process does so again."""
    with _LOCK:
        return _SPENT["tracing"]


def compile_seconds() -> float:
    """Seconds that this process has spent tracing and compiling programs of settings, added over
    threads; what is compiled is kept for other processes (``vfljax.use_this_machine``)."""
    with _LOCK:
        return sum(_SPENT.values())


_PROGRAMS: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()
_UNFINISHED: dict[Hashable, threading.Event] = {}  # programs that some thread is making
_LOCK = threading.Lock()


def program(
    make: Callable[..., Callable[[PyTree, PyTree], PyTree]],
    static: tuple[Hashable, ...],
    layout: Layout,
    lanes: PyTree,
    shared: PyTree,
    into: PyTree = None,
) -> Program:
    """The program of ``make(*static)`` for arguments of these shapes: equal ones share one.

    ``make`` is a function of a module and ``static`` hashable, so that the key says all that is
    compiled: the function, and the abstract arguments.
    """
    key = (make, static, layout, _abstract((lanes, shared, into)))
    return _cached(key, lambda: Program(make(*static), layout))


def fitting_program(
    make: Callable[..., Callable[[PyTree, PyTree], PyTree]],
    static: tuple[Hashable, ...],
    layout: Layout,
    lanes: PyTree,
    shared: PyTree,
) -> Program:
    """``program``, or one of the same block that maps fewer lanes at once where those of ``layout`` do not
    fit into a device's memory: for calls whose width is stored nowhere."""
    while True:
        one = program(make, static, layout, lanes, shared)
        if machine.offered().cpu:
            return one
        one.compile_once(lanes, shared)
        too_large = one.too_large()
        if too_large is None:
            return one
        layout = Layout(layout.block, dividing_width(layout.block, too_large.width))


def program_ahead(
    make: Callable[..., Callable[[PyTree, PyTree], PyTree]],
    static: tuple[Hashable, ...],
    layout: Layout,
    lanes: PyTree,
    shared: PyTree,
) -> Program:
    """``program``, compiled by this thread before anybody has arguments for it: ``lanes`` and ``shared``
    are those of ``Layout.shapes`` and ``shared_shapes``. Whoever asks for the same program waits for it."""
    key = (make, static, layout, _abstract((lanes, shared, None)))

    def build() -> Program:
        new = Program(make(*static), layout)
        new.compile(lanes, shared)
        return new

    return _cached(key, build)


def compiled(
    make: Callable[..., Callable[..., PyTree]],
    static: tuple[Hashable, ...],
    arguments: tuple[PyTree, ...],
    options: Mapping[str, Any] | None = None,
) -> Callable[..., PyTree]:
    """``make(*static)``, compiled for arguments of these shapes, without a lane axis. ``options`` are
    the compiler's."""
    chosen = dict(options or {})
    key = (make, static, tuple(chosen.items()), _abstract(arguments))
    return _cached(
        key, lambda: jax.jit(make(*static)).lower(*arguments).compile(compiler_options=chosen)
    )


def _cached(key: Hashable, build: Callable[[], Any]) -> Any:
    finished = threading.Event()
    try:  # from here on: an interrupt must not leave others waiting
        while True:
            with _LOCK:
                if key in _PROGRAMS:
                    _PROGRAMS.move_to_end(key)
                    return _PROGRAMS[key]
                other = _UNFINISHED.setdefault(key, finished)
            if other is finished:
                break
            other.wait()  # and makes it here where the other thread could not
        make_room()
        built = build()
        with _LOCK:
            _PROGRAMS[key] = built
        return built
    finally:
        with _LOCK:
            if _UNFINISHED.get(key) is finished:
                del _UNFINISHED[key]
        finished.set()


def make_room() -> None:
    """Forget compiled programs when this process nears its limit of memory maps: those of this cache,
    the older half first, and JAX's own. Whoever still holds a program keeps it."""
    if _memory_maps() < MOST_MAPS:
        return
    with _LOCK:
        for _ in range((len(_PROGRAMS) + 1) // 2):
            _PROGRAMS.popitem(last=False)
    jax.clear_caches()
    gc.collect()


def has_room() -> bool:
    """Whether programs may be made that nobody has asked for yet: far from where ``make_room`` forgets
    some."""
    return _memory_maps() < MOST_MAPS // 2


def _memory_maps() -> int:
    try:
        with pathlib.Path("/proc/self/maps").open("rb") as lines:
            return sum(1 for _ in lines)
    except OSError:  # not Linux
        return 0


def _abstract(tree: PyTree) -> Hashable:
    """Structure of a tree of arrays, and what tracing distinguishes of each: shape, type, weakness."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(jax.typeof(leaf) for leaf in leaves)


def leading(tree: PyTree) -> int:
    """Length of the lane axis."""
    return jax.tree.leaves(tree)[0].shape[0]


def unpad(tree: PyTree, count: int) -> PyTree:
    """The first ``count`` lanes, on the host, as NumPy arrays."""
    return jax.tree.map(lambda a: a[:count], jax.device_get(tree))
