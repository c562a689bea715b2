"""Every test runs as strictly as the library promises: no silent rank promotion, two devices.

- ``VFLJAX_TEST_OPTIMIZED=1`` compiles as users do. By default tests compile without optimization, which
  halves their time; flags of ``XLA_FLAGS`` stay in force beside theirs.
- Compiled programs are kept in a folder that the workers of one run share, and removed at its end, unless
  ``JAX_COMPILATION_CACHE_DIR`` names one. So is bytecode where ``PYTHONDONTWRITEBYTECODE`` is set and the
  libraries were installed without it: each worker and each process that a test starts would compile JAX and
  all other libraries anew.
- ``--order=reversed`` and ``--order=random:SEED`` run the files in another order.
"""

import atexit
import contextlib
import gc
import importlib
import importlib.metadata
import importlib.util
import io
import os
import pathlib
import random
import runpy
import shutil
import signal
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from typing import Any

# XLA reads its flags when JAX starts. It aborts on those it does not know: 0.12 has one emitter only.
FLAGS = ["--xla_backend_optimization_level=0", "--xla_cpu_parallel_codegen_split_count=1"]
if importlib.metadata.version("jaxlib").startswith(("0.10.", "0.11.")):
    FLAGS.append("--xla_cpu_use_fusion_emitters=false")
if not os.environ.get("VFLJAX_TEST_OPTIMIZED"):
    chosen = os.environ.get("XLA_FLAGS", "").split()
    names = {flag.partition("=")[0] for flag in chosen}
    added = [flag for flag in FLAGS if flag.partition("=")[0] not in names]
    os.environ["XLA_FLAGS"] = " ".join([*chosen, *added])

# two workers on two cores: threads of OpenMP, of which scikit-learn takes one a core, would wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")

WORKER = os.environ.get("PYTEST_XDIST_WORKER")
# workers and the processes that tests start inherit these folders; the process that made them removes them
MADE_FOLDERS = []
if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
    MADE_FOLDERS.append(tempfile.mkdtemp(prefix="vfljax_tests_"))
    os.environ["JAX_COMPILATION_CACHE_DIR"] = MADE_FOLDERS[-1]
if WORKER is None:
    MADE_FOLDERS.append(tempfile.mkdtemp(prefix="vfljax_data_"))
    os.environ["VFLJAX_DATA_CACHE"] = MADE_FOLDERS[-1]
installed = importlib.util.find_spec("jax")
origin = installed.origin if installed is not None else None
compiled = origin is not None and os.path.exists(importlib.util.cache_from_source(origin))
if os.environ.get("PYTHONDONTWRITEBYTECODE") and not compiled:
    del os.environ["PYTHONDONTWRITEBYTECODE"]
    MADE_FOLDERS.append(tempfile.mkdtemp(prefix="vfljax_bytecode_"))
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = MADE_FOLDERS[-1]
    sys.dont_write_bytecode = False

import filelock
import jax
import numpy as np
import pytest
from scipy import sparse

from vfljax import machine

# before JAX's first computation: two host devices, as on a two-core machine
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")
machine.keep_compiled_programs(
    pathlib.Path(os.environ["JAX_COMPILATION_CACHE_DIR"]), min_compile_seconds=0.5
)


ROOT = pathlib.Path(__file__).parents[1]

# the files that take longest, which are begun first: where one comes last, a worker waits for the other;
# before them the file that clears JAX's caches, while there is little in them to clear and make again
DEAREST = (
    "sweep/batch_layout_test.py",
    *("attacks_contract_test.py", "defenses_contract_test.py", "sweep/train_test.py"),
    *("auditing/trees_test.py", "auditing/wires_test.py", "attack_runs/run_test.py"),
    *("attacks/numbers_test.py", "stored_sweep_test.py", "auditing/audit_test.py"),
    *("attack_runs/stored_diagnostics_test.py", "sweep/numbers_test.py", "streaming_test.py"),
    *("federation/training_test.py", "report/first_screen_test.py", "scheduling/work_test.py"),
    *("defenses/cae_test.py", "reproduction/running_test.py", "readers/cells_test.py"),
    *("attacks/posterior_test.py", "report/sweep_answers_test.py", "attacks/completion_test.py"),
    *("attacks/batch_inversion_test.py", "defenses/combinations_test.py", "plugins/use_test.py"),
    *("federation/protocol_test.py", "deciding_simulation_test.py", "attacks/two_stage_test.py"),
    *("models/implicit_gemm_test.py", "api/forms_test.py", "report/page_test.py"),
    *("attacks/spreading_test.py", "sweep/alone_test.py", "federation/trees_test.py"),
    *("defenses/marvell_test.py", "defenses/gafm_test.py", "attack_runs/colluders_test.py"),
    *("api/verify_test.py", "api/commands_test.py", "report/canaries_test.py"),
)


