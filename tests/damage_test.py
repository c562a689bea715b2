"""A short run of ``tests.damage``: every kind of file of a finished and of two half-finished sweeps."""

import random

import pytest

from tests import damage

# tensorstore's threads speak to an event loop that orbax has closed on meeting a damaged checkpoint
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    return dict(damage.states(tmp_path_factory.mktemp("damage")))


@pytest.mark.parametrize("name", ["finished", "killed in training", "killed in attacks"])
def test_damage_changes_no_figure_unsaid(states, name):
    rng = random.Random(0)
    # a flipped bit in every kind of file, and every fourth of the coarser damages
    outcomes = [
        damage.trial(states[name], path, kind, rng, mend)
        for i, (path, kind, mend) in enumerate(damage.trials(states[name], 1, 0, rng))
        if kind is damage.flip or i % 4 == 1
    ]
    assert [outcome.what for outcome in outcomes if not outcome.ok] == []
    assert any("--mend" in outcome.what for outcome in outcomes)


@pytest.mark.parametrize(
    ("name", "path", "kind"),
    [
        ("finished", "shards/*/results.parquet", damage.flip),
        ("finished", "attacks/probe.rule*/*/rows.parquet", damage.delete),
        ("killed in training", "partial/shards/*/*/manifest.json", damage.flip),
        ("killed in training", "shared/teachers-*/arrays.npz", damage.truncate),
        ("killed in attacks", "partial/attacks/*/*/*/rows.parquet", damage.flip),
    ],
)
def test_the_printed_remedy_ends_in_the_table_of_an_undamaged_sweep(states, name, path, kind):
    workdir = states[name].workdir
    file = sorted(workdir.glob(path))[0].relative_to(workdir)
    outcome = damage.trial(states[name], file, kind, random.Random(1), mend=True)
    assert outcome.ok, outcome.what
