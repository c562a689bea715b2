"""Every defense has an attacker who knows it, among the attacks there are."""

import inspect

import jax.numpy as jnp
import numpy as np

from tests.attacks import cases
from vfljax import attacks, defenses
from vfljax.attacks.adaptive import KNOWERS, advice, known
from vfljax.defenses.label_dp import channel


def test_every_defense_has_somebody_who_knows_it_in_every_federation_it_can_stand_in():
    assert set(KNOWERS) == set(defenses.TABLE)
    for defense, by_federation in KNOWERS.items():
        only_split = defense in defenses.NEEDS_TOP
        assert set(by_federation) == ({"split"} if only_split else {"split", "no_split"})
        for federation, forms in by_federation.items():
            for name, option in forms:
                classes = 2
                assert attacks.TABLE[name](cases.BOTTOMS, classes).structure == federation
                # an option is a word of a form's label: the value of one of the attack's options
                values = inspect.signature(attacks.TABLE[name]).parameters
                assert not option or {"rule", "epoch", "signal"} & set(values)


def test_forms_are_told_by_federation_name_and_option():
    assert known("kdk", "no_split", ["direct/most_negative/epoch=0"])
    assert not known("kdk", "no_split", ["direct/first_negative/epoch=0", "probe"])
    assert known("noise", "split", ["mean/mean/distance"])
    assert not known("noise", "split", ["mean/oracle", "norm", "direct/mean"])
    assert "direct most_negative" in advice("kdk", "no_split")


def test_the_likeliest_label_given_a_noisy_one_is_the_noisy_one():
    """The maximum-likelihood guess under label DP is whoever reads the noisy label: ``direct``."""
    for prior in ([0.5, 0.5], [0.2] * 5, [0.5, 0.3, 0.1, 0.06, 0.04]):
        for epsilon in (0.1, 1.0, 4.0):
            table = np.asarray(channel(jnp.asarray(prior), epsilon))  # [label, noisy label]
            seen = table.sum(axis=0) > 0  # RRWithPrior never says some labels
            assert (table.argmax(axis=0) == np.arange(len(prior)))[seen].all()
