"""GAFM's choice of Delta: train every candidate on a tenth of the rows, and choose the best trade-off.

The best Delta has the smallest mean ratio of leak AUC to oriented training AUC, over repeats and the norm,
mean and median attacks (Han and Guan 2023, section 3.3 and appendix D.3). The label party runs this on its
own labels. The attacks know the true class centers, and are thus an upper bound on what the parties could do.
Parties whose embeddings are averaged receive equal gradients, so that only the first party is attacked.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from vfljax import defenses, store
from vfljax.config import AXES
from vfljax.defenses.gafm import CANDIDATES, select_delta
from vfljax.errors import UserError
from vfljax.sweep.experiment import Experiment, changed
from vfljax.sweep.plan import recorded
from vfljax.sweep.records import as_axis
from vfljax.sweep.train import train_sweep

SHARE, REPEATS = 0.1, 5  # share of the training rows; number of seeds
FOLDER = "select_delta"  # the folder, in the workdir, of the sweep that selects


class Selection(NamedTuple):
    """The chosen Delta and what it was chosen on; figures are means over repeats and attacks."""

    delta: float
    leak: dict[float, float]  # candidate -> mean leak AUC of norm, mean and median attacks
    train_auc: dict[float, float]  # candidate -> mean oriented training AUC


def _gradient_leaks(gradients: np.ndarray, labels: np.ndarray) -> tuple[float, float, float]:
    """The leak AUC max(a, 1-a) of the norm, mean and median attacks on gradients [N, D] of one party.

    Mean and median assign a row to the nearer TRUE class center (paper, equations 8 and 9).
    """

    def leak(scores: np.ndarray) -> float:
        a = float(roc_auc_score(labels, scores))
        return max(a, 1 - a)

    def nearer(center: Callable[..., np.ndarray]) -> np.ndarray:
        to = [
            np.linalg.norm(gradients - center(gradients[labels == c], axis=0), axis=1)
            for c in (0, 1)
        ]
        return (to[1] <= to[0]).astype(float)

    norms = np.linalg.norm(gradients, axis=1)
    return leak(norms), leak(nearer(np.mean)), leak(nearer(np.median))


def _selection_experiment(experiment: Experiment, candidates: tuple[float, ...]) -> Experiment:
    """Returns the sweep that selects: gafm alone with every candidate for delta, on a tenth of the rows. All
    other values are the first ones of the axes of the config and of its first method with gafm.

    Raises UserError if no method has gafm, or if one has gafm and a defense with an epsilon."""
    methods = [method for method in experiment.methods if "gafm" in method.axes]
    even = np.full(2, 0.5)
    for method, chain, name in ((m, c, n) for m in methods for c in m.chains for n in m.axes):
        if defenses.TABLE[name].remarks.bound(chain.knobs[name], chain.options[name], even):
            raise UserError(
                f"config.grid.{method.name} has {name} and gafm: selecting Delta reads the true labels, "
                "which epsilon does not cover. Choose delta there yourself and leave out "
                "--select_delta."
            )
    if not methods:
        raise UserError(
            "there is no Delta to select: no method of config.grid has gafm in it. Add one, or leave "
            "out --select_delta."
        )
    method = methods[0]
    first = {knob: as_axis(values)[0] for knob, values in method.axes["gafm"].items()}
    chain = {"gafm": {**first, "delta": list(candidates)}}
    rows, batch_size = experiment.data.train, experiment.training.batch_size
    share = rows * SHARE
    fewer = max(2, round(share))
    fields = {
        "name": f"{experiment.name}-select-delta",
        "seeds": REPEATS,
        "data.train": share if rows < 1 else fewer,
        "training.batch_size": min(batch_size, fewer) if rows >= 1 else batch_size,
        **{path: values[0] for path, values in zip(AXES, experiment.numbers.values())},
        # not used: only the honest federation is trained
        "malicious.gamma": 1.0,
        "malicious.strength": 0.0,
        "grid": {method.name: ({"model": dict(method.top)} if method.top else {}) | chain},
        "attacks": {},
    }
    return changed(experiment, fields)


def select(
    experiment: Experiment,
    workdir: pathlib.Path,
    command: str,
    say: Callable[[str], None] = print,
    candidates: tuple[float, ...] = CANDIDATES,
) -> Selection:
    """Train every candidate with 5 seeds on a tenth of the training rows, and select.

    Args:
      experiment: of the sweep.
      workdir: of the sweep. The selection is another sweep in its folder ``FOLDER``, which resumes like any
        sweep. selection.json is written there.
      command: the command line.
      say: receives lines about the progress.
      candidates: for Delta.

    Returns:
      The chosen Delta and the figures of all candidates.
    """
    folder = workdir / FOLDER
    say(f"selecting Delta of gafm among {', '.join(map(str, candidates))}")
    plan = train_sweep(_selection_experiment(experiment, candidates), folder, command, say)
    stored = store.load(folder)
    leaks: dict[float, list] = {delta: [] for delta in candidates}
    aucs: dict[float, list] = {delta: [] for delta in candidates}
    for row in stored.results.to_pylist():
        if row["status"] != "ok":
            continue
        exchange = stored.trial(row["trial"]).exchange()
        sent = np.asarray(exchange["sent"][-1])
        gradients = np.asarray(exchange["party0_gradients"][-1])[sent]
        labels = plan.dataset.labels[recorded(plan).splits[row["seed"]].train][sent]
        delta = min(candidates, key=lambda c, row=row: abs(c - row["gafm.delta"]))
        leaks[delta].append(_gradient_leaks(gradients, labels))
        aucs[delta].append(row["train_auc"])
    finite = {delta: np.array(leaks[delta]) for delta in candidates if leaks[delta]}
    if not finite:
        raise UserError("every run of the selection of Delta diverged: lower the learning rate.")
    auc = {delta: np.array(aucs[delta]) for delta in finite}
    chosen = Selection(
        select_delta(finite, auc),
        {delta: float(values.mean()) for delta, values in finite.items()},
        {delta: float(np.maximum(a, 1 - a).mean()) for delta, a in auc.items()},
    )
    store.write_text(folder / "selection.json", json.dumps(chosen._asdict(), indent=1))
    for delta in finite:
        mark = " <- chosen" if delta == chosen.delta else ""
        figures = f"leak AUC {chosen.leak[delta]:.3f}, oriented training AUC"
        say(f"Delta {delta:g}: {figures} {chosen.train_auc[delta]:.3f}{mark}")
    return chosen
