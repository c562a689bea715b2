"""A short run of ``tests.damage``: a flipped bit in every kind of file, and some of the coarser damages."""

import random

import pytest

from tests import damage

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    return damage.states(tmp_path_factory.mktemp("damage"))


@pytest.mark.parametrize("name", ["finished", "killed in training", "killed in attacks"])
def test_damage_changes_no_figure_unsaid(states, name):
    rng, state, said = random.Random(0), states[name], []
    of_kinds = damage.kinds(state.workdir)
    draws = [damage.drawn_damage(state.workdir, rng) for _ in range(8)]
    for kind, paths in of_kinds.items():
        path = rng.choice(paths)
        if (state.workdir / path).is_file() and kind.count("/") < 4:
            draws.append((path, damage.flip))
    for path, kind in draws:
        wrong, what = damage.trial(state, path, kind, rng)
        assert not wrong, what
        said.append(what)
    assert any("--mend" in what for what in said)
