"""Every test runs as strictly as the library promises: no silent rank promotion, two devices."""

import contextlib
import gc
import importlib
import importlib.metadata
import io
import os
import pathlib
import signal
import types
from collections.abc import Callable, Iterator
from typing import Any

# tests compile much and compute little: unoptimized code halves their time. XLA_FLAGS="" tests optimized
# code, as users run it; set before JAX is imported
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0"
    # halves it again, and a seventh less: small programs are not worth dividing over threads. XLA aborts on
    # flags it does not know, so for the versions tried only
    + " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    * importlib.metadata.version("jaxlib").startswith("0.10."),
)

import filelock
import jax
import pytest

from vfljax import machine

# before JAX's first computation: two host devices, as on a two-core machine
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")
# the workers of a run compile the same programs: what one has compiled the others read
machine.keep_compiled_programs(machine.default_cache(), min_compile_seconds=0.5)


ROOT = pathlib.Path(__file__).parents[1]

# the files that take longest, which are begun first: where one comes last, a worker waits for the other;
# before them the file that clears JAX's caches, while there is little in them to clear and make again
DEAREST = (
    "sweep/lanes_test.py",
    *("defenses_contract_test.py", "damage_test.py", "sweep/train_test.py"),
    *("datasets_sweeps_test.py", "defenses/combinations_test.py", "configs_test.py"),
    *(
        "streaming_test.py",
        "stored_sweep_test.py",
        "federation/training_test.py",
        "attacking/run_test.py",
    ),
)


def pytest_collection_finish() -> None:
    """Modules and collected tests stay for good: the garbage collector need not walk over them again,
    and less often over what JAX traces."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {ROOT / "tests" / name: place for place, name in enumerate(DEAREST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="module", autouse=True)
def _make_room() -> Iterator[None]:
    """Between modules, compiled programs are forgotten if they near the limit of memory maps."""
    yield
    from vfljax.sweep import programs

    programs.make_room()


def real_data(name: str) -> pathlib.Path:
    """A folder of real data, or a skip that says why: $VFLJAX_DATA or ../shared/data."""
    root = pathlib.Path(os.environ.get("VFLJAX_DATA", ROOT.parent / "shared" / "data"))
    if not (root / name).is_dir():
        pytest.skip(f"real data {name!r} is not in {root}: set VFLJAX_DATA to run this test")
    return root / name


def made_once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[pathlib.Path], Any]
) -> pathlib.Path:
    """The folder that ``make(folder)`` fills: by whichever worker comes first, for all of a run."""
    parallel = "PYTEST_XDIST_WORKER" in os.environ
    base = factory.getbasetemp()
    folder = (base.parent if parallel else base) / name
    with filelock.FileLock(folder.with_suffix(".lock")):
        if not folder.with_suffix(".made").exists():
            make(folder)
            folder.with_suffix(".made").touch()
    return folder


@pytest.fixture(scope="session")
def tiny_sweep(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A finished tiny sweep. Tests must not change it: copy what you break."""
    from tests.sweeps import TINY, train

    return made_once(tmp_path_factory, "tiny", lambda folder: train(folder, TINY))


@pytest.fixture(scope="session")
def defended(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A stored sweep of label DP and GAFM on two classes. Tests must not change it."""
    from tests.sweeps import tiny, train
    from vfljax import store

    config = tiny(
        data={"name": "breast_cancer", "train": 200, "validation": 100, "test": 100},
        grid={
            "undefended": {},
            "plain": {"label_dp": {"epsilon": (1.0, 3.0)}},
            "gafm": {"gafm": {"delta": (0.1, 0.5)}},
        },
        attacks={"direct": {"rule": "most_negative"}},
        **{"model.aggregation": "mean", "model.top": "generator"},
    )
    return store.load(made_once(tmp_path_factory, "defended", lambda w: train(w, config)))


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """``launch(name, *arguments)``: a command as ``python -m launch.name`` runs it, in this process."""
    import vfljax
    from vfljax import cli

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(
        vfljax, "use_this_machine", lambda **_: None, raising=False
    )  # JAX has started

    def run(name: str, *arguments: str) -> types.SimpleNamespace:
        handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
        out, err = io.StringIO(), io.StringIO()
        try:
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                pytest.raises(SystemExit) as ended,
            ):
                cli.start(name, arguments)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return types.SimpleNamespace(
            returncode=ended.value.code or 0, stdout=out.getvalue(), stderr=err.getvalue()
        )

    return run


@pytest.fixture
def every_program(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every program of settings made from now on, of an empty table."""
    from vfljax.sweep import programs

    every, original = [], programs.Program.__init__

    def counting(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        every.append(self)

    monkeypatch.setattr(programs.Program, "__init__", counting)
    monkeypatch.setattr(programs, "_PROGRAMS", type(programs._PROGRAMS)())
    return every
