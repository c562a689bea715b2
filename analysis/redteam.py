"""What readers that are not in the suite make of stored exchanges, beside the suite's strongest attack.

    python -m analysis.redteam --workdir=runs/audit --workdir=runs/spambase --out=analysis/results/redteam

Each ``--workdir`` is a finished sweep. Every reader is a model of scikit-learn, fitted to the known rows of
what crossed the wire: the mean of all gradients a row received, and its embedding and gradient in each
recorded epoch. It writes ``<sweep>.csv``, a line a configuration and federation. ``tables.md`` is of all such
files in the folder, so that one sweep can be read again without the others; it has the cells where a reader's
mean over seeds beats the suite by more than .01 beyond its own spread over seeds. As many labels are known as
the suite's attacks knew at most, of the first draw; ``--seeds`` are read.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import pathlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from vfljax import store
from vfljax.report import stored_rows, tables
from vfljax.report.assessment import assess
from vfljax.sweep.experiment import experiment_of
from vfljax.types import HostArray, federation_of

MARGIN = 0.01  # what a reader must read beyond the suite and its own spread
Features = Callable[[HostArray], HostArray]


def ranks(x: HostArray) -> HostArray:
    """The midranks of each column, centered, in shares of the rows."""
    return stats.rankdata(x, axis=0) / len(x) - 0.5


def standardized(x: HostArray) -> HostArray:
    """Columns of mean 0 and variance 1."""
    return (x - x.mean(0)) / np.maximum(x.std(0), 1e-12)


READERS: Mapping[str, tuple[Features, Callable[[], Any]]] = {
    "extra trees": (standardized, lambda: ExtraTreesClassifier(300, random_state=0)),
    "boosting": (
        standardized,
        lambda: HistGradientBoostingClassifier(max_iter=40, min_samples_leaf=2, random_state=0),
    ),
    "kernel SVM on ranks": (ranks, lambda: SVC(C=1.0)),
    "kernel SVM": (standardized, lambda: SVC(C=1.0)),
    "self-training": (
        standardized,
        lambda: SelfTrainingClassifier(LogisticRegression(C=0.1, max_iter=500), threshold=0.9),
    ),
}
"""What each reads, and the model."""


class Wire(NamedTuple):
    """What one party exchanged in a trial, and what it knows."""

    configuration: int
    federation: str  # as reports name it
    kind: str  # with malicious parties told apart
    seed: int
    x: HostArray  # [N, W]
    labels: HostArray  # [N] all of them; the first known ones of ``order`` are learned from
    order: HostArray  # [N]
    known: int


class Cell(NamedTuple):
    """A configuration in one federation: the strongest of the suite and of the readers."""

    sweep: str
    configuration: str
    federation: str
    attack: str
    suite: float
    reader: str
    leak: float
    spread: float  # of the reader over seeds

    @property
    def wins(self) -> bool:
        """Whether the reader reads more."""
        return self.leak - self.spread - self.suite > MARGIN


def wires(sweep: store.StoredSweep, known: int, seeds: int) -> Iterator[Wire]:
    """Every finished trial of the first ``seeds`` seeds of a sweep, as its first party saw it."""
    splits = sweep.splits()
    for row in sweep.results.to_pylist():
        if row["status"] != "ok" or row["seed"] >= seeds:
            continue
        arrays, seed = sweep.trial(row["trial"]).exchange(), row["seed"]
        mean = arrays["party0_sum_gradient"] / np.maximum(arrays["party0_sum_count"], 1)[:, None]
        parts = [mean, *arrays["party0_embeddings"], *arrays["party0_gradients"]]
        yield Wire(
            configuration=row["configuration"],
            federation=stored_rows.federation_of_kind(row["federation"]),
            kind=federation_of(row["federation"]).kind,
            seed=seed,
            x=np.concatenate(parts, axis=1),
            labels=splits["labels"][splits["train"][seed]],
            order=splits["known_order"][seed],
            known=known,
        )


def leak(reader: str, wire: Wire) -> float:
    """What a reader makes of a wire: the leak AUC of two classes, the balanced top-1 of more."""
    features, model = READERS[reader]
    x, rows = features(wire.x), wire.order[: wire.known]
    rest = np.setdiff1d(np.arange(len(x)), rows)
    fitted = model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(fitted, SelfTrainingClassifier):
            labels = np.full(len(x), -1)
            labels[rows] = wire.labels[rows]
            fitted.fit(x, labels)
        else:
            fitted.fit(x[rows], wire.labels[rows])
    truth = wire.labels[rest]
    if wire.labels.max() > 1:
        return float(recall_score(truth, fitted.predict(x[rest]), average="macro"))
    decide = getattr(fitted, "decision_function", None)
    scores = decide(x[rest]) if decide else fitted.predict_proba(x[rest])[:, 1]
    area = float(roc_auc_score(truth, scores))
    return max(area, 1 - area)


def every_leak(wire: Wire) -> dict[str, float]:
    """The leak of each reader."""
    with threadpool_limits(1):  # threads that wait for a busy core take many times as long
        return {reader: leak(reader, wire) for reader in READERS}


def cells(workdir: pathlib.Path, jobs: int, seeds: int) -> list[Cell]:
    """Every configuration and federation that the suite attacked, read on the first ``seeds`` seeds."""
    sweep = store.load(workdir)
    known = max(row["known"] for row in sweep.attacks.select(["known"]).to_pylist())
    read: dict[tuple[int, str], dict[str, list[float]]] = {}
    with ProcessPoolExecutor(jobs) as pool:
        every = list(wires(sweep, known, seeds))
        for wire, leaks in zip(every, pool.map(every_leak, every, chunksize=8), strict=True):
            by_reader = read.setdefault((wire.configuration, wire.federation), {})
            for reader, value in leaks.items():
                by_reader.setdefault(f"{reader} ({wire.kind})", []).append(value)
    out = []
    for a in assess(stored_rows.read(sweep), experiment_of(sweep)).attacked:
        by_reader = read.get((a.configuration.number, a.federation), {})
        if a.strongest is None or not by_reader:
            continue
        best = max(by_reader, key=lambda reader: float(np.mean(by_reader[reader])))
        values = by_reader[best]
        suite = [leak for seed, leak in a.strongest.by_seed.items() if seed < seeds]
        out.append(
            Cell(
                sweep=workdir.name,
                configuration=a.label,
                federation=a.federation,
                attack=a.strongest.name,
                suite=float(np.mean(suite)),
                reader=best,
                leak=float(np.mean(values)),
                spread=float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
            )
        )
    return out


def text(every: Sequence[Cell]) -> str:
    """How often readers beat the suite, and where."""
    names = list(dict.fromkeys(cell.sweep for cell in every))
    by_sweep = {name: [cell for cell in every if cell.sweep == name] for name in names}
    counts = [
        [
            name,
            str(len(of)),
            str(sum(c.wins for c in of)),
            f"{max(c.leak - c.suite for c in of):+.3f}",
        ]
        for name, of in by_sweep.items()
    ]
    won = sorted((c for c in every if c.wins), key=lambda c: c.suite - c.leak)
    header = [
        "sweep",
        "configuration",
        "federation",
        "the suite's strongest",
        "leak",
        "reader",
        "leak",
    ]
    rows = [
        [
            *(c.sweep, c.configuration, stored_rows.FEDERATIONS[c.federation], c.attack),
            *(f"{c.suite:.3f}", c.reader, f"{c.leak:.3f} ± {c.spread:.3f}"),
        ]
        for c in won
    ]
    lines = [
        "# The suite against readers that are not in it",
        "",
        f"A cell is a configuration in one federation. A reader wins where its mean over seeds, less its "
        f"standard deviation over seeds, is more than {MARGIN:g} above the suite's strongest.",
        "",
        *tables.markdown(["sweep", "cells", "readers win", "largest difference"], counts),
        "",
        *(tables.markdown(header, rows) if rows else ["No reader wins anywhere."]),
    ]
    return "\n".join(lines) + "\n"


def as_csv(every: Sequence[Cell]) -> str:
    """A line a cell."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*Cell._fields, "wins"])
    for cell in every:
        values = (f"{v:.4f}" if isinstance(v, float) else v for v in cell)
        writer.writerow([*values, int(cell.wins)])
    return file.getvalue()


def from_csv(file: pathlib.Path) -> list[Cell]:
    """The cells of one sweep, as ``as_csv`` wrote them."""
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    numbers = {"suite", "leak", "spread"}
    return [Cell(*(float(r[n]) if n in numbers else r[n] for n in Cell._fields)) for r in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description="Read stored exchanges with other readers.")
    add = functools.partial(parser.add_argument, type=pathlib.Path, required=True)
    add("--workdir", action="append", help="folder of a finished sweep; repeat for more")
    add("--out", help="folder of the tables")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds are read")
    arguments = parser.parse_args()
    for workdir in arguments.workdir:
        found = cells(workdir, arguments.jobs, arguments.seeds)
        store.write_text(arguments.out / f"{workdir.name}.csv", as_csv(found))
    page = text([c for file in sorted(arguments.out.glob("*.csv")) for c in from_csv(file)])
    store.write_text(arguments.out / "tables.md", page)
    print(page)


if __name__ == "__main__":
    main()
