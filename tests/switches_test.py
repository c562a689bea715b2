"""JAX's switches: what no sweep can be trained with is refused, and what changes figures is stored."""

import contextlib

import jax
import pytest

from tests.refusals import refused
from tests.sweeps import tiny
from vfljax import switches
from vfljax.store import header
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import make_plan


@contextlib.contextmanager
def switched(name, value):
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jax_debug_nans", True),
        ("jax_default_prng_impl", "rbg"),
        ("jax_numpy_dtype_promotion", "strict"),
        ("jax_transfer_guard_host_to_device", "disallow_explicit"),
    ],
)
def test_a_switch_that_stops_sweeps_is_refused_when_one_is_planned(name, value):
    remedy = f"unset {name.upper()}, or jax.config.update({name!r}, "
    with switched(name, value), refused(f"{name}={value!r} ", remedy):
        make_plan(parse(tiny()))
    switches.check()


def test_a_switch_that_changes_no_figure_is_neither_refused_nor_stored():
    before = switches.changed()
    for name, value in (("jax_debug_key_reuse", True), ("jax_transfer_guard", "log")):
        with switched(name, value):
            switches.check()
            assert switches.changed() == before


def test_switches_that_change_figures_are_stored_in_the_header(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert switches.changed() == {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    monkeypatch.delenv("XLA_FLAGS")
    with switched("jax_default_matmul_precision", "bfloat16"):
        assert switches.changed() == {"jax_default_matmul_precision": "bfloat16"}
    with switched("jax_threefry_partitionable", False):
        assert switches.changed() == {"jax_threefry_partitionable": False}
    assert switches.changed() == {}


def test_a_sweep_does_not_go_on_with_another_generator(tmp_path):
    usual = {"config": tiny(), "checksum": "", "identity": "", "pretrained": {}}
    usual |= {"reader": 1, "switches": {}}
    flags = {**usual, "switches": {"XLA_FLAGS": "--x", "jax_default_matmul_precision": "high"}}
    header.refuse_another(tmp_path, usual, flags)
    other = {**usual, "switches": {"jax_threefry_partitionable": False}}
    header.refuse_another(tmp_path, other, other)
    for stored, asked, says in ((usual, other, "True -> False"), (other, usual, "False -> True")):
        with refused(f"another sweep (jax_threefry_partitionable: {says})"):
            header.refuse_another(tmp_path, stored, asked)


def test_a_platform_that_is_not_there_is_one_line(monkeypatch):
    for error in (RuntimeError("Unable to initialize backend 'tpu'"), AssertionError()):

        def missing(error=error):
            raise error

        monkeypatch.setattr(jax, "default_backend", missing)
        with refused("JAX_PLATFORMS=", "names no devices that JAX finds here", "give cpu"):
            switches.check()
