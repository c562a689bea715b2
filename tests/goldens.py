"""Golden comparisons: what vfljax computed before its redesign, and whether it still does.

    python -m tests.goldens                        # compare every part; minutes on 2 cores
    python -m tests.goldens --only quickstart wire
    python -m tests.goldens --write                # store the present figures instead

The goldens lie in tests/golden: rows of figures as Parquet, counts and settings as JSON, and in ``origin.json``
the revision, versions and processor that made them. With the same versions on the same processor rows must be
equal; elsewhere figures may differ by ``TOLERANCE``. A column or a row that one side lacks is listed as a
difference. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import vfljax
from analysis.benchmark import command as benchmark
from analysis.leakbench import command as leakbench
from analysis.reproduction import command as reproduction
from configs.papers.tables import TABLES
from tests import damage
from vfljax import datasets
from vfljax.api import commands as console_commands
from vfljax.api.flags import Command, defined
from vfljax.config import from_file
from vfljax.datasets.core import checksum, identity
from vfljax.errors import UserError
from vfljax.sweep.grid import parse
from vfljax.types import NO_SPLIT, SPLIT

FOLDER = pathlib.Path(__file__).parent / "golden"
ROOT = pathlib.Path(__file__).parents[1]
DATA = pathlib.Path(os.environ.get("VFLJAX_DATA", ROOT.parent / "shared" / "data"))
TOLERANCE = 1e-3
SETTLED = 0.005
"""The most by which the leak of a run may fall because attacks of it are settled."""
PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "scipy", "scikit-learn")
KEYS = ("number", "trial", "seed", "federation", "variant", "known", "attackers", "what")
"""The columns that tell rows apart, of those that a table has."""
UNSTORED = (
    "right",
    "seconds",
    "shard",
    "member",
    "view",
    "attack_configuration",
    "shown",
    "outdated",
)
"""Columns that are no figures, or that say where a figure is stored."""
GONE = (
    *("leak_crossed", "leak_error", "leak_matched", "leak_named", "leak_null", "leak_report"),
    *("leak_select", "named", "named_report", "named_select", "auc_batch_q95", "leak_batch_mean"),
    *("renamed", "test_leak", "read_99", "tpr_at_1e-3", "tpr_at_1e-2", "tpr_at_1e-1"),
)
"""Columns that are gone, or mean another thing since each attack has one leak and a positive class.

