"""Logs a stored sweep as runs of MLflow and Weights & Biases, and its training curves for TensorBoard.

A second call writes runs that are missing or have changed since, and writes no run twice.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from vfljax import store
from vfljax.errors import imported, refusals, user_path
from vfljax.report.configurations import NUMBERS
from vfljax.report.stored_rows import FEDERATIONS, federation_of_kind
from vfljax.sweep.experiment import experiment_of

if TYPE_CHECKING:
    from vfljax.library.sweeps import Sweep

FIGURES = ("utility", "accuracy", "auc", "cost", "leak", "excess", "change")  # of an ``Assessment``
CURVES = ("loss", "train_accuracy")  # of results, a value an epoch
SWEEP, KEY, DIGEST = "vfljax.sweep", "vfljax.key", "vfljax.digest"  # tags; DIGEST also names files
MOST = 1000  # metrics that MLflow takes at once


class LoggedRun(NamedTuple):
    """The logged content of a configuration in one federation, or of one of its seeds."""

    key: str  # unique in the sweep
    group: str  # the name of the configuration's run
    name: str
    params: dict[str, Any]
    metrics: dict[str, float]
    tags: dict[str, str]
    curves: dict[str, list[float]]

    @property
    def digest(self) -> str:
        """A checksum of all fields."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()[:16]


def logged_runs(sweep: Sweep) -> list[LoggedRun]:
    """Returns the runs to log: one for each configuration and federation, followed by those of its seeds.

    Raises:
      UserError: if the sweep is not finished.
    """
    sweep.require_finished()
    leaks: dict[int, dict[str, float]] = {}
    for row in sweep.rows.attacks:
        if row.point == 0:  # MLflow takes no "/" and "=" of a label
            name = "leak of " + re.sub(r"[^\w\- ]", " ", row.identity.label)
            leaks.setdefault(row.trial, {})[name] = row.figures["leak"]
    groups: dict[tuple[int, str], list[LoggedRun]] = {}
    for a in sweep.assessed.assessments:
        name = f"{a.label}, {FEDERATIONS[a.federation]}"
        figures = {figure: getattr(a, figure).mean for figure in FIGURES}
        figures |= {f"leak_{side}": limit for side, limit in a.leak.limits._asdict().items()}
        tags = {"verdict": a.verdict or "", "cost": a.kept.cost, "chosen": a.chosen}
        tags |= {"strongest": a.strongest.name if a.strongest else ""}
        place = a.configuration.number, a.federation
        head = LoggedRun(
            key=str(place),
            group=name,
            name=name,
            params={"method": a.method, "federation": a.federation, **a.configuration.knobs},
            metrics=_metrics(figures),
            tags={tag: str(value) for tag, value in tags.items()},
            curves={},
        )
        groups[place] = [head]
    for trial in sweep.rows.trials:
        head, *_ = group = groups[trial.configuration, federation_of_kind(trial.federation)]
        run = head._replace(
            key=f"trial {trial.trial}",
            name=f"{trial.federation} seed {trial.seed}",
            params={**head.params, "federation": trial.federation, "seed": trial.seed},
            metrics=_metrics({**trial.figures, **leaks.get(trial.trial, {})}),
            tags={"status": trial.figures["status"]},
            curves={name: trial.figures[name] for name in CURVES},
        )
        group.append(run)
    return [run for group in groups.values() for run in group]


def _metrics(row: Mapping[str, Any]) -> dict[str, float]:
    """Returns the figures of a row: its finite numbers without knobs and times."""
    numbers = {name: value for name, value in row.items() if isinstance(value, float)}
    no_figures = {*NUMBERS, "gamma", "seconds", *(name for name in numbers if "." in name)}
    return {k: v for k, v in numbers.items() if math.isfinite(v) and k not in no_figures}


def to_mlflow(
    sweep: Sweep, tracking_uri: str | None = None, experiment: str | None = None
) -> list[str]:
    """Logs a sweep to MLflow: a run per configuration and federation, with its seeds as nested runs.

    Args:
      sweep: a finished sweep.
      tracking_uri: a server or database, "sqlite:///mlflow.db" for example; None is MLflow's default.
      experiment: its name; None is the config's.

    Returns:
      The ids of the runs of configurations.

    Raises:
      UserError: if MLflow is missing or refuses, or the sweep is not finished.
    """
    mlflow = imported("mlflow", extra="mlflow", needed_by="to_mlflow")
    identity, parents = store.identity(sweep.workdir), {}
    runs, name = logged_runs(sweep), experiment or experiment_of(sweep).name
    with refusals("MLflow"):
        client = mlflow.MlflowClient(tracking_uri)
        found = client.get_experiment_by_name(name)
        number = found.experiment_id if found else client.create_experiment(name)
        query = f"tags.`{SWEEP}` = '{identity}'"
        stored = client.search_runs([number], query, max_results=50_000)
        known = {run.data.tags[KEY]: run for run in stored}
        for run in runs:
            tags = {SWEEP: identity, KEY: run.key}
            if run.group in parents:
                tags["mlflow.parentRunId"] = parents[run.group]
            kept = known.get(run.key) or client.create_run(number, run_name=run.name, tags=tags)
            parents.setdefault(run.group, kept.info.run_id)
            if kept.data.tags.get(DIGEST) != run.digest:
                _write(mlflow.entities, client, kept.info.run_id, run)
    return list(parents.values())


