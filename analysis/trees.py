"""Records what a passive party learns of boosted trees on a public table, as wires to be attacked.

    python -m analysis.trees breast_cancer OUT
    python -m analysis.trees default_credit OUT --file=UCI_Credit_Card.csv.gz --alone=5

Each seed draws 60 % of the rows for training. OUT/encrypted0.npz, OUT/plain0.npz, ... hold the exchange of the
first 2,000 of them without and with gradients. The last line has the utilities of ``vfljax attack``: accuracy
on the other rows, or AUC if the rarer class has under 30 % of the rows. The label party has columns of its own
in both tables: the last 15 of breast cancer, and all but the months' repayments and bills of default of credit.
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from vfljax.federation import trees
from vfljax.federation.trees import Boosting
from vfljax.report.rows import utility_of

PASSIVE, HOLDER = 0, 1
SHARE, RECORDED = 0.6, 2000


def table(name: str, file: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns [R, F], labels [R] and the owner of each column [F]."""
    if name == "breast_cancer":
        columns, labels = load_breast_cancer(return_X_y=True)
        return (
            np.asarray(columns, np.float32),
            np.asarray(labels, np.int32),
            np.repeat([PASSIVE, HOLDER], 15),
        )
    frame = pd.read_csv(file)
    features = frame.iloc[:, 1:-1]
    months = [name.startswith(("PAY_", "BILL_")) for name in features]
    owners = np.where(months, PASSIVE, HOLDER)
    return features.to_numpy(np.float32), frame.iloc[:, -1].to_numpy(np.int32), owners


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", choices=("breast_cancer", "default_credit"))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--file", default="")
    parser.add_argument("--seeds", type=int, default=3)
    for name, default in Boosting()._asdict().items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    asked = parser.parse_args()
    boosting = Boosting(**{name: getattr(asked, name) for name in Boosting._fields})
    columns, labels, owners = table(asked.data, asked.file)
    asked.out.mkdir(parents=True, exist_ok=True)
    is_auc = utility_of(np.bincount(labels).tolist()) == "AUC"
    utilities: dict[str, list[float]] = {"utility": [], "alone": []}
    for seed in range(asked.seeds):
        order = np.random.default_rng(seed).permutation(len(labels))
        count = int(SHARE * len(labels))
        train, held, shown = order[:count], order[count:], order[: min(count, RECORDED)]
        for name, of in (("utility", boosting), ("alone", Boosting(alone=boosting.rounds))):
            made = trees.train(columns[train], labels[train], 2, owners, HOLDER, of, seed)
            p, truth = trees.probabilities(made, columns[held])[:, 1], labels[held]
            figure = roc_auc_score(truth, p) if is_auc else np.mean((p > 0.5) == truth)
            utilities[name].append(round(float(figure), 4))
            if name == "utility":
                wire = {
                    "party0_nodes": trees.nodes(made, columns[shown], PASSIVE),
                    "party0_columns": columns[shown][:, owners == PASSIVE],
                    "labels": labels[shown],
                    "version": 1,
                }
                np.savez(asked.out / f"encrypted{seed}.npz", **wire)
                g = trees.gradients(made, columns[shown], made.labels[: len(shown)])
                np.savez(asked.out / f"plain{seed}.npz", **wire, party0_gradients=g)
    print(*(f"--{name}={','.join(map(str, of))}" for name, of in utilities.items()))


if __name__ == "__main__":
    main()
