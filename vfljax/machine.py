"""Set JAX up for the machine it runs on: a device a core, whole float32, and compiled programs kept.

    from vfljax.machine import use_this_machine

    use_this_machine()

A launcher or a notebook calls it once, before JAX's first computation. On a CPU it changes how fast a
computation is, not what is computed; on accelerators also how products of float32 numbers are rounded.
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
from jax.experimental.compilation_cache.compilation_cache import reset_cache

CACHE_BYTES = 2 << 30
FITS = 0.8  # of a device's memory, what a program may need: other arrays and gaps take the rest
CHUNK_MEMORY = 8 << 30  # bytes of an accelerator, for each of which a chunk of rows is evaluated
# the lines of /proc/cpuinfo, on x86 and on ARM, that decide which machine code XLA emits
CPU_FIELDS = (
    *("vendor_id", "cpu family", "model", "flags"),
    *("CPU implementer", "CPU part", "Features"),
)

_log = logging.getLogger(__name__)


def cores() -> int:
    """Cores this process may use (not those the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Offered(NamedTuple):
    """What JAX's default backend offers, from which the sizes of programs are chosen. On a CPU its caches
    decide, and no limit is given here: ``free_memory`` is checked when a sweep is planned."""

    cpu: bool
    memory: float = math.inf  # bytes of the smallest device, infinity where that is not known
    host: float = math.inf  # bytes of the host's memory, likewise

    def part(self, share: float, otherwise: int) -> int:
        """Returns the bytes of a share of a device's memory.

        Args:
          share: from 0 to 1.
          otherwise: where the memory is not known.
        """
        return int(share * self.memory) if math.isfinite(self.memory) else otherwise


def offered() -> Offered:
    """Returns what the default backend offers; everything that is sized by the backend asks here."""
    if jax.default_backend() == "cpu":
        return Offered(cpu=True)
    limits = map(_limit, jax.local_devices())
    return Offered(False, min(limits, default=math.inf), _pages("SC_PHYS_PAGES"))


def _limit(device: Any) -> float:
    """The bytes of a device's memory, infinity if that cannot be known."""
    return (device.memory_stats() or {}).get("bytes_limit", math.inf)


def _pages(name: str) -> float:
    """The bytes of the pages that the system counts by that name, infinity if it counts none."""
    try:
        return float(os.sysconf(name) * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def needed_bytes(compiled: Any) -> tuple[int, int]:
    """Bytes of each device's memory that a compiled program needs, arguments and results included, and
    those among them that are only needed while it runs. Zeros where the backend has no such analysis."""
    sizes = compiled.memory_analysis()
    if sizes is None:
        return 0, 0
    ends = sizes.argument_size_in_bytes + sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    return ends + sizes.temp_size_in_bytes, sizes.temp_size_in_bytes


def fitting_width(compiled: Any, width: int) -> int:
    """Returns how many members a program may map at once.

    They are all of ``width`` if it needs at most the share ``FITS`` of a device's memory. Otherwise they are as
    many as would fit if its needs grew with their number, and at most three quarters, so that few programs
    are compiled until one fits.

    Args:
      compiled: a program.
      width: the members that it was compiled for.
    """
    limit = FITS * offered().memory
    if width == 1 or math.isinf(limit):
        return width
    needed, running = needed_bytes(compiled)
    if needed <= limit:
        return width
    fewer = width * (limit - needed + running) / running if running else 0.0
    return max(1, int(min(fewer, 3 * width / 4)))


def compile_fitting(compile_for: Callable[[int], Any], width: int) -> Any:
    """Returns a compiled program whose members fit into a device's memory.

    Args:
      compile_for: makes the program of so many members.
      width: the members to begin with.
    """
    compiled = compile_for(width)
    while (fewer := fitting_width(compiled, width)) != width:
        width = fewer
        compiled = compile_for(width)
    return compiled


def rows_at_once(rows: int) -> int:
    """Returns how many rows are evaluated at a time, given how many a CPU takes.

    An accelerator takes as many for every ``CHUNK_MEMORY`` of its memory, up to eight times as many.
    """
    count = min(8, offered().part(1.0, 0) // CHUNK_MEMORY)
    return rows << max(count.bit_length() - 1, 0)


def free_memory(meminfo: str | os.PathLike[str] = "/proc/meminfo") -> float:
    """Returns the bytes of the host's memory that are available, infinity if that cannot be known."""
    try:
        lines = pathlib.Path(meminfo).read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        return float(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return _pages("SC_AVPHYS_PAGES")


def free_disk(path: pathlib.Path) -> float:
    """Returns the bytes that are free for a path, which need not exist; infinity if that cannot be known."""
    folder = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    try:
        return float(shutil.disk_usage(folder).free)
    except OSError:
        return math.inf


def device_memory() -> float:
    """Returns the bytes of memory of all devices together, infinity if that cannot be known."""
    if jax.default_backend() == "cpu":
        return free_memory()
    return sum(map(_limit, jax.devices()))


def exhausted(error: BaseException) -> bool:
    """Returns whether a device's memory was exhausted."""
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
    *,
    devices: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    min_compile_seconds: float = 0.5,
    max_bytes: int = CACHE_BYTES,
) -> pathlib.Path | None:
    """Give XLA one host device a core, make float32 mean float32, and keep compiled programs.

    Call it before JAX's first computation: once JAX's backends are initialized, which this call does, the
    number of devices cannot change any more, and a warning says so. Calling it again is harmless, and moves
    the cache if ``cache`` names another folder.

    By default XLA rounds the operands of float32 products on accelerators: to TensorFloat-32 (11
    significant bits) on NVIDIA GPUs, to bfloat16 (8) on TPUs. There ``jax_default_matmul_precision`` is
    set to "float32", unless ``jax.config`` or the environment variable ``JAX_DEFAULT_MATMUL_PRECISION``
    chose it. What computes in bfloat16 on purpose (``vfljax.models.precision``) does so under any setting.

    JAX's persistent compilation cache is shared by every run of this user on this machine. Entries are code
    that JAX runs: share a folder only with users you trust.

    Args:
      devices: host devices, where other processes share this machine's cores; None: one a core.
      cache: folder of the cache. Where none is given, it is ``jax_compilation_cache_dir``, as JAX or the
        environment variable ``JAX_COMPILATION_CACHE_DIR`` is configured, else ``default_cache()``.
      min_compile_seconds: programs that compile faster are not kept: reading them back would save little.
      max_bytes: size down to which ``trim`` brings the cache, entries of the default folder together with
        those of other versions and processors. A folder that JAX's configuration or the environment names
        is never trimmed, since other projects may use it.

    Returns:
      The folder of the cache, or None where none is kept: the folder cannot be created or written
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
        folder = pathlib.Path(cache or configured or default_cache()).expanduser().absolute()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()  # whether it can be written
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        _log.warning("compiled programs are not kept between runs: %s", error)
        folder = None
    keep_compiled_programs(folder, min_compile_seconds)
    default = None
    with contextlib.suppress(RuntimeError):  # there is no home folder
        default = default_cache().absolute()
    if folder is not None and folder == default:
        trim(folder.parent, max_bytes)
    elif folder is not None and cache is not None:
        trim(folder, max_bytes)
    return folder


def default_cache() -> pathlib.Path:
    """The cache's folder where none is named: ``<user's cache>/vfljax/<JAX>-<processor>``.

    XLA emits code for the processor it runs on, and machines with different ones may share a home folder.
    """
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(home) / "vfljax" / f"{jax.__version__}-{processor()}"


def processor(cpuinfo: str | os.PathLike[str] = "/proc/cpuinfo") -> str:
    """Twelve hexadecimal digits that change with what compiled code depends on.

    These are the architecture, the processor's model and features (``CPU_FIELDS`` of the first core in
    ``cpuinfo``, or what ``platform`` knows where there is no such file), and the version of jaxlib.
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
    entry and its record. What a single run adds is small beside the bound.

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
    """Choose the compile cache of this process.

    This initializes JAX's backends: set the number of devices before.

    Args:
      folder: of the cache; None: no program is kept.
      min_compile_seconds: of the programs that are kept.
    """
    text = None if folder is None else str(folder)
    if _configured("jax_compilation_cache_dir") != text:
        jax.config.update("jax_compilation_cache_dir", text)
        reset_cache()  # JAX opens the folder once: it would keep to the one it has open
    jax.config.update("jax_persistent_cache_min_compile_time_secs", min_compile_seconds)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if jax.default_backend() == "cpu":
        # XLA's own caches are for GPUs, but the path of one, a subfolder of the cache, would be part of every
        # key: a cache that is moved, or mounted at another path, would hit nothing
        jax.config.update("jax_persistent_cache_enable_xla_caches", "none")


def _configured(name: str) -> Any:
    return getattr(jax.config, name)  # type checkers know no field of it
