"""The label party alone: its figures beside undefended."""

import numpy as np
from flax import traverse_util

from tests import sweeps
from tests.sweeps import tiny
from vfljax.sweep.trainer import Trainer


def test_absent_parties_send_a_constant_that_does_not_move_whatever_malicious_ones_upload(
    tmp_path, monkeypatch
):
    """A top model, above all one with batch statistics, would mistake a bias that moves for a signal."""
    evaluate, evaluated = Trainer.evaluate, []

    def watched(self, trials, state):
        evaluated.append((self.table.features[0], state.weights.bottoms))
        return evaluate(self, trials, state)

    monkeypatch.setattr(Trainer, "evaluate", watched)
    deviating = {"malicious.upload": "swap", "malicious.strength": 0.5, "training.epochs": 2}
    top = {"model.top": "mlp", "model.top_hidden": (8,), "model.hidden": ()}
    fields = {"federations": ("split", "malicious"), "grid": {"undefended": {}}, "attacks": {}}
    stored = sweeps.train(tmp_path / "w", tiny(**fields, **deviating, **top), attack=False)
    columns, bottoms = evaluated[1]
    assert not np.any(columns)
    biases = [traverse_util.flatten_dict(bottom, sep="/") for bottom in bottoms]
    absent, present = ([v for k, v in of.items() if k.endswith("bias")] for of in biases)
    assert absent
    assert not any(np.any(bias) for bias in absent)  # as they start: with zeros
    assert all(np.any(bias) for bias in present)
    for row in stored.results.to_pylist():
        assert (row["alone_test_accuracy"] is not None) == (row["federation"] == "split")
        assert row["alone_test_accuracy"] != row["test_accuracy"]
