"""Every defense has an attacker who knows it, among the attacks there are."""

import inspect

import jax.numpy as jnp
import numpy as np

from vfljax import attacks, defenses
from vfljax.attacks.adaptive import KNOWERS, advice, known
from vfljax.defenses.label_dp import channel


def test_every_defense_has_somebody_who_knows_it():
    assert set(KNOWERS) == set(defenses.TABLE)
    for forms in KNOWERS.values():
        for name, option in forms:
            assert name in attacks.TABLE
            options = inspect.signature(attacks.TABLE[name]).parameters
            # an option is a word of a form's label: a value of one of the attack's string options
            assert not option or {"rule", "epoch", "signal"} & set(options)


def test_forms_are_told_by_name_and_option():
    assert known("kdk", ["direct/most_negative/epoch=0"])
    assert not known("kdk", ["direct/first_negative/epoch=0", "passive"])
    assert known("noise", ["mean/mean/distance"])
    assert not known("noise", ["mean/oracle", "norm"])
    assert "direct most_negative" in advice("kdk")


def test_the_likeliest_label_given_a_noisy_one_is_the_noisy_one():
    """The maximum-likelihood guess under label DP is whoever reads the noisy label: ``direct``."""
    for prior in ([0.5, 0.5], [0.2] * 5, [0.5, 0.3, 0.1, 0.06, 0.04]):
        for epsilon in (0.1, 1.0, 4.0):
            table = np.asarray(channel(jnp.asarray(prior), epsilon))  # [label, noisy label]
            seen = table.sum(axis=0) > 0  # RRWithPrior never says some labels
            assert (table.argmax(axis=0) == np.arange(len(prior)))[seen].all()
