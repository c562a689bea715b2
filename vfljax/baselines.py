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
from vfljax.suite import Form, label_of


def logistic_rows(
    form: Form, sights: list[Any], lab: Lab, arrays: Mapping[str, np.ndarray]
) -> list[dict[str, Any]]:
    """The baseline without any federation: logistic regression (scikit-learn) on the same few
    labels and the attackers' own columns, one row a seed, attackers and number of known labels."""
    out = []
    who = dict.fromkeys((sight.structure, sight.number, sight.attackers) for sight in sights)
    for (structure, view, attackers), (number, point), seed in itertools.product(
        who, enumerate(form.knobs), range(lab.config["seeds"])
    ):
        ground = jax.device_get(ground_of(lab.table, arrays, attackers))

        def columns(raw: np.ndarray, seed: int = seed, ground: Any = ground) -> np.ndarray:
            own = zip(ground.features, ground.mean, ground.scale, strict=True)
            parts = [np.asarray(scaled(x[raw], mean[seed], scale[seed])) for x, mean, scale in own]
            return np.concatenate([part.reshape(len(raw), -1) for part in parts], axis=1)

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
                "attack": label_of(form, attackers),
                "seed": seed,
                "structure": structure,
                "view": view,
                "what": "logistic",
                "point": number,
                "success": float(model.score(columns(train), ground.labels[train])),
                "test_success": float(model.score(columns(test), ground.labels[test])),
                "leak": float(leak),
            }
        )
    return out
