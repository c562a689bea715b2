"""The label party alone: its figures beside undefended."""

import numpy as np
from flax import traverse_util

from tests import sweeps
from tests.sweeps import tiny
from vfljax import store
from vfljax.sweep.trainer import Trainer


def test_absent_parties_send_a_constant_that_does_not_move_whatever_malicious_ones_upload(
    tiny_sweep, tmp_path, monkeypatch
):
    """With parties that learn, a top model with batch statistics mistakes a moving bias for a signal."""
    evaluate, evaluated = Trainer.evaluate, []

    def watched(self, trials, state):
        evaluated.append(state.weights.bottoms)
        return evaluate(self, trials, state)

    monkeypatch.setattr(Trainer, "evaluate", watched)
    deviating = {"malicious.upload": "swap", "malicious.strength": 0.5}
    federations = {"federations": ("split", "malicious")}
    config = tiny(grid={"undefended": {}}, attacks={}, **deviating, **federations)
    rows = sweeps.train(tmp_path / "w", config, attack=False).results.to_pylist()
    honest = [row for row in rows if row["federation"] == "split"]
    biases = [traverse_util.flatten_dict(bottom, sep="/") for bottom in evaluated[1]]
    absent, present = ([v for k, v in of.items() if k.endswith("bias")] for of in biases)
    assert absent
    assert not any(np.any(bias) for bias in absent)  # as they start: with zeros
    assert all(np.any(bias) for bias in present)
    # the same without malicious parties, where defended trials are in the same program
    same = {"method": "undefended", "federation": "split"}
    others = [r for r in store.load(tiny_sweep).results.to_pylist() if same.items() <= r.items()]
    for name in ("alone_test_accuracy", "alone_validation_accuracy"):
        found, expected = ([row[name] for row in those] for those in (honest, others))
        np.testing.assert_allclose(found, expected)
        assert None not in found
