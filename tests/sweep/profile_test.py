"""Where seconds go: kinds add up to the whole, and threads are told apart."""

import gzip
import json
import threading
import time

import jax.numpy as jnp
import pytest

from vfljax.sweep import batch_layout, profile, programs
from vfljax.sweep.profile import Span

SPANS = [
    Span("start-up", "", 0.0, 2.0, 1),
    Span("trace", "f", 3.0, 4.0, 1),
    Span("compile", "f", 4.0, 7.0, 1),
    Span("compile", "g", 4.5, 9.5, 2),  # another thread's
    Span("training", "", 2.0, 9.0, 1),
    Span("report", "", 9.0, 9.5, 1),
]


def test_seconds_are_counted_once_and_add_up_to_the_whole():
    rows = {row[0]: row[1:] for row in profile.table(SPANS)}
    assert rows["training"] == ("1", "3.0", "32%", "")
    assert rows["compile"] == ("2", "3.0", "32%", "5.0")
    assert rows["whole"] == ("1", "9.5", "100%", "5.0")
    parts = [float(row[1]) for kind, row in rows.items() if kind != "whole"]
    assert sum(parts) == pytest.approx(9.5)
    assert list(rows)[-2:] == ["all else", "whole"]


def test_an_attack_s_seconds_are_divided_by_what_its_own_thread_did():
    """Tracing ahead and the unit itself are two spans of an attack; other threads are in neither."""
    spans = [
        *SPANS,
        Span("lower", "g", 10.0, 10.5, 1),
        Span(profile.ATTACKS, "probe", 10.0, 11.0, 1),
        Span("compile", "h", 10.0, 20.0, 2),
        Span("wait for a compile", "g", 11.0, 13.0, 1),
        Span("run: attack_probe", "", 13.0, 14.5, 1),
        Span(profile.ATTACKS, "probe", 11.0, 15.0, 1),
        Span(profile.ATTACKS, "logistic", 15.0, 15.5, 1),
    ]
    assert profile.by_attack(spans) == [
        ("probe", "5.0", "0.5", "2.0", "1.5", "1.0"),
        ("logistic", "0.5", "0.0", "0.0", "0.0", "0.5"),
    ]
    assert profile.by_attack(SPANS) == []


def test_the_trace_has_every_span(tmp_path):
    profile.write(SPANS, tmp_path / "trace.json.gz")
    with gzip.open(tmp_path / "trace.json.gz", "rt") as file:
        events = json.load(file)["traceEvents"]
    assert len(events) == len(SPANS)
    (other,) = [event for event in events if event["tid"] == 2]
    assert (other["name"], other["ph"], other["ts"], other["dur"]) == ("compile g", "X", 4.5e6, 5e6)


def double(member, shared):
    return 2 * member + shared


def test_a_program_s_trace_compile_and_run_are_recorded_until_it_is_stopped():
    layout = batch_layout.layout(4)
    arguments = layout.pad(jnp.arange(4.0)), batch_layout.share(jnp.float32(1))
    profile.record(time.monotonic())
    program = programs.Program(double, layout)
    program(*arguments)
    found = profile.stop()
    assert {"start-up", "trace", "lower", "compile", "run: double"} <= {s.kind for s in found}
    assert {span.name for span in found if span.kind == "compile"} >= {"jit(double)"}
    assert {span.thread for span in found} == {threading.get_ident()}
    assert profile.stop() == []
