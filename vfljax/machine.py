"""Sets up JAX for this machine: one host device per core, full float32 products, and a cache of programs.

    from vfljax.machine import use_this_machine

    use_this_machine()

A launcher or a notebook calls it once, before JAX's first computation. On a CPU it changes only the speed of
a computation. On accelerators it also changes how products of float32 numbers are rounded.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import logging
import math
import os
import pathlib
import platform
import shutil
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental.compilation_cache.compilation_cache import reset_cache

CACHE_BYTES = 2 << 30
FITS = 0.8  # share of a device's memory that a program may need; other arrays take the rest
CHUNK_MEMORY = 8 << 30  # bytes of an accelerator's memory per chunk of rows (``rows_at_once``)
# the lines of /proc/cpuinfo, on x86 and on ARM, that decide which machine code XLA emits
CPU_FIELDS = (
    *("vendor_id", "cpu family", "model", "flags"),
    *("CPU implementer", "CPU part", "Features"),
)

_log = logging.getLogger(__name__)


def cores() -> int:
    """Returns how many cores this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Offered(NamedTuple):
    """The memory of JAX's default backend, by which the sizes of programs are chosen. On a CPU its caches
    decide them, so ``memory`` is infinite; the plan of a sweep is checked against ``free_memory``."""

    cpu: bool
    memory: float = math.inf  # bytes of the smallest device, infinity if unknown
    host: float = math.inf  # bytes of the host's memory, infinity if unknown

    def part(self, share: float, otherwise: int) -> int:
        """Returns the bytes of a share of a device's memory.

        Args:
          share: from 0 to 1.
          otherwise: the result if the memory is not known.
        """
        return int(share * self.memory) if math.isfinite(self.memory) else otherwise


def offered() -> Offered:
    """Returns the memory of the default backend. All code that is sized by the backend calls this."""
    if jax.default_backend() == "cpu":
        return Offered(cpu=True)
    limits = map(_limit, jax.local_devices())
    return Offered(False, min(limits, default=math.inf), _pages("SC_PHYS_PAGES"))


def _limit(device: Any) -> float:
    """The bytes of a device's memory, infinity if that cannot be known."""
    return (device.memory_stats() or {}).get("bytes_limit", math.inf)


