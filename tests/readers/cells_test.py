"""Readers are scored by the rules of attacks, and compared with the strongest attack or learner of each run."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from analysis.readers import cells, command, graphs, protocol
from tests.stored_sweep import FIXTURE
from tests.sweeps import silent
from vfljax import store
from vfljax.errors import UserError
from vfljax.report.sweep_answers import judge_sweep

KNOWN = 20  # labels that the probe of the stored sweep knows


def nearest_mean(view, known, num_classes):
    """Minus the distance to the mean embedding of the known rows of each class."""
    rows, labels = known.rows[: known.count], known.labels[: known.count]
    assert (known.count, len(rows)) == (KNOWN, KNOWN)
    assert (known.labels[KNOWN:] == -1).all()
    z = view.embeddings[-1]
    means = np.stack([z[rows[labels == c]].mean(0) for c in range(num_classes)])
    return -np.linalg.norm(z[:, None] - means, axis=-1)


@pytest.fixture(scope="module", autouse=True)
def judged():
    """The stored sweep is judged once for all tests: none of them changes it."""
    found = judge_sweep(FIXTURE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "judge_sweep", {FIXTURE: found}.__getitem__)
        yield found


@pytest.fixture(scope="module")
def table():
    return cells.cells(FIXTURE, {"nearest_mean": nearest_mean}, say=silent)


def test_the_leak_is_that_of_rows_whose_labels_are_not_known(table, judged):
    sweep = store.load(FIXTURE)
    splits, leaks = sweep.splits(), {}
    for row in sweep.results.to_pylist():
        if row["federation"] == "no_split" or row["status"] != "ok":
            continue
        train = splits["train"][row["seed"]]
        labels, order = splits["labels"][train], splits["known_order"][row["seed"]]
        z = sweep.trial(row["trial"]).exchange()["party0_embeddings"][-1]
        known, rest = order[:KNOWN], order[KNOWN:]
        means = np.stack([z[known[labels[known] == c]].mean(0) for c in range(10)])
        guess = np.linalg.norm(z[:, None] - means, axis=-1).argmin(1)
        leak = balanced_accuracy_score(labels[rest], guess[rest])
        # of a run the federation that leaks most counts
        place = row["configuration"], row["seed"]
        leaks[place] = max(leaks.get(place, 0), leak)
    label = {c: of["label"].iloc[0] for c, of in judged.verdicts.groupby("configuration")}
    split = table[table["panel"] == "with model splitting"].set_index("label")
    assert len(split) == len({c for c, _ in leaks})
    for number in {c for c, _ in leaks}:
        mean = np.mean([leaks[number, seed] for seed in (0, 1)])
        assert split.loc[label[number], "leak"] == pytest.approx(mean, abs=1e-6)


def test_the_gain_is_over_the_strongest_attack_or_learner_of_each_run(table, judged):
    leading = judged.leading.set_index("label")
    for row in table.to_dict("records"):
        (stored,) = leading.loc[leading["panel"].map(cells.PANELS) == row["panel"], "leak"].loc[
            [row["label"]]
        ]
        assert row["stored"] == pytest.approx(stored)
        assert row["gain"] == pytest.approx(row["leak"] - stored)
        assert np.mean(row["gains"]) == pytest.approx(row["gain"])


def test_the_command_prints_the_cells_that_are_won(capsys, monkeypatch):
    read, tables = cells.cells, []

    def once(folder, readers, *rest):
        tables.append(tables[0] if tables else read(folder, readers, *rest))
        return tables[0]

    monkeypatch.setattr(cells, "cells", once)
    command.run(graphs.__file__, [FIXTURE], margin=-2.0)
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith("5 readers win by more than -2 in ")
    assert sum(" columns_graph | " in line for line in printed) == int(printed[-1].split()[8])
    command.run(graphs.__file__, [FIXTURE], margin=1.0)
    assert "| configuration |" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "has no reader"),
        ("def _of(view, known, num_classes): ...", "has no reader"),
        ("raise KeyError(3)", "KeyError"),
        ("def one(view, known): ...", "the reader one cannot be called"),
        ("def one(view, known, num_classes): return known.rows", "returns the shape [48]"),
        ("def one(view, known, num_classes): 1 / 0", "the reader one on trial 0 raised ZeroDiv"),
        (
            "import numpy\ndef one(v, k, c): return numpy.full((48, c), numpy.nan)",
            "has no finite score of row 0",
        ),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, text, message):
    (tmp_path / "mine.py").write_text(text + "\n")
    with pytest.raises(UserError, match=r"^[^\n]+$") as refused:
        cells.cells(FIXTURE, protocol.readers_of(tmp_path / "mine.py"), say=silent)
    assert message in str(refused.value)
