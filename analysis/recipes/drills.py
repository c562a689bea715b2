"""Runs a real system on a small table, records it by its recipe, and compares the leak with a check of its own.

    python -m analysis.recipes.drills uvfl --python=ENV/bin/python --workdir=runs/drill

``ENV`` is an environment with the system and scikit-learn; it needs neither JAX nor vfljax. Three seeds are
recorded there. Attacks then run here, and beside their headline stands scikit-learn's logistic regression of as
many known labels on the mean gradient of each row, or on its nodes if no gradients crossed. The command ends
with status 1 if both differ by more than ``MOST``, and prints the seconds that each part took. Of several
passive parties the one that leaks most counts. The table is scikit-learn's breast cancer: the passive party has
the first fifteen columns. In Flower a second one has the others.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

SEEDS, KNOWN, DRAWS, PASSIVE = 3, 40, 5, 15
MOST = 0.02  # difference of the headline and the check
ROOT = pathlib.Path(__file__).parents[2]


def table():
    """Returns the standardized columns of both parties, and the labels."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return x[:, :PASSIVE], x[:, PASSIVE:], y


def record_torch(x, own, y, seed, path):
    """Plain PyTorch: a bottom model at each party, for five epochs."""
    import torch

    from analysis.recipes.plain_torch import train

    torch.manual_seed(seed)
    x, own, y = torch.tensor(x).float(), torch.tensor(own).float(), torch.tensor(y).long()
    parts = [torch.nn.Linear(PASSIVE, 8), torch.nn.Linear(own.shape[1], 8)]
    top = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.Adam([p for m in (*parts, top) for p in m.parameters()], lr=0.01)
    epochs = [torch.randperm(len(y)).split(32) for _ in range(5)]
    train(parts[0], parts[1], top, optimizer, x, own, y, epochs, path)


def record_uvfl(x, own, y, seed, path):
    """uvfl without noise: its scenario S1."""
    from analysis.recipes.uvfl_split import RecordedNN, RecordedStack

    model, stack = RecordedNN(PASSIVE, own.shape[1], 16, 16, 0.01, seed), RecordedStack()
    model.begin(x)
    stack.model = model
    model.train(x, own, y, epochs=10, batch_size=32, security=stack, seed=seed)
    model.wire.save(path, labels=y, columns=[x])


def record_vertimosaic(x, own, y, seed, path):
    """VertiMosaic's boosted trees, whose gradients passive parties read."""
    from vertimosaic.models.vfl_hist_gbdt import VFLHistGBDT
    from vertimosaic.parties import ActiveParty, PassiveParty

    from analysis.recipes.vertimosaic_trees import RecordedTransport

    transport = RecordedTransport()
    sampled = {"subsample": 0.8, "feature_subsample": 0.8}  # so that seeds differ
    model = VFLHistGBDT(n_estimators=10, seed=seed, transport=transport, **sampled)
    model.fit(ActiveParty("label", own, y), [PassiveParty("partner", x)])
    transport.wire.save(path, labels=y, columns={"partner": x})


def record_xgboost(x, own, y, seed, path):
    """XGBoost's trees, grown by one process on the columns of both parties."""
    import xgboost

    from analysis.recipes.xgboost_trees import recorder_of

    columns = np.concatenate([x, own], axis=1)
    options = {"objective": "binary:logistic", "max_depth": 3, "seed": seed}
    sampled = {"subsample": 0.8, "colsample_bytree": 0.8}  # so that seeds differ
    booster = xgboost.train({**options, **sampled}, xgboost.DMatrix(columns, y), 10)
    recorder_of(booster, columns, ["partner"]).save(path, labels=y, columns=[x])


def record_flower(x, own, y, seed, path):
    """Flower's message API in its simulation: both parts of the columns belong to clients, and the server has
    the labels alone."""
    from analysis.recipes import drilled_flower

    drilled_flower.run([x, own], y, seed, path)


def record_nvflare(x, own, y, seed, path):
    """NVFlare's collab API in its simulator: the label party has the labels alone."""
    from analysis.recipes import drilled_nvflare

    drilled_nvflare.run(x, y, seed, path)


SYSTEMS = {
    "torch": record_torch,
    "uvfl": record_uvfl,
    "vertimosaic": record_vertimosaic,
    "xgboost": record_xgboost,
    "flower": record_flower,
    "nvflare": record_nvflare,
}


def checks(path):
    """Returns the AUC of logistic regression of known labels on the mean gradient of each row, or on its nodes
    if there are no gradients, by party."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    from vfljax.datasets.wire import read_wire

    wire = read_wire(str(path))
    y, figures = np.asarray(wire.labels), []
    for party in wire.parties:
        sent = wire.sent if party.sent is None else party.sent
        exchanged = party.embeddings if party.gradients is None else party.gradients
        g = np.sum(np.asarray(exchanged), axis=0) / np.maximum(sent.sum(axis=0), 1)[:, None]
        g = (g - g.mean(axis=0)) / np.maximum(g.std(axis=0), 1e-12)
        for draw in range(DRAWS):
            order = np.random.default_rng(draw).permutation(len(y))
            known = np.concatenate([order[y[order] == c][: KNOWN // 2] for c in (0, 1)])
            rest = np.setdiff1d(order, known)
            model = LogisticRegression(max_iter=1000).fit(g[known], y[known])
            figures.append(roc_auc_score(y[rest], model.decision_function(g[rest])))
    return np.reshape(figures, (-1, DRAWS)).mean(axis=1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--python", default=sys.executable, help="of the environment of the system")
    parser.add_argument("--workdir", default="runs/drill", type=pathlib.Path)
    parser.add_argument("--attacks", default="", help="names, separated by commas; by default all")
    parser.add_argument("--budget", default="3m", help="how long attacks may take; 0: no limit")
    parser.add_argument("--record", type=int, help="record this seed and end")
    given = parser.parse_args()
    runs = [given.workdir / f"{given.system}{seed}.npz" for seed in range(SEEDS)]
    if given.record is not None:
        SYSTEMS[given.system](*table(), given.record, runs[given.record])
        return
    given.workdir.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    for seed in range(SEEDS):
        command = [given.python, "-m", "analysis.recipes.drills", given.system]
        command += [f"--record={seed}", f"--workdir={given.workdir.resolve()}"]
        subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    recorded = time.perf_counter()
    import vfljax

    names = [name for name in given.attacks.split(",") if name]
    options = {"known": KNOWN, "attacks": names, "budget": given.budget}
    found = vfljax.attack_wire(runs, given.workdir / given.system, **options)
    headline = found.judged.leading.iloc[0]
    attacked = time.perf_counter()
    checked = float(np.mean([checks(run) for run in runs], axis=0).max())
    differs = abs(headline["leak"] - checked)
    print(
        f"{given.system}: headline {headline['leak']:.3f} ({headline['leader']}), check {checked:.3f}"
    )
    print(
        f"seconds: {recorded - begun:.0f} recorded {SEEDS} seeds, {attacked - recorded:.0f} attacked them, "
        f"{time.perf_counter() - attacked:.0f} checked"
    )
    sys.exit(int(differs > MOST))


if __name__ == "__main__":
    main()