def _pages(name: str) -> float:
    """Returns the bytes of a number of pages, named as in ``os.sysconf``; infinity if the system has none."""
    try:
        return float(os.sysconf(name) * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def capability() -> float:
    """Returns the compute capability of JAX's default device if it is an NVIDIA GPU, else 0."""
    device = jax.devices()[0]
    try:
        return float(device.compute_capability)
    except (AttributeError, ValueError):  # no GPU, or one that names its architecture
        return 0.0


def needed_bytes(compiled: Any) -> int:
    """Returns the bytes of each device's memory that a compiled program needs: arguments, results and
    temporaries; 0 if the backend has no memory analysis."""
    sizes = compiled.memory_analysis()
    if sizes is None:
        return 0
    ends = sizes.argument_size_in_bytes + sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    return ends + sizes.temp_size_in_bytes


def fits(compiled: Any) -> bool:
    """Returns whether a compiled program needs at most the share ``FITS`` of a device's memory. It does if that
    memory is not known, and on a CPU."""
    limit = FITS * offered().memory
    return math.isinf(limit) or needed_bytes(compiled) <= limit


def run_fitting(compile_for: Callable[[int], Any], width: int, arguments: tuple[Any, ...]) -> Any:
    """Returns the results of a program, whose members at once are halved, down to one, while it needs more
    memory than a device has.

    Args:
      compile_for: compiles the program for a number of members at once.
      width: the number to begin with.
      arguments: of the program.
    """
    while True:
        compiled = compile_for(width)
        try:
            if width == 1 or fits(compiled):
                return jax.block_until_ready(compiled(*arguments))
        except jax.errors.JaxRuntimeError as error:
            if width == 1 or not exhausted(error):
                raise
        width //= 2


def rows_at_once(rows: int) -> int:
    """Returns how many rows are evaluated at a time, given ``rows``, the number for a CPU.

    On an accelerator they are multiplied by memory / ``CHUNK_MEMORY``, rounded down to 1, 2, 4 or 8.
    """
    count = min(8, offered().part(1.0, 0) // CHUNK_MEMORY)
    return rows << max(count.bit_length() - 1, 0)


def on_device(values: Any, dtype: Any = None) -> jax.Array:
    """Returns an array, or arrays of one shape stacked, on the device. On a CPU it may share the memory of
    ``values``. ``jnp.asarray`` would compile a program for each shape."""
    return jax.device_put(np.asarray(values, dtype))


def free_memory(meminfo: str | os.PathLike[str] = "/proc/meminfo") -> float:
    """Returns the bytes of the host's memory that are available, infinity if that cannot be known."""
    try:
        lines = pathlib.Path(meminfo).read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        return float(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return _pages("SC_AVPHYS_PAGES")


def free_disk(path: pathlib.Path) -> float:
    """Returns the free bytes of a path's disk; infinity if that cannot be known. The path need not exist."""
    folder = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    try:
        return float(shutil.disk_usage(folder).free)
    except OSError:
        return math.inf


def exhausted(error: BaseException) -> bool:
    """Returns whether the error says that a device's memory was exhausted."""
    return isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)


def bytes_text(count: float) -> str:
    """Returns a size as messages write it.

    >>> bytes_text(1.34e12), bytes_text(7e8), bytes_text(math.inf)
    ('1.3 TB', '700 MB', 'an unknown amount')
    """
    if math.isinf(count):
        return "an unknown amount"
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            number = count / size
            return f"{number:,.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"
    return f"{count / 1e3:,.0f} kB"


def use_this_machine(
    *, devices: int | None = None, min_compile_seconds: float = 0.5
) -> pathlib.Path | None:
    """Gives XLA one host device per core, makes float32 products full float32, and caches compiled programs.

    Call it before JAX's first computation: once JAX's backends are initialized, which this call does, the
    number of devices cannot change any more, and a warning says so. Calling it again is harmless.

    By default XLA rounds the operands of float32 products on accelerators: to TensorFloat-32 (11
    significant bits) on NVIDIA GPUs, to bfloat16 (8) on TPUs. There ``jax_default_matmul_precision`` is
    set to "float32", unless ``jax.config`` or the environment variable ``JAX_DEFAULT_MATMUL_PRECISION``
    chose it. Code that computes in bfloat16 on purpose (``vfljax.models.precision``) is not affected.

    JAX's persistent compilation cache is shared by every run of this user on this machine. Its folder is
    ``jax_compilation_cache_dir`` as it is configured in JAX or by the environment variable
    ``JAX_COMPILATION_CACHE_DIR``, which other projects may use too, else ``default_cache()``, which is trimmed
    to ``CACHE_BYTES`` together with those of other versions and processors. Entries are code that JAX runs:
    share a folder only with users you trust.

    Args:
      devices: number of host devices, for machines shared with other processes; None: one per core.
      min_compile_seconds: programs that compile faster are not kept: reading them back would save little.

    Returns:
      The folder of the cache, or None if there is none: either the folder cannot be created or written
      (one warning says so), or ``jax_enable_compilation_cache`` is off.
    """
    _host_devices(cores() if devices is None else devices)
    if jax.default_backend() != "cpu" and _configured("jax_default_matmul_precision") is None:
        jax.config.update("jax_default_matmul_precision", "float32")
    if not _configured("jax_enable_compilation_cache"):
        return None
    configured = _configured("jax_compilation_cache_dir")
    configured = configured or os.environ.get("JAX_COMPILATION_CACHE_DIR")
    try:
        folder = pathlib.Path(configured or default_cache()).expanduser().absolute()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()  # raises if the folder cannot be written
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        _log.warning("compiled programs are not kept between runs: %s", error)
        folder = None
    keep_compiled_programs(folder, min_compile_seconds)
    if folder is not None and not configured:
        trim(folder.parent, CACHE_BYTES)
    return folder


def default_cache() -> pathlib.Path:
    """Returns the default folder of the cache: ``<user's cache>/vfljax/<JAX>-<processor>``.

    XLA emits code for its own processor, and machines with different processors may share a home folder.
    """
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(home) / "vfljax" / f"{jax.__version__}-{processor()}"


def processor(cpuinfo: str | os.PathLike[str] = "/proc/cpuinfo") -> str:
    """Returns a hash, twelve hexadecimal digits, of all that compiled code depends on.

    It covers the architecture, the processor's model and features (``CPU_FIELDS`` of the first core in
    ``cpuinfo``, or ``platform.processor()`` if there is no such file), and the version of jaxlib.
    """
    try:
        first = pathlib.Path(cpuinfo).read_text().split("\n\n")[0]
        lines = [line.partition(":") for line in first.splitlines()]
        features = [
            f"{name.strip()}={value}" for name, _, value in lines if name.strip() in CPU_FIELDS
        ]
    except OSError:
        features = [platform.processor()]
    text = "\n".join([platform.machine(), importlib.metadata.version("jaxlib"), *features])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def trim(folder: pathlib.Path, max_bytes: int) -> int:
    """Remove the least recently used entries under ``folder`` until at most ``max_bytes`` are left.

    An entry's last use is its file's access time, or its modification time where the file system keeps none.
    JAX can evict entries itself (``jax_compilation_cache_max_size``), but it takes a lock at every access,
    reads every entry's record at every write, and fails at every write after a process was killed between an
    entry and its record. Trimming between runs suffices, because a single run adds little.

    Args:
      folder: folder of a cache, or a folder of several.
      max_bytes: size that may remain.

    Returns:
      The number of bytes removed.
    """
    entries = []
    for path in folder.rglob("*-cache"):
        with contextlib.suppress(OSError):  # another process removed it
            status = path.stat()
            entries.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    excess = sum(size for _, size, _ in entries) - max_bytes
    removed = 0
    for _, size, path in sorted(entries):
        if removed >= excess:
            break
        with contextlib.suppress(OSError):  # not ours to remove
            path.unlink(missing_ok=True)
            removed += size
    return removed


def _host_devices(count: int) -> None:
    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:  # the backends are initialized
        if jax.default_backend() == "cpu":
            _log.warning(
                "JAX has started already: %d CPU devices for %d cores. Call use_this_machine "
                "before JAX's first computation to use them all.",
                jax.device_count(),
                count,
            )


def keep_compiled_programs(folder: pathlib.Path | None, min_compile_seconds: float) -> None:
    """Sets the compile cache of this process.

    This initializes JAX's backends, so the number of devices must be set before.

    Args:
      folder: of the cache; None: no program is kept.
      min_compile_seconds: programs that compile faster are not kept.
    """
    text = None if folder is None else str(folder)
    if _configured("jax_compilation_cache_dir") != text:
        jax.config.update("jax_compilation_cache_dir", text)
        reset_cache()  # otherwise JAX keeps using the folder that it has opened already
    jax.config.update("jax_persistent_cache_min_compile_time_secs", min_compile_seconds)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if jax.default_backend() == "cpu":
        # XLA's own caches are for GPUs, but their path, which is inside the cache, would be part of every
        # key: after a cache is moved, or mounted at another path, no entry would be found
        jax.config.update("jax_persistent_cache_enable_xla_caches", "none")


def _configured(name: str) -> Any:
    return getattr(jax.config, name)  # type checkers do not know the fields of jax.config
