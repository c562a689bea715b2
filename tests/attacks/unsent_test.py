"""Rows that were never sent, as of a batch that is dropped: no attack scores them or learns from them."""

import numpy as np
import pytest

from tests.attacks import cases
from vfljax import attacks
from vfljax.testing.exchanges import LEAKS
from vfljax.types import SPLIT

ROWS, KNOWN = 60, 20
# what keeps those small that are trained
OPTIONS = {"probe": {"steps": 20}, "surrogate": {"steps": 10}, "joint": {"steps": 5}}
# they read their own columns too, and two_stage and the completions nothing but these
COLUMNS = ("joint", "posterior")
OTHERS = ("passive", "active", "two_stage", "batch_inversion")


@pytest.mark.parametrize("name", [name for name in attacks.TABLE if name not in OTHERS])
def test_rows_never_sent_have_no_score_and_change_none(name):
    rng, labels = np.random.default_rng(3), np.arange(ROWS) % 2
    sent = np.broadcast_to(np.arange(ROWS) % 7 != 3, (2, ROWS))
    attack = cases.build(attacks.TABLE[name], 2, **OPTIONS.get(name, {}))
    leak = "clusters" if attack.federations[0] == SPLIT else "logits_and_signs"
    arrays = {**LEAKS["features"](rng, labels, 2), **LEAKS[leak](rng, labels, 2)}
    scores = []
    for garbage in (0.0, 9.0):
        for part in ("embeddings", "gradients"):
            if part in arrays:
                arrays[part] = np.where(sent[0][:, None], np.asarray(arrays[part]), garbage)
        case = cases.make_case(labels, 2, known=KNOWN, sent=sent, **arrays)
        scores.append(np.asarray(cases.attack(attack, case).train))
    np.testing.assert_array_equal(scores[0][sent[0]], scores[1][sent[0]])
    assert np.all(np.isfinite(scores[0][sent[0]]))
    if name not in COLUMNS:
        assert np.all(np.isnan(scores[0][~sent[0]]))
