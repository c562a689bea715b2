"""What an attacker had without taking part: the baselines beside every passive figure. Host only."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.linear_model import LogisticRegression

from vfljax import metrics
from vfljax.lab import Lab
from vfljax.rows import scaled
from vfljax.sight import ground_of
from vfljax.suite import Form, attacker_of


def logistic_rows(
    form: Form, rows: list[dict], lab: Lab, arrays: Mapping[str, np.ndarray]
) -> list[dict[str, Any]]:
    """The baseline without any federation: logistic regression (scikit-learn) on the same few
    labels and the attacker's own columns, one row a seed, attacker and number of known labels."""
    out = []
    structures = sorted({row["structure"] for row in rows})
    for structure, (number, point), seed in itertools.product(
        structures, enumerate(form.knobs), range(lab.config["seeds"])
    ):
        ground = jax.device_get(ground_of(lab.table, arrays, attacker_of(structure)))

        def columns(raw: np.ndarray, seed: int = seed, ground: Any = ground) -> np.ndarray:
            x = scaled(ground.features[raw], ground.mean[seed], ground.scale[seed])
            return np.asarray(x).reshape(len(raw), -1)

        known = ground.known_order[seed][: int(point["known"])]
        train, test = ground.train[seed], ground.test[seed]
        with warnings.catch_warnings():  # an unconverged baseline is still a baseline
            warnings.simplefilter("ignore")
            model = LogisticRegression(max_iter=1000)
            model.fit(columns(train[known]), ground.labels[train[known]])
        scores = np.zeros((len(train), lab.dataset.num_classes), np.float32)
        scores[:, model.classes_] = model.predict_proba(columns(train))
        unlabeled = np.ones(len(train), np.float32)
        unlabeled[known] = 0
        leak = metrics.leak(
            jnp.asarray(scores), jnp.asarray(ground.labels[train]), jnp.asarray(unlabeled)
        )
        out.append(
            {
                "attack": form.label,
                "seed": seed,
                "structure": structure,
                "what": "logistic",
                "point": number,
                "success": float(model.score(columns(train), ground.labels[train])),
                "test_success": float(model.score(columns(test), ground.labels[test])),
                "leak": float(leak),
            }
        )
    return out