The leak of an attack that knows no label is not compared either, because known labels turn or name it now. Of
two classes one that knows labels is not turned, so that its leak is the golden's or 1 minus it. A mean over
draws of known labels, in which an attack near chance points both ways, is neither, and is listed."""
REAL = {
    "avazu": "avazu/train_head9999.csv.gz",
    "bhi": "bhi",
    "cifar10": "cifar10_exact",
    "cifar100": "cifar100_exact",
    "criteo": "criteo/train_head10k.txt.gz",
    "ham10000": "ham10000",
    "imdb": "imdb",
    "spambase": "spambase",
    "table": "default_credit/UCI_Credit_Card.csv.gz",
}
"""Where the folder of real data has what a loader reads."""
COMMANDS = (
    *("sweep", "attack", "audit", "report", "data", "reproduce", "verify"),
    *("benchmark", "leakbench"),
)
OF_CHECKOUT = {
    **{"benchmark": benchmark.COMMAND, "leakbench": leakbench.COMMAND},
    "reproduce": reproduction.COMMAND,
}
NEEDED = inspect.Parameter.empty
WORKDIR, DAMAGED = "{workdir}", "{damaged}"  # in the lines below, folders of a finished sweep
LINES = (
    "launch.sweep --help",
    "launch.sweep",
    "launch.sweep --nonsense",
    "launch.sweep --config=missing.py --workdir=x",
    "launch.sweep --config={config} --workdir={workdir}",
    "launch.sweep --config={config} --workdir={workdir} --config.seeds=0",
    "launch.sweep --config={config} --workdir={workdir} --config.model.cut=5",
    "launch.sweep --config={config} --workdir={workdir} --fail_above=0.1",
    "launch.sweep --config={config} --workdir={workdir} --fail_verdict=nonsense",
    "launch.sweep --workdir={workdir}",
    "launch.sweep --workdir={workdir} --dry_run",
    "launch.report --workdir={workdir}",
    "launch.report --workdir=missing",
    "launch.report --workdir={damaged}",
    "launch.attack --workdir={workdir} --attacks=direct",
    "launch.attack --workdir={workdir} --attacks=nonsense",
    "launch.attack",
    "launch.verify --workdir={workdir}",
    "launch.verify --workdir={damaged}",
    "launch.audit",
    "launch.audit --data=missing.csv --label=y --parties=a:x --workdir=x",
    "launch.data",
    "launch.data --dataset=breast_cancer",
    "launch.data --dataset=nonsense",
    "launch.reproduce",
    "launch.reproduce --list",
    "launch.reproduce --status",
    "launch.reproduce --table=nonsense",
    "launch.benchmark --help",
    "launch.benchmark --suite=nonsense",
    "launch.leakbench",
    "launch.leakbench --data=digits --entry=missing.json --workdir=x",
)
Tables = dict[str, pd.DataFrame | Any]


# --- what is computed ---


def rows_of(table: Any) -> pd.DataFrame:
    """Returns the keys and figures of a stored table, without lists."""
    frame = table.to_pandas() if table.num_rows else pd.DataFrame()
    lists = [c for c in frame if frame[c].map(lambda x: isinstance(x, list | np.ndarray)).any()]
    frame = frame.drop(columns=[*lists, *(c for c in (*UNSTORED, *GONE) if c in frame)])
    keys = [c for c in KEYS if c in frame]
    return frame.sort_values(keys, kind="stable").reset_index(drop=True)


def sweep_tables(name: str, sweep: Any) -> Tables:
    """Returns trials, attacks and the local-only baseline of a stored sweep."""
    return {
        f"{name}_trials": rows_of(sweep.results),
        f"{name}_attacks": attacks_of(sweep),
        f"{name}_local_only": rows_of(sweep.local_only),
    }


def attacks_of(sweep: Any) -> pd.DataFrame:
    """Returns the rows of attacks; if some are settled, with the run of each, a text."""
    rows = rows_of(sweep.attacks)
    if "settled_by" in rows:
        configuration = rows["trial"].map(
            sweep.results.to_pandas().set_index("trial")["configuration"]
        )
        panel = rows["federation"].str.startswith(NO_SPLIT).map({True: NO_SPLIT, False: SPLIT})
        rows["run"] = configuration.astype(str) + " " + panel + " " + rows["seed"].astype(str)
    return rows


def quickstart(workdir: pathlib.Path) -> Tables:
    """Returns the tables of README's first command."""
    return sweep_tables("quickstart", vfljax.run_sweep("configs/quickstart.py", workdir))


def stored_config(name: str) -> dict[str, Any]:
    """Returns a config that lies beside the goldens, with sequences as configs have them."""

    def tuples(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: tuples(v) for k, v in value.items()}
        return tuple(map(tuples, value)) if isinstance(value, list) else value

    return tuples(json.loads((FOLDER / f"{name}.config.json").read_text()))


def breast_cancer(workdir: pathlib.Path) -> Tables:
    """Returns the tables of every defense at a middle strength, under every attack of the audit's suite in all
    federations, and those of defenses with a claimed epsilon on label canaries."""
    out: Tables = {}
    for name in ("breast_cancer", "canaries"):
        sweep = vfljax.run_sweep(stored_config(name), workdir / name)
        out |= sweep_tables(name, sweep)
    return out


