"""What is no message, no wire or no file is refused, and nothing is lost."""

import numpy as np
import pytest

import vfljax
from tests.datasets.refusals import refused
from tests.recorder.recorder_test import COLUMNS, LABELS, ONES, D, N, quiet


def test_a_message_of_another_recorder_is_refused():
    one, other = vfljax.Recorder(), vfljax.Recorder()
    message = one.sent(0, range(N), ONES)
    other.sent(0, range(N), ONES)
    refused(other.received, 0, message, ONES, match="is of another recorder")


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def full(file, **arrays):
        file.write(b"begun")
        raise OSError("No space left on device")

    wire = vfljax.Recorder()
    wire.sent(0, range(N), ONES)
    with monkeypatch.context() as patched:
        patched.setattr(np, "savez", full)
        with pytest.raises(OSError, match="No space"):
            wire.save(tmp_path / "wire", labels=LABELS, say=quiet)
    assert not [*tmp_path.iterdir()]
    wire.save(tmp_path / "wire", labels=LABELS, say=quiet)
    assert [of.name for of in tmp_path.iterdir()] == ["wire"]


class OnGpu:
    def __array__(self, dtype=None, copy=None):
        raise TypeError("use cpu() first")


def sends(rows=range(N), array=ONES, party=0):
    return lambda wire: wire.sent(party, rows, array)


def answers(rows=range(N), array=ONES, **options):
    return lambda wire: wire.received(0, rows, array, **options)


@pytest.mark.parametrize(
    ("calls", "line"),
    [
        ([sends(array=np.ones((N - 1, D)))], r"shape \[23, 3\] for 24 rows"),
        ([sends(), sends(array=np.ones((N, 4)))], r"shape \[4\] after rows of shape \[3\]"),
        ([sends(array=np.full((N, D), "a"))], "sends <U1: give numbers"),
        ([sends(rows=np.ones(N))], "ids of rows are float64"),
        ([sends(rows=np.ones((N, 1), int))], r"ids of rows have the shape \[24, 1\]"),
        ([sends(party="shop")], "party='shop' is no party of this recorder"),
        ([answers()], "no messages of these rows"),
        ([sends(), sends(), answers()], "2 messages of these rows have none yet"),
        ([sends(), answers(), answers()], "no messages of these rows"),
        ([sends(), answers(scale=0)], "^scale=0 is no factor"),
        ([sends(), lambda wire: wire.received(0, vfljax.recorder.Message(1, 0, wire), ONES)], "of party 1"),
        ([sends(), answers(array=np.ones((N, 2)))], r"receives rows of shape \[2\] after"),
        ([lambda wire: wire.told(0, -1, "root", range(N))], "^tree=-1 is no number of a tree"),
        ([lambda wire: wire.told(0, 0, "root", range(N), np.ones((N, 3)))], r"gradients of shape \[24, 3\]"),
        ([sends(rows=[0] * N), answers(rows=np.arange(N))], "no messages of these rows"),
        ([sends(rows=2 * [*range(N // 2)]), answers(rows=sorted(2 * [*range(N // 2)]))], "in another order"),
        ([sends(array=object())], "sends object: give numbers"),
        ([sends(array=OnGpu())], "sends a OnGpu that NumPy cannot read: copy it"),
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused_and_nothing_is_lost(calls, line):
    wire = vfljax.Recorder([0])
    *before, last = calls
    for call in before:
        call(wire)
    kept = [(m.rows, m.gradients) for m in wire._messages], len(wire._nodes)
    refused(last, wire, match=line)
    assert ([(m.rows, m.gradients) for m in wire._messages], len(wire._nodes)) == kept


@pytest.mark.parametrize(
    ("calls", "given", "line"),
    [
        ([], {}, "nothing was recorded"),
        ([sends(rows=range(1, N + 1))], {"labels": LABELS}, "such as 24: give row_ids"),
        ([sends(rows=[f"{i}" for i in range(N)])], {"labels": LABELS}, "ids that are texts"),
        ([sends(), sends(rows=["a"] * N)], {}, "ids of rows are numbers and texts"),
        ([sends()], {"labels": LABELS, "row_ids": np.zeros(N, int)}, "row_ids has an id twice"),
        ([sends()], {"labels": LABELS.astype(str)}, r"labels holds <U\d+: give numbers, such as np\.unique"),
        ([sends()], {"labels": LABELS + 0.5}, "hold 0.5 in row 0.*or task="),
        ([sends()], {"labels": 2 * LABELS - 1}, "hold -1 in row 0"),
        ([sends()], {"labels": LABELS, "task": "amounts"}, "task='amounts' is unknown: choose cl"),
        ([sends()], {"labels": [np.nan, *LABELS[1:]], "task": "regression"}, "hold nan in row 0"),
        ([sends()], {"labels": LABELS, "known_labels": [1]}, "for each of the 0 known rows"),
        ([sends()], {"labels": LABELS, "known_rows": [N]}, "known_rows has rows that are not among"),
        ([sends()], {"columns": [np.ones((3, 2))], "labels": LABELS}, r"has the shape \[3, 2\]"),
        ([sends()], {"columns": [None, COLUMNS], "labels": LABELS}, "of 2 parties, and 1 sent"),
        ([sends()], {"columns": {"shop": COLUMNS}, "labels": LABELS}, "^columns='shop' names a party"),
        ([sends(array=None), sends()], {}, "with and without an array"),
        ([sends(array=None)], {}, "neither arrays nor answers"),
        ([sends(array=np.full((N, D), np.nan))], {}, "holds NaN or infinity"),
        ([sends(), lambda wire: wire.told(0, 0, 1, range(N))], {}, "a wire holds one of both"),
    ],
)  # fmt: skip
def test_what_is_no_wire_is_refused_and_no_file_is_written(calls, given, line, tmp_path):
    wire = vfljax.Recorder()
    for call in calls:
        call(wire)
    refused(wire.save, tmp_path / "wire.npz", match=line, **given)
    assert not [*tmp_path.iterdir()]
