"""GAFM's two gradients, taken apart from what was stored, against their NumPy twin."""

import numpy as np
import pytest

from analysis.reproduction import gafm_gradients
from tests.reference import gafm as twin
from tests.sweeps import tiny, train
from vfljax import keys
from vfljax.defenses.gafm import draws
from vfljax.errors import UserError

KNOBS = {"delta": 0.3, "gamma": 2.0, "sigma": 0.1, "clip": 0.1, "learning_rate": 0.01}


@pytest.mark.slow
def test_parts_of_a_trained_sweep_have_the_norms_that_are_sent(tmp_path):
    config = tiny(
        data={"name": "breast_cancer", "train": 70, "validation": 20, "test": 20},
        parties={"passive": 2, "label_features": False},
        grid={"gafm": {"gafm": KNOBS}},
        attacks={},
        seeds=1,
        training={"epochs": 2, "batch_size": 32, "learning_rate": 0.1, "optimizer": "sgd"},
        **{"model.cut": 1, "model.output": "sigmoid"},
        **{"model.aggregation": "mean", "model.top": "generator"},
    )
    trained = train(tmp_path / "w", config, attack=False)
    parts = gafm_gradients.parts(trained, 0)
    assert np.bincount(parts.batch).tolist() == [32, 32, 6]
    for number in range(3):
        mine = parts.batch == number
        # the GAN's norm tells whether the response was drawn as in training
        np.testing.assert_allclose(np.linalg.norm(parts.gan[mine]), 2.0, rtol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(parts.ce[mine]), 1.0, rtol=1e-5)
    every = gafm_gradients.averages(trained, 0, "epoch", oriented=False)
    assert every == pytest.approx((parts.gan.mean(), parts.ce.mean()))


class Stored:
    """A stored setting of one party with a cut of three numbers, summed, in batches of 4, 4 and 2."""

    def __init__(self, terms="both", defenses="gafm", inverted=0.0):
        rng, self.header = np.random.default_rng(0), {}
        self.f, self.gan = rng.normal(size=(2, 10, 3)).astype(np.float32)
        self.order, self.labels = rng.permutation(10), rng.integers(0, 2, 10).astype(np.int32)
        self.row = {"trial": 0, "seed": 3, "defenses": defenses, "gafm.terms": terms}
        self.row["inverted"] = inverted
        self.row |= {f"gafm.{name}": value for name, value in KNOBS.items()}
        self.ce = np.zeros((10, 3))
        for number in range(3):
            mine = np.argsort(self.order)[4 * number : 4 * number + 4]  # in sending order
            key = keys.fold(keys.run_key(3), "step", 5 * 3 + number, "gafm")
            response = np.asarray(draws(key, self.labels[mine], 0.3, 0.1)[1])
            self.ce[mine] = twin.normalized(twin.label_gradient(self.f[mine], response, False))
            self.gan[mine] = 2 * twin.normalized(self.gan[mine])

    def exchange(self):
        sent = {"both": self.gan + self.ce, "gan": self.gan}[self.row["gafm.terms"]]
        return {
            "epochs": np.array([5]),
            "order": self.order[None],
            "sent": np.ones((1, 10), bool),
            "party0_embeddings": self.f[None],
            "party0_gradients": sent[None].astype(np.float32),
        }

    @property
    def config(self):
        return {
            "model": {"output": "identity", "aggregation": "sum"},
            "training": {"batch_size": 4, "drop_last": False},
            "parties": {"label_features": False},
        }

    workdir, plugins = "a sweep", {}

    def trial(self, number):
        assert number == 0
        return self

    def splits(self):
        return {"train": np.arange(40).reshape(4, 10), "labels": np.tile(self.labels, 4)}


def test_a_summed_cut_of_several_numbers_is_taken_apart_as_its_twin():
    stored = Stored()
    parts = gafm_gradients.parts(stored, 0)
    np.testing.assert_allclose(parts.gan, stored.gan, atol=1e-6)
    np.testing.assert_allclose(parts.ce, stored.ce, atol=1e-6)
    plain = gafm_gradients.averages(stored, 0)
    last = stored.order >= 8
    assert plain[0] == pytest.approx(stored.gan[last].sum(axis=1).mean(), abs=1e-6)
    inverted = Stored(inverted=1.0)  # which learned the labels the wrong way round
    assert gafm_gradients.averages(inverted, 0) == (-plain[0], -plain[1])
    assert gafm_gradients.averages(inverted, 0, oriented=False) == plain
    alone = Stored("gan")
    np.testing.assert_allclose(gafm_gradients.parts(alone, 0).gan, alone.gan, atol=1e-6)


def test_what_is_not_gafm_s_alone_or_not_stored_whole_is_refused(defended):
    with pytest.raises(UserError, match="trial 0 has the defenses 'gafm\\+marvell'"):
        gafm_gradients.parts(Stored(defenses="gafm+marvell"), 0)
    gafm = next(r for r in defended.results.to_pylist() if r["defenses"] == "gafm")
    with pytest.raises(UserError, match="label party with columns.*label_features=False"):
        gafm_gradients.parts(defended, gafm["trial"])
    few = Stored()
    few.order = few.order[:7]
    with pytest.raises(UserError, match="recorded 7 of 10 training rows.*record_rows=0"):
        gafm_gradients.parts(few, 0)
