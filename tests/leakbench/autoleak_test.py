"""AutoLeak is frozen: what changes the figures of a small board is a new version of the suite."""

import pytest

from analysis.leakbench.autoleak import autoleak
from tests.sweeps import train
from vfljax.attack_runs import view
from vfljax.attacks import learners
from vfljax.attacks.core import FEW_DRAWS
from vfljax.config import from_file
from vfljax.errors import UserError
from vfljax.sweep import sharding

VERSION = "3.0"
LAYOUT = {
    "places": 8,
    "draws": 2,
    "quick": 1,
    "pays": 60.0,
    "few_rows": 20_000,
    "moment": 2.0,
    "few_scored": 2_000_000,
}
# the mean leak over two seeds and three epochs; another CPU moves last bits, which exchange few ranks
NEAR = 0.01
FIGURES = {
    "cosine_epoch=-1.rule1": 1.0,
    "cosine_epoch=0.rule1": 0.986,
    "norm_epoch=-1.rule1": 0.712,
    "norm_mean.rule1": 0.744,
    "residual.rule1": 0.987,
    "spectral_embeddings.rule1": 0.867,
    "spectral_embeddings_whole.rule1": 0.98,
    "spectral_gradients.rule1": 0.819,
    "spectral_gradients_whole.rule1": 1.0,
}


def test_layout_and_compiler_are_those_of_the_version():
    assert autoleak().version == VERSION
    autoleak().require_current()
    names = ("quick", "pays", "few_rows", "moment", "few_scored")
    levels = {name: getattr(sharding, name.upper()) for name in names}
    assert {"places": view.PLACES, "draws": FEW_DRAWS, **levels} == LAYOUT


def test_learners_of_another_rule_need_a_new_version(monkeypatch):
    monkeypatch.setattr(learners, "RULE", learners.RULE + 1)
    with pytest.raises(UserError, match="frozen with other rules of learners"):
        autoleak().require_current()


@pytest.mark.slow
def test_a_small_board_has_the_figures_of_the_version(tmp_path):
    config = from_file("configs/leakbench.py:breast_cancer")
    attacks = {name: config["attacks"][name] for name in ("norm", "cosine", "spectral", "residual")}
    config |= {"seeds": 2, "known_draws": 1, "federations": ("split",), "attacks": attacks}
    config["training"] |= {"epochs": 3}
    rows = train(tmp_path / "w", config).attacks.to_pandas()
    figures = rows.groupby("variant")["leak"].mean().to_dict()
    assert figures == pytest.approx(FIGURES, abs=NEAR)
