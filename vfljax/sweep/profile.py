"""Where a command's seconds go: tracing, lowering and compiling programs, running them, and the host's work.

``record`` starts recording JAX's own events and the bodies of ``span``. Without it nothing is recorded, and
no call waits for its program to end.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import gzip
import json
import pathlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax

EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
    "/jax/compilation_cache/cache_retrieval_time_sec": "read a compiled program",
}
ATTACKS = "attacks, the host's work"
"""The kind of the spans of attacks, whose name is the attack's."""
OF_PROGRAMS = {
    **dict.fromkeys(("trace", "lower", "wait for a trace"), "tracing"),
    **dict.fromkeys(("compile", "read a compiled program", "wait for a compile"), "compiling"),
}
BY_ATTACK = ("attack", "seconds", "tracing", "compiling", "running", "host")
COLUMNS = ("kind", "count", "seconds", "share", "beside it")


class Span(NamedTuple):
    """A stretch of time of one thread; ``start`` and ``end`` are in seconds of ``time.monotonic``."""

    kind: str
    name: str
    start: float
    end: float
    thread: int


_SPANS: list[Span] | None = None  # None: nothing is recorded


def recording() -> bool:
    """Returns whether this process is recording."""
    return _SPANS is not None


def _add(kind: str, name: str, start: float) -> None:
    if _SPANS is not None:
        _SPANS.append(Span(kind, name, start, time.monotonic(), threading.get_ident()))


def record(began: float) -> None:
    """Starts recording. The time from ``began``, of ``time.monotonic``, until now counts as "start-up"."""
    global _SPANS
    _listen()
    _SPANS = []
    _add("start-up", "", began)


def stop() -> list[Span]:
    """Stop recording; returns what was recorded, in the order in which it ended."""
    global _SPANS
    recorded, _SPANS = _SPANS or [], None
    return recorded


@functools.cache
def _listen() -> None:
    """Registers a listener of JAX's events, once per process, because it cannot be removed."""

    def on_event(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event in EVENTS:
            began = time.monotonic() - duration_secs
            _add(EVENTS[event], str(kwargs.get("fun_name", "")), began)

    jax.monitoring.register_event_duration_secs_listener(on_event)


@contextlib.contextmanager
def span(kind: str, name: str = "") -> Iterator[None]:
    """Records the time that the body takes, if this process is recording.

    Args:
      kind: the row of ``table`` that counts it.
      name: a name that the trace shows.
    """
    start = time.monotonic()
    try:
        yield
    finally:
        _add(kind, name, start)


def own_seconds(recorded: Sequence[Span]) -> list[float]:
    """Each span's seconds without those of the spans inside it, in the same order.

    >>> inner, outer = Span("compile", "", 1.0, 3.0, 7), Span("train", "", 0.0, 10.0, 7)
    >>> own_seconds([inner, outer])
    [2.0, 8.0]
    """
    seconds = [span.end - span.start for span in recorded]
    order = sorted(range(len(recorded)), key=lambda i: (recorded[i].start, -recorded[i].end))
    open_of: dict[int, list[int]] = collections.defaultdict(list)  # spans around, by thread
    for i in order:
        around = open_of[recorded[i].thread]
        while around and recorded[around[-1]].end <= recorded[i].start:
            around.pop()
        if around:
            seconds[around[-1]] -= recorded[i].end - recorded[i].start
        around.append(i)
    return seconds


def table(recorded: Sequence[Span]) -> list[tuple[str, str, str, str, str]]:
    """Returns rows of ``COLUMNS``: the kinds from the longest on, then all else, then the whole.

    Args:
      recorded: of one process. Seconds and shares are those of the first span's thread, and add up. "beside
        it" are the seconds of other threads, which trace and compile while that thread works.
    """
    whole = max(span.end for span in recorded) - min(span.start for span in recorded)
    count, here, beside = (collections.defaultdict[str, float](float) for _ in range(3))
    for span, seconds in zip(recorded, own_seconds(recorded), strict=True):
        count[span.kind] += 1
        (here if span.thread == recorded[0].thread else beside)[span.kind] += seconds
    kinds = sorted(count, key=lambda kind: -here[kind])
    rows = [(kind, count[kind], here[kind], beside[kind]) for kind in kinds]
    rows.append(("all else", 1, whole - sum(here.values()), 0.0))
    rows.append(("whole", 1, whole, sum(beside.values())))
    return [
        (kind, f"{number:,.0f}", f"{a:.1f}", f"{a / whole:.0%}", f"{b:.1f}" if b else "")
        for kind, number, a, b in rows
    ]


def by_attack(recorded: Sequence[Span]) -> list[tuple[str, ...]]:
    """Returns rows of ``BY_ATTACK``, the longest first: where the seconds of each attack went.

    Args:
      recorded: of one process. Seconds are those of the first span's thread: "compiling" includes waiting for
        other threads that compile, and "running" includes scoring.
    """
    main = recorded[0].thread
    outer = [span for span in recorded if span.kind == ATTACKS and span.thread == main]
    found: dict[str, dict[str, float]] = {}
    for span, seconds in zip(recorded, own_seconds(recorded), strict=True):
        around = (o for o in outer if o.start <= span.start and span.end <= o.end)
        attack = next(around, None) if span.thread == main else None
        if attack is not None:
            running = "running" if span.kind.startswith("run: ") else "host"
            of = found.setdefault(attack.name, dict.fromkeys(BY_ATTACK[2:], 0.0))
            of[OF_PROGRAMS.get(span.kind, running)] += seconds
    rows = {name: (sum(of.values()), *of.values()) for name, of in found.items()}
    order = sorted(rows, key=lambda name: -rows[name][0])
    return [(name, *(f"{seconds:.1f}" for seconds in rows[name])) for name in order]


def write(recorded: Sequence[Span], path: pathlib.Path) -> None:
    """Write a trace in Chrome's format, compressed, which Perfetto opens.

    Args:
      recorded: of one process.
      path: of the file, whose name ends in .json.gz.
    """
    began = min(span.start for span in recorded)
    events = [
        {
            "name": f"{span.kind} {span.name}".strip(),
            "cat": span.kind,
            "ph": "X",
            "ts": 1e6 * (span.start - began),
            "dur": 1e6 * (span.end - span.start),
            "pid": 0,
            "tid": span.thread,
        }
        for span in recorded
    ]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)
