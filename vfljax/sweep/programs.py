"""A pure function of one trial, compiled for many trials and all devices; the one cache of such programs; and
how hard XLA's compiler for CPUs optimizes them.
"""

from __future__ import annotations

import collections
import functools
import gc
import math
import os
import pathlib
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from vfljax import machine
from vfljax.sweep import profile
from vfljax.sweep.batch_layout import (
    AXIS,
    BY_MEMBER,
    SAME,
    Layout,
    TooLarge,
    dividing_width,
    leading,
)
from vfljax.sweep.batch_layout import layout as layout_for
from vfljax.types import PyTree

# compiled programs hold memory maps, of which Linux allows a process 65,530; XLA crashes without one
MOST_MAPS = 40_000
FLAG = "xla_backend_optimization_level"


class Effort(NamedTuple):
    """The optimization level of each kind of program; None is XLA's default, all effort.

    A program that runs for less time than it compiles is compiled with little effort. Another level moves
    figures in their last bits, hence the choice is made once, from the plan's estimate, and stored with the
    sweep. A sweep without any is older than the choice, and was made with all effort.
    """

    training: int | None = None  # with initial weights and evaluation
    attacks: int | None = None  # with their scores


def compiler_options(level: int | None) -> dict[str, Any]:
    """Returns the compiler's options of a level.

    They are empty for all effort, on accelerators, and where ``XLA_FLAGS`` names a level for every program.
    """
    chosen = FLAG in os.environ.get("XLA_FLAGS", "")
    return {} if level is None or chosen or not machine.offered().cpu else {FLAG: level}


