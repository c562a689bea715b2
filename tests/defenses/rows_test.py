"""The row of a defense: what it says of its factory, and which attacks know of it."""

import math

import numpy as np
import pytest

from tests.sweeps import identity
from vfljax.defenses import TABLE, Defense, DefenseRow, Knower


def factory(strength, size=2.0, *, law="first"):
    return Defense(init=lambda key, data: (strength, size, law))


ROW = DefenseRow(factory, example={"strength": 1.0, "size": 2.0}, known_by={})


def test_a_mapping_of_both_is_taken_apart_and_what_is_neither_is_left_out():
    values = {"law": "second", "strength": 1.0, "unknown": 3}
    assert ROW.knobs_and_options(values) == ({"strength": 1.0}, {"law": "second"})


def test_forms_are_recognized_by_federation_name_and_option():
    kdk, noise = TABLE["kdk"], TABLE["noise"]
    assert kdk.known_to("no_split", [identity("direct/most_negative")])
    assert not kdk.known_to("no_split", [identity("direct/first_negative"), identity("probe")])
    assert kdk.known_to("split", [identity("norm"), identity("spreading")])
    assert not kdk.known_to("split", [identity("probe"), identity("joint")])
    assert noise.known_to("split", [identity("mean/mean")])
    assert not noise.known_to(
        "split", [identity("mean/oracle"), identity("norm"), identity("direct/mean")]
    )
    assert not TABLE["gafm"].known_to("no_split", [identity("residual"), identity("probe")])


def test_advice_names_the_forms_in_a_config_s_words():
    row = DefenseRow(
        factory, {}, known_by={"split": (Knower("probe"), Knower("spectral", "gradients"))}
    )
    assert row.advice("split") == "probe, spectral gradients"
    assert row.advice("no_split") == ""


EVEN = np.full(2, 0.5)
RAW = {"mechanism": "rr_with_prior", "prior": "teacher", "guarantee": "none"}


@pytest.mark.parametrize(
    ("name", "guess", "unbound"),
    [
        ("label_dp", "0.731", (RAW,)),  # e / (e + 1)
        ("class_splitting", "0.731", ()),
        ("grad_perturb", "0.697", ({"draw": "step"}, {"reach": "cut"})),  # 1 - e^(-1/2) / 2
        ("alibi", "0.621", ({"draw": "step"},)),
        (
            "vlp",
            "0.622",
            (),
        ),  # with q = 1 / (1 + e^.5): (1 - (1 - q)^2) e^.5 / 2 + (1 - q)^2 e^-.5 / 2
    ],
)
def test_a_bound_is_stated_for_the_forms_that_keep_it_only(name, guess, unbound):
    remarks = TABLE[name].remarks
    said = remarks({"epsilon": 1.0}, {})
    assert (said.bound(EVEN), said.epsilon, said.knob_labels) == (("2.72", guess), 1.0, {})
    assert said.bound_sentence
    assert remarks({"epsilon": math.inf}, {}).bound(EVEN) == ("no bound", "1.000")
    for options in unbound:
        said = remarks({"epsilon": 1.0}, options)
        assert said.bound is None or all("no guarantee" in text for text in said.bound(EVEN))
        assert (said.epsilon, said.bound_sentence) == (None, "")
        assert said.knob_labels == {"epsilon": "strength"}


def test_the_best_guess_of_a_prior_that_differs_from_row_to_row_or_by_seed_is_not_stated():
    for mechanism, differs in (("rr_with_prior", "from row"), ("block_rr", "from seed")):
        options = {"mechanism": mechanism}
        said = TABLE["label_dp"].remarks({"epsilon": 1.0}, options)
        odds, guess = said.bound(EVEN)
        assert (odds, differs in guess, said.epsilon) == ("2.72", True, 1.0)