def _write(entities: Any, client: Any, number: str, run: LoggedRun) -> None:
    """Writes a whole run to MLflow. The digest is written last, so that an interrupted run has none."""
    now = int(time.time() * 1000)
    series = [*((name, [value]) for name, value in run.metrics.items()), *run.curves.items()]
    metrics = [
        entities.Metric(name, value, now, step)
        for name, values in series
        for step, value in enumerate(values)
    ]
    for first in range(0, len(metrics), MOST):
        client.log_batch(number, metrics=metrics[first : first + MOST])
    params = [entities.Param(name, str(value)) for name, value in run.params.items()]
    client.log_batch(number, params=params, tags=[entities.RunTag(*t) for t in run.tags.items()])
    client.set_terminated(number)
    client.set_tag(number, DIGEST, run.digest)


def to_wandb(
    sweep: Sweep,
    project: str = "vfljax",
    folder: str | os.PathLike[str] | None = None,
    mode: Literal["offline", "online"] = "offline",
) -> list[pathlib.Path]:
    """Logs a sweep to Weights & Biases: a run per configuration and federation, in a group with its seeds.

    Args:
      sweep: a finished sweep.
      project: of W&B.
      folder: for W&B's files; None is the folder of the sweep.
      mode: "offline" only writes files, which `wandb sync` uploads.

    Returns:
      The folders of all runs.

    Raises:
      UserError: if W&B is missing or refuses, or the sweep is not finished.
    """
    root, folders = user_path(folder or sweep.workdir, "folder"), []
    wandb = imported("wandb", extra="wandb", needed_by="to_wandb")
    with refusals(str(root)):
        root.mkdir(parents=True, exist_ok=True)
    settings = wandb.Settings(silent=True, console="off", x_disable_stats=True)
    for run in logged_runs(sweep):
        # runs of one id are one run to W&B, however often it is uploaded
        identity = f"{store.identity(sweep.workdir)} {run.key}"
        number = hashlib.sha256(identity.encode()).hexdigest()[:16]
        marks = sorted((root / "wandb").glob(f"*run-*-{number}/{DIGEST}"))
        if not marks or marks[-1].read_text() != run.digest:
            about = {"project": project, "group": run.group, "name": run.name, "id": number}
            about |= {"mode": mode, "dir": str(root), "resume": "allow", "settings": settings}
            with refusals("W&B"), wandb.init(config=run.params, **about) as logged:
                for epoch, values in enumerate(zip(*run.curves.values())):
                    logged.log(dict(zip(run.curves, values)), step=epoch)
                logged.summary.update({**run.metrics, **run.tags})
                marks = [pathlib.Path(logged.dir).parent / DIGEST]
            store.write_text(marks[-1], run.digest)  # last: an interrupted run has none
        folders.append(marks[-1].parent)
    return folders


def to_tensorboard(sweep: Sweep, folder: str | os.PathLike[str] | None = None) -> pathlib.Path:
    """Writes the training curves of a sweep as TensorBoard's event files, a folder per trial.

    Args:
      sweep: a finished sweep.
      folder: for the files; None is `tensorboard` in the folder of the sweep.

    Returns:
      The folder of all of them, for `tensorboard --logdir`.

    Raises:
      UserError: if tensorboardX is missing, or the sweep is not finished.
    """
    root = user_path(folder or sweep.workdir / "tensorboard", "folder")
    tensorboard = imported("tensorboardX", extra="tensorboard", needed_by="to_tensorboard")
    home = root / f"{experiment_of(sweep).name} {store.identity(sweep.workdir)[:8]}"
    for run in logged_runs(sweep):
        whole, half = home / run.group / run.name, home / ".unfinished"
        if run.curves and not whole.exists():
            shutil.rmtree(half, ignore_errors=True)  # interrupted writing begins anew
            with refusals("tensorboardX"), tensorboard.SummaryWriter(str(half)) as writer:
                for name, curve in run.curves.items():
                    for epoch, value in enumerate(curve):
                        writer.add_scalar(name, value, epoch)
            whole.parent.mkdir(parents=True, exist_ok=True)
            half.rename(whole)
    return root
