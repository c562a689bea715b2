"""The machine's setup: a device a core, and a cache of compiled programs that runs share."""

import logging
import math
import os

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from vfljax import machine
from vfljax.machine import default_cache, processor, trim, use_this_machine
from vfljax.models import MLP, parties

SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_enable_compilation_cache",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
    "jax_persistent_cache_enable_xla_caches",
)
PRECISION = "jax_default_matmul_precision"
CPUINFO = "processor : 0\nmodel\t: {model}\nflags\t: {flags}\ncpu MHz : {mhz}\n\nprocessor : 1\n"


def settings():
    return {name: getattr(jax.config, name) for name in SETTINGS}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A user's cache folder of the test, no setting in the environment, and JAX's settings back."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    before = {**settings(), PRECISION: getattr(jax.config, PRECISION)}
    jax.config.update("jax_compilation_cache_dir", None)
    yield tmp_path / "home"
    for name, value in before.items():
        jax.config.update(name, value)
    reset_cache()


def entry(folder, name, size, used):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-cache"
    path.write_bytes(bytes(size))
    os.utime(path, (used, used))
    return path


@pytest.mark.parametrize(
    ("backend", "chosen", "used"),
    [("cpu", None, None), ("gpu", None, "float32"), ("gpu", "tensorfloat32", "tensorfloat32")],
)
def test_float32_means_float32_unless_it_was_chosen_otherwise(monkeypatch, backend, chosen, used):
    jax.config.update(PRECISION, chosen)
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    use_this_machine()
    assert getattr(jax.config, PRECISION) == used


def lowered(function, platform):
    """How each product of two matrices in ``function`` is to be computed on a platform."""
    x = jax.ShapeDtypeStruct((4, 4), jnp.float32)
    text = jax.jit(function).trace(x).lower(lowering_platforms=(platform,)).as_text()
    return [line[line.index("precision") :] for line in text.splitlines() if "dot_general" in line]


def test_products_are_whole_in_float32_on_accelerators_and_as_fast_as_may_be_in_bfloat16(
    monkeypatch,
):
    platform = "cuda"
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    use_this_machine()
    types = "(tensor<4x4x{0}>, tensor<4x4x{0}>) -> tensor<4x4x{0}>".format
    whole = f"precision = [HIGHEST, HIGHEST] : {types('f32')}"
    fast = f"precision = [DEFAULT, DEFAULT] : {types('bf16')}"
    assert lowered(lambda x: x @ x, platform) == [whole]
    module = MLP((4,), 4)
    party, variables = (
        parties.from_module(module, "bfloat16"),
        module.init(jax.random.key(0), jnp.ones((4, 4))),
    )

    def total(x):
        return party.apply(variables, x, False, None)[0].sum()

    assert lowered(total, platform) == [fast, whole]
    assert set(lowered(jax.grad(total), platform)) == {fast, whole}


def test_the_folder_is_the_users_and_jax_is_told(home, monkeypatch):
    folder = use_this_machine(min_compile_seconds=0.25)
    assert folder is not None
    assert folder == default_cache()
    assert folder.is_dir()
    assert folder.is_relative_to(home / "vfljax")
    assert [*settings().values()] == [str(folder), True, 0.25, -1, "none"]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(home))
    assert default_cache().parent == home / ".cache" / "vfljax"


def test_started_backends_keep_their_devices(monkeypatch, caplog):
    devices = jax.device_count()
    monkeypatch.setattr(machine, "cores", lambda: devices + 1)
    with caplog.at_level(logging.WARNING):
        use_this_machine()
    assert jax.device_count() == devices
    (record,) = caplog.records
    assert f"{devices} CPU devices for {devices + 1} cores" in record.getMessage()


def test_a_folder_that_cannot_be_written_is_skipped_with_one_line(home, caplog):
    home.write_text("not a folder")
    with caplog.at_level(logging.WARNING):
        assert use_this_machine() is None
    said = [r.getMessage() for r in caplog.records if "compiled programs" in r.getMessage()]
    assert len(said) == 1
    assert settings()["jax_compilation_cache_dir"] is None


def test_a_cache_that_is_switched_off_stays_off(home):
    jax.config.update("jax_enable_compilation_cache", False)
    assert use_this_machine() is None
    assert not home.exists()


def test_the_default_folder_differs_by_version_and_processor(tmp_path, monkeypatch):
    cpuinfo = tmp_path / "cpuinfo"

    def of(**values):
        cpuinfo.write_text(CPUINFO.format(**{"model": 1, "flags": "avx avx2", "mhz": 1, **values}))
        return processor(cpuinfo)

    base = of()
    assert of(mhz=2) == base  # what changes while a machine runs must not lose the cache
    assert len({base, of(flags="avx"), of(model=2), processor(tmp_path / "absent")}) == 4
    monkeypatch.setattr(machine.platform, "machine", lambda: "another")
    assert of() != base
    assert default_cache().name == f"{jax.__version__}-{processor()}"
    monkeypatch.setattr(jax, "__version__", "99.0")
    assert default_cache().name.startswith("99.0-")


