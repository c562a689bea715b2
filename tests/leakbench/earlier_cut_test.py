"""The entry of an earlier cut moves layers and changes nothing else."""

import dataclasses
import sys

import pytest

import vfljax
from analysis.leakbench import entry_files
from tests import harness
from vfljax import defenses
from vfljax.errors import UserError, packaged
from vfljax.models import Generator, Probability
from vfljax.sweep.grid import parse

ENTRIES, NAME = packaged("analysis/leakbench/entries"), "earlier_cut:earlier"


@pytest.fixture(autouse=True)
def tables():
    before = dict(defenses.TABLE)
    vfljax.plugins.use(ENTRIES / "earlier_cut.py")
    yield
    defenses.TABLE.clear()
    defenses.TABLE.update(before)
    sys.modules.pop("earlier_cut", None)


@pytest.mark.parametrize("hidden", [(), (32,)])
def test_layers_move_from_every_bottom_to_the_top_model_and_their_number_stays(hidden):
    given = harness.make_spec(2, hidden=hidden)
    given = dataclasses.replace(given, top=Generator((16,), 2, "torch"))
    moved = [defenses.TABLE[NAME].network(given, layers=layers) for layers in (0, 1, 2)]
    width = 32 if hidden else 4
    assert [spec.top.hidden for spec in moved] == [(16,), (width, 16), (width, width, 16)]
    for layers, spec in enumerate(moved):
        assert {bottom.hidden for bottom in spec.bottoms} == {(width,) * (2 - layers)}
        # all else is as it was: widths of the cut, initial weights, activations
        bottoms = tuple(dataclasses.replace(bottom, hidden=hidden) for bottom in spec.bottoms)
        top = dataclasses.replace(spec.top, hidden=(16,))
        assert dataclasses.replace(spec, bottoms=bottoms, top=top) == given


def test_networks_without_layers_to_move_and_other_numbers_of_layers_are_refused():
    network, spec = defenses.TABLE[NAME].network, harness.make_spec(2)
    with pytest.raises(ValueError, match="bottoms 'mlp' to a top model"):
        network(dataclasses.replace(spec, top=Probability((), 2)))
    for layers in (-1, 3, 0.5):
        with pytest.raises(ValueError, match="layers="):
            defenses.TABLE[NAME](layers=layers)


def test_it_keeps_the_rules_of_the_contract_that_need_no_training():
    known, slots, *_ = vfljax.testing.rules(NAME)
    for rule in (known, slots):
        vfljax.testing.check(NAME, rule=rule)


def test_an_entry_lists_numbers_of_layers_as_whole_ones():
    """An option that is a whole number is not read as a float, which the grid refuses."""
    entry = entry_files.read(ENTRIES / "earlier_cut.json")
    config = parse({"grid": {"earlier_cut": entry.chain("digits")}, "attacks": {}})
    assert config.grid["earlier_cut"][NAME]["layers"] == [1, 2]
    with pytest.raises(UserError, match="no whole number"):
        parse({"grid": {"earlier_cut": {NAME: {"layers": (1.5,)}}}, "attacks": {}})