def recording() -> dict[str, np.ndarray]:
    """Returns the arrays of a wire: what a linear party sends and receives in two epochs of a logistic
    regression on half of scikit-learn's breast cancer columns."""
    x, labels = load_breast_cancer(return_X_y=True)
    x, labels = np.asarray(x), np.asarray(labels)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(labels))[:400]
    columns = ((x - x.mean(0)) / x.std(0))[rows, :15]
    labels = labels[rows].astype(np.int32)
    weights, top = rng.normal(size=(15, 4)) / 4, rng.normal(size=4)
    embeddings, gradients, orders = [], [], []
    for _ in range(2):
        sent = columns @ weights
        probability = 1 / (1 + np.exp(-sent @ top))
        received = (probability - labels)[:, None] * top / 40
        received = received + 0.002 * rng.normal(size=received.shape)
        embeddings.append(sent)
        gradients.append(received)
        orders.append(rng.permutation(len(labels)))
        weights = weights - 0.5 * columns.T @ received
        top = top - 0.5 * sent.T @ (probability - labels) / len(labels)
    arrays = {
        "party0_embeddings": np.stack(embeddings),
        "party0_gradients": np.stack(gradients),
        "party0_columns": columns,
        "order": np.stack(orders),
        "batch_size": np.array(40),
        "labels": labels,
    }
    return {k: v.astype(np.float32) if v.dtype == np.float64 else v for k, v in arrays.items()}


def wire(workdir: pathlib.Path) -> Tables:
    """Returns the rows of all attacks on a recorded exchange, with and without the party's columns."""
    arrays, out = recording(), {}
    for name in ("wire", "bare_wire"):
        given = {k: v for k, v in arrays.items() if name == "wire" or k != "party0_columns"}
        sweep = vfljax.attack_wire(given, workdir / name)
        out |= {f"{name}_attacks": attacks_of(sweep)}
        out |= {f"{name}_local_only": rows_of(sweep.local_only)}
    return out


def configs() -> list[str]:
    """Returns the configs of data sets and papers' tables, with their variants."""
    files = sorted((ROOT / "configs" / "datasets").glob("*.py"))
    runs = (run for by in TABLES.values() for runs in by.values() for run in runs)
    papers = (f"papers/{run.config}.py:{run.variant}" for run in runs)
    return [*(f"datasets/{f.name}" for f in files), "spambase.py", *dict.fromkeys(papers)]


def data(workdir: pathlib.Path) -> Tables:
    """Returns two checksums of the data of each config for which the folder of real data has enough rows."""
    os.environ["VFLJAX_DATA_CACHE"] = str(workdir / "converted")
    sums, of_data = {}, {}
    for config in configs():
        asked = parse(from_file(f"configs/{config}")).data
        path = DATA / REAL.get(asked.name, "absent")
        key = json.dumps([asked.name, dict(asked.options)])
        if key not in of_data and path.exists():
            with contextlib.suppress(UserError):  # too few rows, or no vocabulary
                loaded = datasets.load(asked.name, str(path), dict(asked.options))
                of_data[key] = [checksum(loaded), identity(loaded)]
        if key in of_data:
            sums[config] = of_data[key]
    return {"data": sums}


