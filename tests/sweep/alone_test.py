"""The label party alone: its figures beside undefended."""

import numpy as np

from tests import sweeps
from tests.sweeps import TINY, tiny


def alone(tmp_path, name, **changes):
    """Its accuracies on test rows by seed, undefended, with model splitting."""
    config = tiny(
        **{"grid": {"undefended": {}}, "attacks": {}, "federations": ("split",)} | changes
    )
    rows = sweeps.train(tmp_path / name, config, attack=False).results.to_pylist()
    return [row["alone_test_accuracy"] for row in rows if row["federation"] == "split"]


def test_a_top_model_with_batch_statistics_reads_no_constant_that_moves(tmp_path):
    """What absent parties send once moved with their biases, and seed 1 fell to .10 on test rows."""
    adam = {"optimizer": "adam", "learning_rate": 1e-3, "momentum": 0.0, "weight_decay": 0.0}
    training = {**TINY["training"], **adam, "epochs": 24, "batch_size": 32}
    data = {"name": "digits", "train": 0.6, "validation": 0.2, "test": 0.2, "scaling": "standard"}
    model = {"hidden": (32,), "activation": "leaky_relu", "cut": 10, "top": "head"}
    changes = {"training": training, "data": data, "model": {**model, "top_hidden": (16,)}}
    assert min(alone(tmp_path, "adam", **changes)) > 0.8


def test_an_upload_of_malicious_parties_plays_no_part_in_it(tmp_path):
    deviating = {"malicious.upload": "swap", "malicious.strength": 0.5}
    federations = {"federations": ("split", "malicious")}
    honest = alone(tmp_path, "honest")
    np.testing.assert_allclose(alone(tmp_path, "deviating", **deviating, **federations), honest)
