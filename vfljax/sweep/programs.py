"""Compiles pure functions of one trial for many trials and all devices, keeps all such programs in one cache,
and sets how much XLA's compiler for CPUs optimizes them.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import gc
import importlib.metadata
import itertools
import os
import pathlib
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Executor
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from vfljax import machine
from vfljax.sweep import profile
from vfljax.sweep.batch_layout import AXIS, BY_MEMBER, SAME, Layout, dividing_width, leading
from vfljax.types import Array, PyTree

# compiled programs hold memory maps, of which Linux allows a process 65,530; XLA crashes without one
MOST_MAPS = 40_000
BETWEEN_COUNTS = 4
"""The memory maps are counted before one of so many builds, because the system takes 30 ms to list 30,000."""
FLAG = "xla_backend_optimization_level"
# kernels without MLIR and in one module. jaxlib 0.12 has no such emitters, and refuses an option that it does
# not know
PLAIN: dict[str, Any] = {"xla_cpu_parallel_codegen_split_count": 1}
if importlib.metadata.version("jaxlib").startswith(("0.10.", "0.11.")):
    PLAIN["xla_cpu_use_fusion_emitters"] = False
# least, quick and plain effort. Least compiles in a fifth of the time of quick, and runs up to five times as
# long. Plain compiles attacks in half of the time of quick, and they run as long, but for those with
# ``AttackRow.full_effort``; steps of training run for a tenth longer
LEVELS: tuple[dict[str, Any], ...] = ({FLAG: 0, **PLAIN}, {FLAG: 1}, {FLAG: 1, **PLAIN})


class Effort(NamedTuple):
    """The optimization level of each kind of program; None is XLA's default, full effort.

    A program that runs only for a short time is compiled with little effort. Another level changes figures in
    their last bits, so the level is chosen once, from the plan's estimate, and stored with the sweep.
    """

    training: int | None = None  # also of initial weights
    attacks: int | None = None
    evaluation: int | None = None  # of trained networks
    scoring: int | None = None  # of attacks


def compiler_options(level: int | None) -> dict[str, Any]:
    """Returns the compiler's options of a level.

    They are empty for None, on accelerators, and if ``XLA_FLAGS`` sets a level for every program.
    """
    chosen = FLAG in os.environ.get("XLA_FLAGS", "")
    if level is None or chosen or not machine.offered().cpu:
        return {}
    return LEVELS[level]


class Program:
    """``run(member, shared) -> out`` compiled once, for ``layout.capacity`` members.

    ``members`` has a leading axis of ``layout.capacity``, and ``shared`` is the same for every member. They
    come from ``Layout.pad`` and ``share``. Results include the padding, which ``unpad`` removes. ``traces``
    counts how often the program was traced: a second time is a defect (a knob became static, or a shape
    changed), and raises.

    With ``count`` only the first ``count`` members are sure to be computed: groups of ``layout.width`` members
    that hold none of them are skipped, and their results are arbitrary.

    ``into`` are earlier results of the same shapes. New results are written over them, so that they cannot be
    read after the call. Fresh memory for the record of hundreds of trials would take about a tenth of an
    epoch's time on CPU, because the system clears each of its pages (measured).
    """

    def __init__(
        self, run: Callable[[PyTree, PyTree], PyTree], layout: Layout, level: int | None = None
    ) -> None:
        """``level`` is that of ``compiler_options``."""
        self.layout, self.traces, self.options = layout, 0, compiler_options(level)
        self.name = getattr(run, "__name__", type(run).__name__)
        devices, width = jax.devices(), layout.width
        local = layout.capacity // len(devices)

        def over_local_members(
            members: PyTree, shared: PyTree, into: PyTree, real: Array
        ) -> PyTree:
            self.traces += 1
            _OF_THREAD.traces = traces() + 1
            if self.traces > 1:
                raise AssertionError("a program was traced twice: a knob became a static value")

            # jitted, because the shapes of results are asked for before the loop: it is traced once
            @functools.partial(jax.jit, inline=True)
            def run_some(group: PyTree) -> PyTree:
                return jax.vmap(run, in_axes=(0, None))(group, shared)

            def grouped(tree: PyTree) -> PyTree:
                return jax.tree.map(lambda a: a.reshape(local // width, width, *a.shape[1:]), tree)

            if width == local:
                return run_some(members)
            groups = (real[0] + width - 1) // width
            out = _map_into(run_some, grouped(members), grouped(into), groups)
            return jax.tree.map(lambda a: a.reshape(local, *a.shape[2:]), out)

        over_local_members.__name__ = self.name  # the name in profiles and in dumps of XLA
        over_devices = jax.shard_map(
            over_local_members,
            mesh=Mesh(devices, (AXIS,)),
            in_specs=(BY_MEMBER, SAME, BY_MEMBER, BY_MEMBER),
            out_specs=BY_MEMBER,
            check_vma=False,
        )
        self._call = jax.jit(over_devices, donate_argnums=2)
        self._lock = threading.Lock()  # so that only one of several threads traces it
        self._signature: Hashable = None
        self._compiled: Callable[[], Any] | None = None  # waits for another thread, if one compiles
        self._fits = False  # whether it is known to fit into the devices' memory

    def compile(
        self, members: PyTree, shared: PyTree, into: PyTree = None, pool: Executor | None = None
    ) -> None:
        """Traces and compiles the program, unless that was done before.

        Args:
          members, shared, into: arguments of a call, or their shapes.
          pool: compiles the program in the background; None: it is compiled before this returns.
        """
        with self._lock:
            if self._compiled is None:
                self._compiled = self._compiling(members, shared, into, pool)

    def _compiling(
        self, members: PyTree, shared: PyTree, into: PyTree, pool: Executor | None
    ) -> Callable[[], Any]:
        """Traces the program. Returns what waits for its compiling, and returns it compiled."""
        self._signature = _abstract((members, shared, into))
        real = self.layout.on_each(self.layout.capacity)
        try:
            lower = functools.partial(self._call.lower, members, shared, into, real)
            with _spending("tracing"):
                lowered = _noted("tracing", self.name, lower)
        except Exception:  # of the code of a defense or an attack, which may be tried again
            self.traces = 0
            raise
        work = functools.partial(lowered.compile, compiler_options=self.options)
        if pool is not None:
            return pool.submit(_noted, "compiling", self.name, work).result
        with _spending("compiling"):
            compiled = _noted("compiling", self.name, work)
        return lambda: compiled

    def __call__(
        self, members: PyTree, shared: PyTree, into: PyTree = None, count: int | None = None
    ) -> PyTree:
        # compiled ahead of time here too, because ``make_room`` clears the programs that jit keeps
        real = self.layout.on_each(self.layout.capacity if count is None else count)
        if self._compiled is None:
            self.compile(members, shared, into)
        elif _abstract((members, shared, into)) != self._signature:
            self._call.lower(members, shared, into, real)  # a second trace, which raises
        if not self._fits and not self.fits():
            needed = machine.bytes_text(machine.needed_bytes(self.waited()))
            memory = machine.bytes_text(machine.offered().memory)
            what = f"the program needs {needed} of a device's {memory}"
            raise jax.errors.JaxRuntimeError(f"RESOURCE_EXHAUSTED: {what}")
        self._fits = True
        call = self.waited()
        with profile.span(f"run: {self.name}"), _spending("running"):
            out = call(members, shared, into, real)
            if profile.recording():
                jax.block_until_ready(out)
        return out

    def run_whole(self, members: PyTree, shared: PyTree, count: int) -> PyTree:
        """Returns the results of a call once they are computed, so that its seconds count as running."""
        out = self(members, shared, count=count)
        with _spending("running"):
            return jax.block_until_ready(out)

    def waited(self) -> Any:
        """Returns the compiled program. It waits if another thread still compiles it."""
        assert self._compiled is not None
        with profile.span("wait for a compile", self.name), _spending("compiling"):
            return self._compiled()

    def fits(self) -> bool:
        """Returns whether the compiled program fits into a device's memory. One that maps one member at once is
        tried whatever it needs."""
        return self.layout.width == 1 or machine.fits(self.waited())


def _map_into(
    run: Callable[[PyTree], PyTree], groups: PyTree, into: PyTree, count: Array
) -> PyTree:
    """Computes ``jax.lax.map(run, groups)`` of the first ``count`` groups, and writes it over ``into``, or over
    new arrays if that is None."""

    def group_of(i: Any) -> PyTree:
        return jax.tree.map(lambda a: jax.lax.dynamic_index_in_dim(a, i, keepdims=False), groups)

    if into is None:
        one = jax.eval_shape(lambda: run(group_of(0)))
        into = jax.tree.map(lambda a: jax.lax.empty((leading(groups), *a.shape), a.dtype), one)

    def write(i: Any, out: PyTree) -> PyTree:
        new = run(group_of(i))
        return jax.tree.map(
            lambda all_groups, a: jax.lax.dynamic_update_index_in_dim(all_groups, a, i, 0), out, new
        )

    return jax.lax.fori_loop(0, count, write, into)


_OF_THREAD = threading.local()
_LOCK = threading.Lock()  # of the list below and of the programs, which several threads change
_COMPILING: list[str] = []  # what its threads do now, such as "compiling attack_norm"


def _noted(what: str, name: str, do: Callable[[], Any]) -> Any:
    with _LOCK:
        _COMPILING.append(f"{what} {name}")
    try:
        return do()
    finally:
        with _LOCK:
            _COMPILING.remove(f"{what} {name}")


def compiling() -> list[str]:
    """Returns what the threads of this process trace or compile now, such as "compiling attack_norm"."""
    with _LOCK:
        return list(dict.fromkeys(_COMPILING))


def traces() -> int:
    """Returns how many programs of trials this thread has traced."""
    return getattr(_OF_THREAD, "traces", 0)


class Spent(NamedTuple):
    """What this thread has spent on programs of trials so far, in seconds, and how many it has traced."""

    tracing: float = 0.0  # and lowering
    compiling: float = 0.0  # or waiting for a thread that compiles
    running: float = 0.0
    traces: int = 0


def spent() -> Spent:
    """Returns what this thread has spent so far."""
    seconds = getattr(_OF_THREAD, "seconds", {})
    return Spent(**seconds, traces=traces())


def spent_since(before: Spent) -> Spent:
    """Returns what this thread has spent since ``before``."""
    now = spent()
    return Spent(
        now.tracing - before.tracing,
        now.compiling - before.compiling,
        now.running - before.running,
        now.traces - before.traces,
    )


@contextlib.contextmanager
def _spending(kind: str) -> Iterator[None]:
    start = time.monotonic()
    try:
        yield
    finally:
        seconds = _OF_THREAD.__dict__.setdefault("seconds", {})
        seconds[kind] = seconds.get(kind, 0.0) + time.monotonic() - start


_PROGRAMS: collections.OrderedDict[Hashable, Any] = collections.OrderedDict()
_BUILDS = itertools.count()


def program(
    make: Callable[..., Callable[[PyTree, PyTree], PyTree]],
    static: tuple[Hashable, ...],
    layout: Layout,
    arguments: tuple[PyTree, ...],
    level: int | None = None,
    fitting: bool = False,
) -> Program:
    """Returns the program of ``make(*static)`` for arguments of these shapes. Equal requests share a program.

    Args:
      make: a function of a module, not a closure, so that the cache's key determines the program.
      static: its arguments.
      layout: of the members.
      arguments: members, shared and maybe ``into`` of a call, or their shapes.
      level: of ``compiler_options``.
      fitting: whether the width is halved, at the same capacity, until the program fits into a device's memory.
        This is for calls whose width is not stored.
    """
    while True:
        key = (make, static, layout, level, _abstract(arguments))
        candidate = _cached(key, lambda layout=layout: Program(make(*static), layout, level))
        if not fitting or machine.offered().cpu:
            return candidate
        candidate.compile(*arguments)
        if candidate.fits():
            return candidate
        width = dividing_width(layout.capacity, layout.width // 2)
        layout = dataclasses.replace(layout, width=width)


def compiled(
    make: Callable[..., Callable[..., PyTree]],
    static: tuple[Hashable, ...],
    arguments: tuple[PyTree, ...],
    level: int | None = None,
) -> Callable[..., PyTree]:
    """Returns ``make(*static)``, compiled without a member axis.

    Args:
      make, static: as for ``program``.
      arguments: those of a call.
      level: of ``compiler_options``.
    """

    def build() -> Any:
        lowered = jax.jit(make(*static)).lower(*arguments)
        return lowered.compile(compiler_options=compiler_options(level))

    return _cached((make, static, level, _abstract(arguments)), build)


def _cached(key: Hashable, build: Callable[[], Any]) -> Any:
    with _LOCK:
        if key in _PROGRAMS:
            _PROGRAMS.move_to_end(key)
            return _PROGRAMS[key]
    if next(_BUILDS) % BETWEEN_COUNTS == 0:
        make_room()
    built = build()
    with _LOCK:
        return _PROGRAMS.setdefault(key, built)  # another thread may have built it meanwhile


def make_room() -> None:
    """Drops compiled programs when this process nears its limit of memory maps: the half of this cache that
    was used least recently, and all of JAX's own. A caller that still holds a program keeps it."""
    if _memory_maps() < MOST_MAPS:
        return
    with _LOCK:
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
    """Returns a tree's structure and what tracing distinguishes of its arrays: shape, type, weak type."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(jax.typeof(leaf) for leaf in leaves)