def command(line: str, **folders: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of this checkout."""
    module, *arguments = shlex.split(line)
    arguments = [a.format(**folders) for a in arguments]
    return subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, capture_output=True, text=True
    )


def commands(workdir: pathlib.Path) -> Tables:
    """Returns the flags of every command, exit statuses, and the counts of printed numbers by status."""
    flags = {}
    for name in COMMANDS:
        of = _command(name)
        values = defined(of)
        given = {flag: argument.default for flag, argument in of.flags.items()}
        defaults = {flag: repr(default) for flag, default in given.items() if default is not NEEDED}
        flags[name] = sorted([f, values[f].flag_type(), defaults.get(f, "")] for f in values)
    config = workdir / "tiny.py"
    of_data = {"name": "breast_cancer", "scaling": "standard"}
    fields = {**damage.CONFIG, "data": of_data, "seeds": 3}
    config.write_text(f"def get_config():\n    return {fields!r}\n")
    folders = {"config": str(config), "workdir": str(workdir / "w"), "damaged": str(workdir / "d")}
    statuses = {}
    for line in LINES:
        if DAMAGED in line and not (workdir / "d").exists():
            _damaged(workdir / "w", workdir / "d")
        statuses[line] = command(line, **folders).returncode
    status = command("launch.reproduce --status").stdout.strip().split("\n\n")[-1].splitlines()
    return {"flags": flags, "exit_statuses": statuses, "reproduction": [s.rstrip() for s in status]}


def _command(name: str) -> Command:
    """Returns a command as ``python -m launch.NAME`` has it."""
    return OF_CHECKOUT.get(name) or console_commands.COMMANDS[name]


def _damaged(workdir: pathlib.Path, copy_of: pathlib.Path) -> None:
    subprocess.run(["cp", "-r", str(workdir), str(copy_of)], check=True)
    path = next(iter(sorted(copy_of.glob("shards/*/results.parquet"))))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def killed(workdir: pathlib.Path) -> Tables:
    """Returns the tables of a sweep that was killed while training and while attacking, and resumed."""
    damage.half_finished(workdir)
    damage.half_attacked(workdir)
    damage.finish(workdir)
    return sweep_tables("killed", vfljax.load(workdir))


PARTS: dict[str, Callable[[pathlib.Path], Tables]] = {
    "quickstart": quickstart,
    "breast_cancer": breast_cancer,
    "wire": wire,
    "data": data,
    "commands": commands,
    "killed": killed,
}


# --- comparison ---


def differences(golden: pd.DataFrame, ours: pd.DataFrame, tolerance: float) -> Iterator[str]:
    """Yields a line for each kind of difference between two tables of figures.

    Args:
      golden: the stored rows.
      ours: the present ones.
      tolerance: the most by which two figures may differ.

    A row that is settled now has no figures to compare. The largest leak of its run may not be lower than what
    the row read, by more than ``SETTLED``.
    """
    run, settled_by = (ours.get(name) for name in ("run", "settled_by"))
    golden, ours = (x.drop(columns=["run", "settled_by"], errors="ignore") for x in (golden, ours))
    for side, here, there in (("only stored", golden, ours), ("only now", ours, golden)):
        if len(columns := here.columns.difference(there.columns)):
            yield f"columns {side}: {', '.join(map(str, columns))}"
    keys = [c for c in KEYS if c in golden and c in ours]
    keyed = [_keyed(frame, keys) for frame in (golden, ours)]
    for side, here, there in (("only stored", *keyed), ("only now", *keyed[::-1])):
        if len(lacking := here.index.difference(there.index)):
            yield f"{len(lacking)} rows {side}, such as {dict(zip(keys, lacking[0]))}"
    shared = keyed[0].index.intersection(keyed[1].index)
    if run is not None and settled_by is not None:
        settled = keyed[1].index[settled_by.fillna("") != ""]
        most = ours["leak"].groupby(run).transform("max").set_axis(keyed[1].index)
        fell = keyed[0]["leak"].reindex(settled) - most[settled]
        if (fell > SETTLED).any():
            yield f"the largest leaks of runs fell where rows are settled, by at most {fell.max():.3g}"
        shared = shared.difference(settled)
    for column in golden.columns.intersection(ours.columns).difference(keys):
        a, b = (frame.loc[shared, column] for frame in keyed)
        if pd.api.types.is_numeric_dtype(a) and pd.api.types.is_numeric_dtype(b):
            x, y = a.to_numpy(np.float64), b.to_numpy(np.float64)
            apart = np.where(np.isnan(x) & np.isnan(y), 0.0, np.abs(x - y))
            if column == "leak" and "known" in keys:
                apart = np.fmin(apart, np.abs(1 - x - y))
                apart = np.where(apart < 1e-6, 0.0, apart)  # another sum in float32
                free = shared.get_level_values("known").isin(["0", "0.0"])
                apart = np.where(free, 0.0, apart)
            wrong = ~(apart <= tolerance)
            largest = f", by at most {np.nanmax(apart):.3g}" if wrong.any() else ""
        else:
            same = (a.astype(str) == b.astype(str)) | (a.isna() & b.isna())
            wrong, largest = ~same.fillna(False).to_numpy(bool), ""
        if wrong.any():
            place = int(np.argmax(wrong))
            where = dict(zip(keys, shared[place]))
            yield (
                f"{column}: {int(wrong.sum())} of {len(shared)} differ{largest}; "
                f"{a.iloc[place]} is {b.iloc[place]} at {where}"
            )


def _keyed(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Returns the frame indexed by its keys as text, and by a count where several rows share them."""
    texts = frame[keys].fillna("").astype(str)
    again = texts.groupby(keys).cumcount()
    return frame.set_index(pd.MultiIndex.from_frame(texts.assign(again=again)))


def origin() -> dict[str, Any]:
    """Returns what figures may depend on: the processor, and the versions of packages."""
    lines = pathlib.Path("/proc/cpuinfo")
    models = lines.read_text().splitlines() if lines.exists() else []
    model = next((x.split(":")[1].strip() for x in models if x.startswith("model name")), "")
    versions = {name: metadata.version(name) for name in PACKAGES}
    return {
        "processor": model or platform.processor(),
        "python": platform.python_version(),
        **versions,
    }


def compare(name: str, ours: Any, tolerance: float) -> list[str]:
    """Returns the differences between a golden and what is computed now."""
    if isinstance(ours, pd.DataFrame):
        path = FOLDER / f"{name}.parquet"
        if not path.exists():
            return [f"{path.name} is missing"]
        golden = pd.read_parquet(path)
        golden = golden.drop(columns=[c for c in GONE if c in golden])
        return list(differences(golden, ours, tolerance))
    golden = json.loads((FOLDER / f"{name}.json").read_text())
    ours = json.loads(json.dumps(ours))
    if not isinstance(golden, dict):
        return [] if golden == ours else [f"{golden} is {ours}"]
    return [
        f"{key}: {golden.get(key)} is {ours.get(key)}"
        for key in [*golden, *(k for k in ours if k not in golden)]
        if golden.get(key) != ours.get(key)
    ]


def write(name: str, ours: Any) -> None:
    """Stores a table or a mapping as a golden."""
    if isinstance(ours, pd.DataFrame):
        ours.to_parquet(FOLDER / f"{name}.parquet", compression="zstd", index=False)
    else:
        (FOLDER / f"{name}.json").write_text(json.dumps(ours, indent=1) + "\n")


@contextlib.contextmanager
def _folder(workdir: pathlib.Path | None, part: str) -> Iterator[pathlib.Path]:
    """Gives the folder of a part: below ``workdir``, or one that is removed afterwards."""
    if workdir is not None:
        (workdir / part).mkdir(parents=True, exist_ok=True)
        yield workdir / part
        return
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--write", action="store_true", help="store the present figures")
    parser.add_argument("--workdir", type=pathlib.Path, help="keep sweeps here, and continue them")
    arguments = parser.parse_args()
    vfljax.use_this_machine()
    FOLDER.mkdir(exist_ok=True)
    stored = json.loads((FOLDER / "origin.json").read_text()) if not arguments.write else {}
    same = stored.get("of") == origin()
    tolerance = 0.0 if same else TOLERANCE
    print(
        "as the goldens' machine: figures must be equal" if same else f"figures within {TOLERANCE}"
    )
    failed = False
    for part in arguments.only:
        with _folder(arguments.workdir, part) as folder:
            tables = PARTS[part](folder)
        for name, ours in tables.items():
            if arguments.write:
                write(name, ours)
                continue
            found = compare(name, ours, tolerance)
            failed |= bool(found)
            print(f"{name}: {'equal' if not found else ''}", *found, sep="\n  " if found else "")
    if arguments.write:
        revision = subprocess.run(
            ["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True
        ).stdout.strip()
        about = {"revision": revision, "of": origin()}
        (FOLDER / "origin.json").write_text(json.dumps(about, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