def worker_of(config: pytest.Config) -> str:
    """The name of this process if it is a worker of this run, else ""."""
    return getattr(config, "workerinput", {}).get("workerid", "")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Of a whole run the second worker imports the tests from the last file on: two in the same order would
    compile the bytecode of each file and library twice. What a file raises is for its collection to say."""
    if worker_of(session.config) == "gw1" and session.config.args == ["tests"]:
        for path in sorted((ROOT / "tests").rglob("*_test.py"), reverse=True):
            with contextlib.suppress(Exception, pytest.skip.Exception):
                importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Modules and collected tests stay for good: the garbage collector need not walk over them again,
    and less often over what JAX traces."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 10, 10)


def pytest_unconfigure(config: pytest.Config) -> None:
    for folder in MADE_FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)
    if worker_of(config):
        # JAX would forget its programs one by one, for five seconds. What was found is sent, and what else
        # waits for the end of the process are temporary folders of libraries
        atexit.register(os._exit, 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", default="", help="of the files: reversed, or random:SEED")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    dearest = {ROOT / "tests" / name: place for place, name in enumerate(DEAREST)}
    files = sorted(
        {item.path: dearest.get(item.path, len(dearest)) for item in items}.items(),
        key=lambda f: f[1],
    )
    order, _, seed = config.getoption("--order").partition(":")
    if order == "reversed":
        files.reverse()
    elif order == "random":
        random.Random(seed).shuffle(files)
    places = {path: place for place, (path, _) in enumerate(files)}
    items.sort(key=lambda item: places[item.path])


# within a module compiled programs stay, so that tests may count them; Linux allows 65,530 maps
MODULE_MAPS = 60_000
BETWEEN_MAPS = 50_000  # and between modules, since clearing takes seconds and tests then trace anew
SETTINGS = (
    *("jax_numpy_rank_promotion", "jax_enable_compilation_cache", "jax_compilation_cache_dir"),
    "jax_default_matmul_precision",
)


def shared_state() -> list[Any]:
    """What tests share with those after them: the folder, JAX's settings, and the rows of tables."""
    from vfljax import attacks, datasets, defenses

    tables = [list(table) for table in (attacks.TABLE, datasets.TABLE, defenses.TABLE)]
    return [os.getcwd(), tables, *(getattr(jax.config, name) for name in SETTINGS)]


@pytest.fixture(scope="module", autouse=True)
def _between_modules() -> Iterator[None]:
    """A module leaves what it shares as it was, so that files pass in any order; and compiled programs are
    forgotten if they near the limit of memory maps."""
    from vfljax.sweep import programs

    before, most = shared_state(), programs.MOST_MAPS
    programs.MOST_MAPS = MODULE_MAPS
    yield
    programs.MOST_MAPS = BETWEEN_MAPS
    programs.make_room()
    programs.MOST_MAPS = most
    assert shared_state() == before


def nearest_mean(columns: Any) -> Any:
    """Scores [n, C] by the distance to the mean of a class's known rows; 0 for a class without any."""
    numbers = columns.numbers[:, :50] if sparse.issparse(columns.numbers) else columns.numbers
    numbers = np.asarray(numbers.todense() if sparse.issparse(numbers) else numbers, np.float32)
    scores = np.zeros((len(numbers), columns.classes), np.float32)
    for label in np.unique(columns.labels):
        mean = numbers[columns.known[columns.labels == label]].mean(axis=0)
        scores[:, label] = 2 * numbers @ mean - mean @ mean
    return scores


@pytest.fixture(scope="session", autouse=True)
def learners_on_the_host() -> Iterator[dict[str, Any]]:
    """The learners of the local-only baseline, which take a third of the time of a sweep in a test. Every
    name stands for ``nearest_mean`` meanwhile; ``real_learners`` puts them back. What the label party fits
    alone is boosted for few rounds, also beside real learners."""
    from vfljax.attacks import learners
    from vfljax.sweep import alone

    real = dict(learners.LEARNERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alone, "ROUNDS", 3)
        for name in real:
            patch.setitem(learners.LEARNERS, name, learners.Learner(nearest_mean))
        yield real


@pytest.fixture(scope="module")
def real_learners(learners_on_the_host: dict[str, Any]) -> Iterator[None]:
    """For tests of what learners read, and of processes that are started without this file."""
    from vfljax.attacks import learners

    with pytest.MonkeyPatch.context() as patch:
        for name, learner in learners_on_the_host.items():
            patch.setitem(learners.LEARNERS, name, learner)
        yield


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
    base = factory.getbasetemp()
    folder = (base.parent if WORKER is not None else base) / name
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


@pytest.fixture
def workdir(tiny_sweep: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the tiny sweep, to be changed."""
    return shutil.copytree(tiny_sweep, tmp_path / "w")


@pytest.fixture(scope="session")
def defended(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A stored sweep of label DP and GAFM on two classes, also with a malicious party. Tests must not change
    it."""
    from tests.sweeps import tiny, train
    from vfljax import store

    config = tiny(
        data={"name": "breast_cancer", "train": 200, "validation": 100, "test": 100},
        federations=("split", "malicious", "no_split"),
        grid={
            "undefended": {},
            "plain": {"label_dp": {"epsilon": (1.0, 3.0)}},
            "gafm": {"gafm": {"delta": (0.1, 0.5)}},
        },
        attacks={"direct": {"rule": "most_negative"}},
        **{"model.aggregation": "mean", "model.top": "generator", "training.epochs": 2},
    )
    return store.load(made_once(tmp_path_factory, "defended", lambda w: train(w, config)))


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """``launch(name, *arguments)``: a command as ``python -m launch.name`` runs it, in this process."""
    import vfljax

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(vfljax, "use_this_machine", lambda **_: None, raising=False)

    def run(name: str, *arguments: str) -> types.SimpleNamespace:
        handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
        monkeypatch.setattr(sys, "argv", [f"launch/{name}.py", *arguments])
        out, err = io.StringIO(), io.StringIO()
        try:
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                pytest.raises(SystemExit) as ended,
            ):
                runpy.run_module(f"launch.{name}", run_name="__main__")
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return types.SimpleNamespace(
            returncode=ended.value.code or 0, stdout=out.getvalue(), stderr=err.getvalue()
        )

    return run


@pytest.fixture
def refused(launch: Callable[..., Any]) -> Callable[..., str]:
    """``refused(name, *arguments)``: the one line by which a command refuses to run."""

    def run(name: str, *arguments: str) -> str:
        done = launch(name, *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert done.stderr[:-1].isprintable()
        return done.stderr

    return run
