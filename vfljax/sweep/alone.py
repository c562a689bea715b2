"""What the label party reaches alone with learners other than its network: its columns and all training labels.

The federation's gain is compared with the best of these and of the network of its shard (``shard_trainer``),
of which each seed's validation rows choose one, so that a weak network does not make a gain.

    boosting  histogram gradient boosting on the columns as they are, codes as numbers
    logistic  logistic regression on standardized columns, codes one-hot
    ridge     ridge regression in its place, of labels that are numbers

All are scikit-learn's. Recordings, texts, and more than ``WIDEST`` columns have no such figures.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from vfljax import tasks
from vfljax.sweep.plan import Plan
from vfljax.types import HostArray

ALONE_LEARNERS = {"classification": ("boosting", "logistic"), "regression": ("boosting", "ridge")}
WIDEST, MOST_ROWS = 4096, 20_000  # columns, and training rows of which the first ones are read
ROUNDS, STEPS = 60, 200  # of boosting, and of the logistic regression's optimizer


class Alone:
    """The learners of the label party, fitted once a seed and process."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._found = plan, dict[int, dict[str, float]]()

    def figures(self, seed: int) -> dict[str, float]:
        """Returns accuracies and, of two classes, AUCs, such as "alone_boosting_test_accuracy", or R² of
        numbers; {} if there is nothing to learn from."""
        if seed not in self._found:
            self._found[seed] = _figures(self._plan, seed)
        return self._found[seed]


def _figures(plan: Plan, seed: int) -> dict[str, float]:
    # imported here because a report reads only the names of the learners, and this takes a second
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import r2_score, roc_auc_score

    if not plan.experiment.parties.label_features or plan.dataset.recording is not None:
        return {}
    own = plan.party_columns[-1]
    if own.input.kind == "text" or int(np.prod(own.input.shape)) > WIDEST:
        return {}
    split, labels = plan.splits[seed], plan.dataset.labels
    rows = {"train": split.train[:MOST_ROWS], "validation": split.validation, "test": split.test}
    rows = {name: np.asarray(of) for name, of in rows.items() if len(of)}
    if len(np.unique(labels[rows["train"]])) < 2:
        return {}
    raw = {
        n: np.asarray(own.features[of], np.float64).reshape(len(of), -1) for n, of in rows.items()
    }
    out: dict[str, float] = {}
    # more threads would wait for each other beside those that train
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name in ALONE_LEARNERS[tasks.of(plan.dataset.num_classes).name]:
            x = raw if name == "boosting" else _standardized(raw, own.input.vocabulary)
            model = _model(name, plan.dataset.num_classes).fit(x["train"], labels[rows["train"]])
            for part in rows.keys() - {"train"}:
                true = labels[rows[part]]
                if plan.dataset.num_classes == 1:
                    out[f"alone_{name}_{part}_r2"] = float(r2_score(true, model.predict(x[part])))
                    continue
                scores = model.predict_proba(x[part])
                out[f"alone_{name}_{part}_accuracy"] = float(
                    np.mean(model.classes_[scores.argmax(1)] == true)
                )
                if plan.dataset.num_classes == 2 and len(np.unique(true)) == 2:
                    out[f"alone_{name}_{part}_auc"] = float(roc_auc_score(true, scores[:, 1]))
    return out


def _model(name: str, num_classes: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge

    if name == "boosting":
        of_numbers = num_classes == 1
        boosting = HistGradientBoostingRegressor if of_numbers else HistGradientBoostingClassifier
        return boosting(max_iter=ROUNDS, random_state=0)
    return Ridge() if name == "ridge" else LogisticRegression(max_iter=STEPS)


def _standardized(raw: dict[str, HostArray], vocabulary: tuple[int, ...]) -> dict[str, HostArray]:
    """Returns columns as a linear model reads them: numbers by the training rows' moments, codes one-hot."""
    sizes = np.asarray(vocabulary or (0,) * raw["train"].shape[1])
    coded, train = sizes > 0, raw["train"]
    mean, spread = np.nanmean(train, axis=0), np.nanstd(train, axis=0)
    out = {}
    for part, x in raw.items():
        numbers = np.nan_to_num((x - mean) / np.where(spread > 0, spread, 1.0))[:, ~coded]
        codes = [np.eye(size)[x[:, k].astype(int)] for k, size in enumerate(sizes) if size]
        out[part] = np.concatenate([numbers, *codes], axis=1)
    return out