class Program:
    """``run(member, shared) -> out`` compiled once for so many members as ``layout`` takes.

    ``members`` has a leading axis of ``layout.capacity``, ``shared`` is the same for every member: arguments
    come from ``Layout.pad`` and ``share``. Results are those of all members, copies
    included: call ``unpad`` on what is kept. ``traces`` counts how often it was traced: a second time
    is a defect (a knob became static, or a shape changed), and raises.

    ``into`` are earlier results, of the same shapes, that are not read any more: new ones are written
    over them, and they are gone after the call. Fresh memory for the record of hundreds of trials takes
    about a tenth of an epoch's time on CPU: the system clears each of its pages (measured).
    """

    def __init__(
        self, run: Callable[[PyTree, PyTree], PyTree], layout: Layout, level: int | None = None
    ) -> None:
        """``level`` is that of ``compiler_options``."""
        self.layout, self.traces, self.options = layout, 0, compiler_options(level)
        self.name = getattr(run, "__name__", type(run).__name__)
        devices, width = jax.devices(), layout.width
        local = layout.capacity // len(devices)

        def over_local_members(members: PyTree, shared: PyTree, into: PyTree) -> PyTree:
            self.traces += 1
            if self.traces > 1:
                raise AssertionError("a program was traced twice: a knob became a static value")

            def run_some(group: PyTree) -> PyTree:
                return jax.vmap(run, in_axes=(0, None))(group, shared)

            def grouped(tree: PyTree) -> PyTree:
                return jax.tree.map(lambda a: a.reshape(local // width, width, *a.shape[1:]), tree)

            if width == local:
                return run_some(members)
            if into is None:
                out = jax.lax.map(run_some, grouped(members))
            else:
                out = _map_into(run_some, grouped(members), grouped(into))
            return jax.tree.map(lambda a: a.reshape(local, *a.shape[2:]), out)

        over_local_members.__name__ = self.name  # by which profiles and dumps of XLA call it
        over_devices = jax.shard_map(
            over_local_members,
            mesh=Mesh(devices, (AXIS,)),
            in_specs=(BY_MEMBER, SAME, BY_MEMBER),
            out_specs=BY_MEMBER,
            check_vma=False,
        )
        self._call = jax.jit(over_devices, donate_argnums=2)
        self._signature: Hashable = None
        self._compiled: Callable[[], Any] | None = None  # waits for another thread, if one compiles
        self._fits = False  # whether it was asked and found to fit into the devices' memory

    def compile(
        self, members: PyTree, shared: PyTree, into: PyTree = None, pool: Executor | None = None
    ) -> None:
        """Trace now and compile, unless that was done before.

        Args:
          members: arguments of a call, or their shapes.
          shared: likewise.
          into: likewise.
          pool: compiles while others run; None: it is compiled now.
        """
        if self._compiled is not None:
            return
        self._signature = _abstract((members, shared, into))
        lowered = _timed("tracing", lambda: self._call.lower(members, shared, into))
        work = functools.partial(lowered.compile, compiler_options=self.options)
        if pool is not None:
            self._compiled = pool.submit(_timed, "compiling", work).result
            return
        compiled = _timed("compiling", work)
        self._compiled = lambda: compiled

    def __call__(self, members: PyTree, shared: PyTree, into: PyTree = None) -> PyTree:
        # ahead of time here too: what jit keeps is lost when JAX's caches are cleared (``make_room``)
        if self._compiled is None:
            self.compile(members, shared, into)
        elif _abstract((members, shared, into)) != self._signature:
            self._call.lower(members, shared, into)  # a second trace, which raises
        if not self._fits and (too_large := self.too_large()) is not None:
            raise too_large
        self._fits = True
        call = self._waited()
        with profile.span(f"run: {self.name}"):
            out = call(members, shared, into)
            if profile.recording():
                jax.block_until_ready(out)
        return out

    def _waited(self) -> Any:
        """What was compiled, or will be by another thread."""
        assert self._compiled is not None
        with profile.span("wait for a compile", self.name):
            return self._compiled()

    def too_large(self) -> TooLarge | None:
        """What to raise instead of running it, which is compiled already, where a device's memory has room
        for fewer members at once only. None on CPU, and for one member, which is tried."""
        compiled, width = self._waited(), self.layout.width
        fewer = machine.fitting_width(compiled, width)
        if fewer == width:
            return None
        return TooLarge(
            machine.needed_bytes(compiled)[0], layout_for(self.layout.capacity, fewer).width
        )

    def member_bytes(self, members: PyTree) -> int:
        """Bytes of memory that each of ``members`` takes while the program runs: what it is called with, what
        comes out, and what is computed on the way, which few at once share. It is compiled already."""
        needed = self._waited().memory_analysis()  # of one device
        if needed is None:  # this backend has none
            return 0
        each = self.layout.capacity // jax.device_count()
        arguments = sum(leaf.nbytes for leaf in jax.tree.leaves(members)) // self.layout.capacity
        return arguments + (needed.output_size_in_bytes + needed.temp_size_in_bytes) // each


def fitting_members(needed: int) -> int | None:
    """Returns how many members of so many bytes fit into a device's memory, None where that is not known."""
    room = machine.FITS * machine.offered().memory
    return int(room / needed) if math.isfinite(room) else None


def _map_into(run: Callable[[PyTree], PyTree], groups: PyTree, into: PyTree) -> PyTree:
    """``jax.lax.map(run, groups)``, written over ``into``."""

    def write(i: Any, out: PyTree) -> PyTree:
        group = jax.tree.map(lambda a: jax.lax.dynamic_index_in_dim(a, i, keepdims=False), groups)
        new = run(group)
        return jax.tree.map(
            lambda all_groups, a: jax.lax.dynamic_update_index_in_dim(all_groups, a, i, 0), out, new
        )

    return jax.lax.fori_loop(0, leading(groups), write, into)


_LOCK = threading.Lock()  # of the seconds below, which compiling threads add to
_SPENT = {"tracing": 0.0, "compiling": 0.0}  # seconds of this process, over all threads


def _timed(what: str, do: Callable[[], Any]) -> Any:
    began = time.monotonic()
    try:
        return do()
    finally:
        with _LOCK:
            _SPENT[what] += time.monotonic() - began


def compile_seconds(*what: str) -> float:
    """Seconds that this process has spent "tracing" and "compiling" programs of trials, added over threads.
    Every process traces again; what is compiled is kept for others (``vfljax.use_this_machine``)."""
    with _LOCK:
        return sum(_SPENT[name] for name in what or _SPENT)


_PROGRAMS: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()


def program(
    make: Callable[..., Callable[[PyTree, PyTree], PyTree]],
    static: tuple[Hashable, ...],
    layout: Layout,
    members: PyTree,
    shared: PyTree,
    into: PyTree = None,
    level: int | None = None,
    fitting: bool = False,
) -> Program:
    """Returns the program of ``make(*static)`` for arguments of these shapes: equal ones share one.

    Args:
      make: a function of a module, so that the key names all that is compiled.
      static: its arguments.
      layout: of the members.
      members: arguments of a call, or their shapes.
      shared: likewise.
      into: likewise.
      level: of ``compiler_options``.
      fitting: whether fewer members of the same capacity are mapped at once where those of the layout do not
        fit into a device's memory: for calls whose width is stored nowhere.
    """
    while True:
        key = (make, static, layout, level, _abstract((members, shared, into)))
        candidate = _cached(key, lambda layout=layout: Program(make(*static), layout, level))
        if not fitting or machine.offered().cpu:
            return candidate
        candidate.compile(members, shared, into)
        too_large = candidate.too_large()
        if too_large is None:
            return candidate
        layout = Layout(layout.capacity, dividing_width(layout.capacity, too_large.width))


def compiled(
    make: Callable[..., Callable[..., PyTree]],
    static: tuple[Hashable, ...],
    arguments: tuple[PyTree, ...],
    level: int | None = None,
) -> Callable[..., PyTree]:
    """Returns ``make(*static)``, compiled without a member axis.

    Args:
      make: as for ``program``.
      static: its arguments.
      arguments: of a call.
      level: of ``compiler_options``.
    """

    def build() -> Any:
        lowered = jax.jit(make(*static)).lower(*arguments)
        return lowered.compile(compiler_options=compiler_options(level))

    return _cached((make, static, level, _abstract(arguments)), build)


def _cached(key: Hashable, build: Callable[[], Any]) -> Any:
    if key in _PROGRAMS:
        _PROGRAMS.move_to_end(key)
        return _PROGRAMS[key]
    make_room()
    built = _PROGRAMS[key] = build()
    return built


def make_room() -> None:
    """Forget compiled programs when this process nears its limit of memory maps: those of this cache,
    the older half first, and JAX's own. A caller that still holds a program keeps it."""
    if _memory_maps() < MOST_MAPS:
        return
    for _ in range((len(_PROGRAMS) + 1) // 2):
        _PROGRAMS.popitem(last=False)
    jax.clear_caches()
    gc.collect()


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