def test_the_least_recently_used_entries_are_removed(tmp_path):
    old = entry(tmp_path, "old", 100, used=1)
    read = entry(tmp_path, "read", 100, used=1)
    os.utime(read, (3, 1))  # a read counts as a use
    middle = entry(tmp_path / "other", "middle", 100, used=2)
    new = entry(tmp_path, "new", 100, used=3)
    other = tmp_path / "readme"
    other.write_bytes(bytes(1000))
    assert trim(tmp_path, 400) == 0
    assert trim(tmp_path, 250) == 200
    assert [p.exists() for p in (old, middle, read, new, other)] == [False, False, True, True, True]


def test_entries_of_other_versions_are_trimmed_too(home, monkeypatch):
    old = entry(home / "vfljax" / "0.1-0123456789ab", "old", 100, used=1)
    monkeypatch.setattr(machine, "CACHE_BYTES", 99)
    use_this_machine()
    assert not old.exists()


def test_the_environment_names_the_folder_which_is_not_trimmed(tmp_path, monkeypatch):
    kept = entry(tmp_path / "named", "other_project", 100, used=1)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "named"))
    monkeypatch.setattr(machine, "CACHE_BYTES", 0)
    assert use_this_machine() == tmp_path / "named"
    assert settings()["jax_compilation_cache_dir"] == str(tmp_path / "named")
    assert kept.exists()


def test_free_memory_is_the_kernel_s_figure_or_unknown(tmp_path, monkeypatch):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:    5 kB\n")
    assert machine.free_memory(meminfo) == 5 * 1024
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_AVPHYS_PAGES": 3}.get(name, 4096))
    assert machine.free_memory(tmp_path / "absent") == 3 * 4096
    monkeypatch.delattr(os, "sysconf")
    assert machine.free_memory(tmp_path / "absent") == math.inf


class Device:
    """A device that says this of its memory."""

    def __init__(self, stats):
        self.memory_stats = lambda: stats


class Compiled:
    """A program that needs so many bytes for its arguments and results, and for each that it maps."""

    def __init__(self, ends, each, width):
        self.ends, self.running, self.width = ends, each * width, width

    def __call__(self, most):
        if self.width > most:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating")
        return self.width

    def memory_analysis(self):
        names = "argument", "output", "alias", "temp"
        sizes = self.ends, 50, 50, self.running
        fields = {f"{n}_size_in_bytes": size for n, size in zip(names, sizes, strict=True)}
        return type("Sizes", (), fields)


def offers(monkeypatch, **fields):
    """Make the backend an accelerator that offers this."""
    monkeypatch.setattr(machine, "offered", lambda: machine.Offered(False, **fields))


def test_an_accelerator_offers_what_its_smallest_device_has_and_a_cpu_has_no_limit(monkeypatch):
    assert machine.offered() == machine.Offered(cpu=True, memory=math.inf, host=math.inf)
    assert machine.rows_at_once(1024) == 1024
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for stats, memory in (([80, 60], 60.0), ([80, None], 80.0), ([None], math.inf)):
        devices = [Device(limit and {"bytes_limit": limit, "bytes_in_use": 9}) for limit in stats]
        monkeypatch.setattr(jax, "local_devices", lambda devices=devices: devices)
        offer = machine.offered()
        assert (offer.cpu, offer.memory) == (False, memory)
        assert offer.host > 1 << 20
        assert offer.part(0.5, 7) == (7 if math.isinf(memory) else memory // 2)


def test_the_width_is_halved_until_it_fits_by_the_memory_analysis_and_the_call(monkeypatch):
    widths = []

    def compile_for(width):
        widths.append(width)
        return Compiled(100, 9, width)

    for memory, tried in (
        (math.inf, [100]),
        (1250, [100]),  # 100 + 9 * 100 bytes are 0.8 of 1250
        (1249, [100, 50]),
        (400, [100, 50, 25, 12]),
        (1, [100, 50, 25, 12, 6, 3, 1]),  # one is tried
    ):
        offers(monkeypatch, memory=memory)
        widths.clear()
        assert machine.run_fitting(compile_for, 100, (100,)) == tried[-1]
        assert widths == tried
    # what the analysis does not say, the call does
    offers(monkeypatch, memory=math.inf)
    assert machine.run_fitting(compile_for, 100, (30,)) == 25
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        machine.run_fitting(compile_for, 100, (0,))
    assert widths[-1] == 1
    nothing_said = type("Silent", (), {"memory_analysis": lambda self: None})()
    assert machine.fits(nothing_said)


@pytest.mark.parametrize(
    ("gigabytes", "times"), [(math.inf, 1), (6, 1), (8, 1), (18, 2), (60, 4), (1000, 8)]
)
def test_an_accelerator_evaluates_more_rows_at_a_time(monkeypatch, gigabytes, times):
    offers(monkeypatch, memory=gigabytes * 2.0**30)
    assert machine.rows_at_once(128) == 128 * times
