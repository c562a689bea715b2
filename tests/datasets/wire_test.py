"""Wires: three forms of file that read alike, and one line for whatever is none."""

import pathlib
import zipfile

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.datasets.refusals import one_line, refused
from vfljax.datasets import load
from vfljax.datasets.splits import split_rows
from vfljax.datasets.wire import equal_in_all_runs, read_wire

E, N, D = 2, 24, 3


def arrays(**changes):
    """A wire of two epochs and one party; a change to None leaves an array out."""
    random = np.random.default_rng(0)
    whole = {
        "party0_embeddings": random.normal(size=(E, N, D)).astype(np.float32),
        "party0_gradients": random.normal(size=(E, N, D)).astype(np.float32),
        "party0_columns": random.normal(size=(N, 4)),
        "order": np.stack([random.permutation(N) for _ in range(E)]),
        "batch_size": np.array(8),
        "epochs": np.array([0, 5]),
        "labels": np.arange(N) % 2,
        "known_rows": np.array([3, 4, 9]),
    }
    return {name: array for name, array in {**whole, **changes}.items() if array is not None}


def written(folder, form, values):
    if form == "npz":
        np.savez(folder / "wire.npz", **values)
        return str(folder / "wire.npz")
    if form == "folder":
        for name, array in values.items():
            np.save(folder / f"{name}.npy", array)
        return str(folder)
    by_row = {"labels": values["labels"], "party0_columns": list(values["party0_columns"])}
    known = [values["labels"][i] if i in values["known_rows"] else None for i in range(N)]
    for name in ("party0_embeddings", "party0_gradients", "order"):
        by_row[name] = np.moveaxis(values[name], 1, 0).tolist()
    about = {
        "epochs": ",".join(map(str, values["epochs"])),
        "batch_size": str(values["batch_size"]),
        **({"task": str(values["task"])} if "task" in values else {}),
    }
    table = pa.table({**by_row, "known_label": known}).replace_schema_metadata(about)
    pq.write_table(table, folder / "wire.parquet")
    return str(folder / "wire.parquet")


@pytest.mark.parametrize("form", ["npz", "folder", "parquet"])
def test_every_form_reads_alike(form, tmp_path):
    values = arrays()
    wire = read_wire(written(tmp_path, form, values))
    (party,) = wire.parties
    np.testing.assert_array_equal(party.embeddings, values["party0_embeddings"])
    np.testing.assert_array_equal(party.gradients, values["party0_gradients"])
    np.testing.assert_array_equal(party.columns, values["party0_columns"])
    np.testing.assert_array_equal(wire.order, values["order"])
    np.testing.assert_array_equal(wire.known_labels, values["labels"][values["known_rows"]])
    assert (wire.batch_size, wire.epochs.tolist(), wire.missing) == (8, [0, 5], ("bottoms",))
    assert wire.sent.all()


def test_a_batch_number_tells_as_much_as_an_order(tmp_path):
    random = np.random.default_rng(1)
    batch = np.stack([random.permutation(np.arange(N) // 7) for _ in range(E)])  # 7, 7, 7 and 3
    wire = read_wire(written(tmp_path, "npz", arrays(order=None, batch_size=None, batch=batch)))
    assert wire.batch_size == 7
    for epoch in range(E):
        mates = wire.order[epoch] // 7
        assert sorted(wire.order[epoch]) == list(range(N))
        assert all(len({*batch[epoch][mates == b]}) == 1 for b in range(4))
        assert (mates == 3).sum() == 3


def test_batches_of_different_sizes_have_no_order(tmp_path):
    batch = np.array([[0] * 7 + [1] * 6 + [2] * 8 + [3] * 3] * E)  # as Poisson sampling draws them
    changes = {"order": None, "batch_size": None, "batch": batch}
    wire = read_wire(written(tmp_path, "npz", arrays(**changes)))
    assert (wire.order, wire.batch_size, wire.missing) == (None, 6, ("order", "bottoms"))
    larger = np.array([[0] * 5 + [1] * 10 + [2] * 9] * E)  # runs may differ in their mean size
    other = read_wire(written(tmp_path, "npz", arrays(**changes | {"batch": larger})))
    assert (other.batch_size, equal_in_all_runs(other)) == (8, equal_in_all_runs(wire))
    sent = np.array([np.arange(N) < 7] * E)  # rows that were not sent count in no size
    assert read_wire(written(tmp_path, "npz", arrays(**changes, sent=sent))).batch_size == 7


def test_rows_that_were_not_sent_are_in_no_batch(tmp_path):
    random = np.random.default_rng(2)
    sent = np.stack([random.permutation(np.arange(N) < 15) for _ in range(E)])
    batch = np.full((E, N), -1)
    for epoch in range(E):
        batch[epoch, sent[epoch]] = random.permutation(np.arange(15) // 6)  # 6, 6 and 3
    ways = [  # the numbers of the other rows
        batch,
        np.where(sent, batch, 7),
        np.where(sent, batch, random.integers(0, 9, batch.shape)),
    ]
    wires = []
    for numbers in ways:
        changes = {"order": None, "batch": numbers, "sent": sent, "batch_size": np.array(6)}
        wires.append(read_wire(written(tmp_path, "npz", arrays(**changes))))
        changes["batch_size"] = None
        assert read_wire(written(tmp_path, "npz", arrays(**changes))).batch_size == 6
    places = wires[0].order
    for wire in wires:
        assert (wire.batch_size, wire.equal_batches) == (6, True)
        np.testing.assert_array_equal(wire.order, places)
        for was, of, mine in zip(sent, places, batch):
            assert sorted(of[was]) == [*range(15)]
            assert all(len({*mine[was & (of // 6 == b)]}) == 1 for b in range(3))


def test_what_rows_hold_that_were_not_sent_means_nothing(tmp_path):
    sent = np.array([np.arange(N) % 3 > 0, np.arange(N) < 15, np.zeros(N, bool)])
    random = np.random.default_rng(1)
    own = random.normal(size=(3, N, D))
    batch = np.cumsum(np.ones((3, N), int), axis=0) * 1000  # counted through all epochs
    changes = {"order": None, "batch": batch, "sent": sent, "epochs": np.array([0, 5, 6])}
    wires = []
    for other in (0, np.nan, 1e20):
        gradients = np.where(sent[..., None], own, other)
        values = arrays(**changes, party0_gradients=gradients, party0_embeddings=own)
        wires.append(read_wire(written(tmp_path, "npz", values)))
    for wire in wires:
        assert wire.epochs.tolist() == [0, 5]  # nothing was sent in the last
        np.testing.assert_array_equal(wire.sent, sent[:2])
        np.testing.assert_array_equal(wire.order, wires[0].order)
        expected = np.where(sent[:2, :, None], own[:2], 0)
        np.testing.assert_array_equal(wire.parties[0].gradients, expected)


def test_an_order_has_no_places_amid_a_batch_for_rows_that_were_not_sent(tmp_path):
    sent = np.array([np.arange(N) % 12 < 6] * E)
    order = np.array([np.arange(N)] * E)  # places of whole batches of 6 that were not sent
    changes = {"sent": sent, "order": order, "batch_size": np.array(6)}
    wire = read_wire(written(tmp_path, "npz", arrays(**changes)))
    assert wire.order[0].tolist() == [*range(6), *range(12, 18), *range(6, 12), *range(18, 24)]
    amid = written(tmp_path, "npz", arrays(**changes | {"batch_size": np.array(8)}))
    one_line(lambda: read_wire(amid), "order has places for rows that were not sent amid a batch")


def test_a_batch_size_that_is_not_that_of_batches_is_what_the_loss_was_divided_by(tmp_path):
    batch = np.array([np.arange(N) // 6] * E)
    changes = {"order": None, "batch": batch, "batch_size": np.array(8)}
    wire = read_wire(written(tmp_path, "npz", arrays(**changes)))
    assert (wire.order, wire.batch_size, wire.equal_batches) == (None, 8, False)


def test_a_wire_is_read_by_its_content(tmp_path):
    for form in ("npz", "parquet"):
        path = pathlib.Path(written(tmp_path, form, arrays()))
        for name in ("w.pq", "w.bin", "wire"):
            read_wire(str(path.rename(tmp_path / name)))
            path = tmp_path / name
    path = pathlib.Path(written(tmp_path, "npz", arrays()))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/._labels.npy", b"\0\5\x16\7")
    assert read_wire(str(path)).shape == (E, N, D)
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    assert "is a file of torch.save" in refused(read_wire, str(tmp_path / "model.pt"))
    for name, content, said in (
        ("w.safetensors", b"\x10\0\0\0\0\0\0\0{}              ", "a safetensors file"),
        ("w.npy", b"\x93NUMPY\1\0", "an array of numpy.save"),
        ("w.npz", b"\x1f\x8b\x08", "compressed by gzip"),
        ("w.csv", b"a,b\n1,2\n", "of an unknown format"),
    ):
        (tmp_path / name).write_bytes(content)
        assert said in refused(read_wire, str(tmp_path / name))


def test_bfloat16_is_read_though_numpy_drops_its_name(tmp_path):
    values = arrays()["party0_gradients"].astype(ml_dtypes.bfloat16)
    path = written(tmp_path, "folder", arrays(party0_gradients=values))
    (tmp_path / "._labels.npy").write_bytes(b"\0\5\x16\7")  # macOS writes it beside others
    (party,) = read_wire(path).parties
    np.testing.assert_array_equal(party.gradients, values.astype(np.float32))


@pytest.mark.parametrize("form", ["npz", "folder", "parquet"])
def test_labels_of_regression_are_numbers_in_every_form(form, tmp_path):
    labels = np.random.default_rng(0).normal(size=N)
    path = written(tmp_path, form, arrays(labels=labels, task=np.array("regression")))
    wire, data = read_wire(path), load("wire", path, {})
    np.testing.assert_array_equal(wire.labels, labels.astype(np.float32))
    np.testing.assert_array_equal(wire.known_labels, wire.labels[[3, 4, 9]])
    assert (wire.classes, data.num_classes, data.labels.dtype) == (1, 1, np.float32)
    assert load("wire", path, {"bins": 2}).num_classes == 2


def test_known_numbers_alone_are_standardized_as_themselves(tmp_path):
    known = {"known_rows": [3, 4, 9], "known_labels": np.array([900.0, 1000.0, 1100.0])}
    values = arrays(labels=None, task=np.array("regression"), **known)
    labels = load("wire", written(tmp_path, "npz", values), {}).labels
    assert labels[[3, 4, 9]].tolist() == [900, 1000, 1100]
    assert labels.mean() == pytest.approx(1000, abs=20)


def test_one_epoch_needs_no_axis_and_a_wire_needs_little(tmp_path):
    values = {"party0_gradients": arrays()["party0_gradients"][0]}
    wire = read_wire(written(tmp_path, "npz", values))
    assert wire.missing == ("embeddings", "order", "bottoms", "columns")
    assert wire.labels is None
    dataset = load("wire", written(tmp_path, "npz", values), {})
    assert not dataset.recording.labeled


def test_runs_are_seeds_with_rows_of_their_own(tmp_path):
    paths = []
    for run in range(2):
        (tmp_path / str(run)).mkdir()
        values = arrays(labels=(np.arange(N) + run) % 2, known_rows=np.array([run, 7, 8]))
        paths.append(written(tmp_path / str(run), "npz", values))
    dataset = load("wire", paths[0], {"runs": tuple(paths[1:])})
    splits = [split_rows(dataset, seed, 0.6, 0.2, 0.2) for seed in range(2)]
    assert [s.train.tolist() for s in splits] == [[*range(N)], [*range(N, 2 * N)]]
    assert [s.known.tolist() for s in splits] == [[0, 7, 8], [1, 7, 8]]
    assert dataset.labels[splits[1].train].tolist() == ((np.arange(N) + 1) % 2).tolist()
    assert all(len({*dataset.labels[s.test]}) == 2 for s in splits)


def test_runs_that_are_recorded_otherwise_are_refused(tmp_path):
    (tmp_path / "b").mkdir()
    paths = written(tmp_path, "npz", arrays()), written(tmp_path / "b", "npz", arrays(order=None))
    one_line(lambda: load("wire", paths[0], {"runs": paths[1:]}), "in what is recorded")


def trees(**changes):
    """A wire of four trees of two levels that a user of another system wrote by hand from its node numbers."""
    random = np.random.default_rng(0)
    nodes = random.choice([7, 9, 200], size=(4, 2, N))
    nodes[2, 1, :5] = -1
    g = random.normal(size=(4, N, 2))
    return {"party0_nodes": nodes, "party0_gradients": g, "labels": np.arange(N) % 2, **changes}


def test_nodes_of_trees_become_paths_and_gradients_those_of_rounds(tmp_path):
    values = trees()
    wire = read_wire(written(tmp_path, "folder", values))
    (party,) = wire.parties
    assert (wire.trees, wire.missing) == ((4, 2), ("order", "bottoms", "columns"))
    assert party.nodes.min() == -1
    assert party.nodes.max() == 2
    paths, told = party.embeddings[0], (values["party0_nodes"] >= 0).sum(axis=(0, 1))
    np.testing.assert_array_equal(paths.sum(axis=1), told)  # a row is in one node of each level
    same = (values["party0_nodes"] == values["party0_nodes"][..., 9:10]).sum(axis=(0, 1))
    np.testing.assert_array_equal(paths @ paths[9], same)
    np.testing.assert_array_equal(
        party.gradients[..., 1], np.float32(values["party0_gradients"][..., 0])
    )


def test_gradients_of_trees_and_numbers_are_those_of_one_batch_of_all_rows(tmp_path):
    """So that ``direct`` reads f - y of them as of a squared loss."""
    labels = np.random.default_rng(2).normal(size=N)
    values = trees(labels=labels, task=np.array("regression"))
    wire = read_wire(written(tmp_path, "folder", values))
    assert (wire.classes, wire.batch_size, wire.missing) == (1, N, ("bottoms", "columns"))
    np.testing.assert_array_equal(wire.order, np.arange(N)[None])
    g = wire.parties[0].gradients
    np.testing.assert_allclose(g[..., 0] * N / 2, values["party0_gradients"][..., 0], rtol=1e-5)


def test_with_more_classes_a_round_is_a_tree_a_class(tmp_path):
    labels, nodes = np.arange(N) % 4, trees()["party0_nodes"]
    g = np.random.default_rng(1).normal(size=(4, N, 1))
    values = {"party0_nodes": nodes, "party0_gradients": g, "labels": labels}
    (party,) = read_wire(written(tmp_path, "npz", values)).parties
    np.testing.assert_array_equal(party.gradients[0], np.float32(g[..., 0].T))
    refused(
        read_wire,
        written(tmp_path, "npz", values | {"labels": labels % 3}),
        match="4 trees for 3 cl",
    )


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"party0_embeddings": np.ones((1, N, 2))}, "party0_embeddings is beside nodes of trees"),
        ({"epochs": np.arange(4)}, "epochs is beside nodes of trees"),
        ({"party0_nodes": np.full((4, 2, N), 0.5)}, "party0_nodes holds 0.5"),
        ({"party0_nodes": np.zeros((4, N), int)}, r"it must be \[T, L, N\]"),
        ({"party0_gradients": np.ones((3, N, 2))}, r"it must be \[T=4, N=24, O\]"),
        ({"party0_gradients": np.full((4, N, 2), np.nan)}, "holds NaN"),
        ({"party1_nodes": np.zeros((4, 2, N), int)}, "has gradients of 1 of 2 parties"),
    ],
)  # fmt: skip
def test_what_is_no_wire_of_trees_gives_one_line(changes, line, tmp_path):
    refused(read_wire, written(tmp_path, "npz", trees(**changes)), match=line)


FIVES = np.array([np.arange(N) % 5 % 4] * E)
RECEIVED = arrays()["party0_gradients"]
NOT_A_NUMBER = RECEIVED.copy()
NOT_A_NUMBER[1, 4, 2] = np.nan
TWICE = arrays()["order"].copy()
TWICE[0, :2] = 5


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"party0_gradients": NOT_A_NUMBER}, "party0_gradients holds NaN or infinity in epoch 1, row 4"),
        ({"party0_gradients": np.ones((E, N - 1, D))}, r"\[2, 23, 3\]: it must be \[E=2, N=24, D=3\]"),
        ({"party0_gradients": np.array(["a"])}, "holds <U1: give numbers"),
        ({"party0_columns": np.full((N, 2), np.inf)}, "a large number in row 0"),
        ({"party1_embeddings": np.ones((E, N, D))}, "of 1 of 2 parties: of every party, or of none"),
        ({"party2_columns": np.ones((N, 1))}, r"has parties \[0, 2\]"),
        ({"party0_embeddings": None, "party0_gradients": None}, "neither embeddings nor gradients"),
        ({"gradients": np.ones((E, N, D))}, "has an unknown array 'gradients'"),
        ({"order": TWICE}, "order has a place twice"),
        ({"batch_size": None}, "has order and no batch_size"),
        ({"batch_size": np.array(0)}, "batch_size holds 0"),
        ({"sent": np.zeros((E, N), bool)}, "sent has no row that was sent"),
        ({"epochs": np.array([5, 0])}, "epochs do not rise"),
        ({"epochs": np.array([0, 1, 2])}, "epochs is of shape"),
        ({"labels": np.zeros(N, int)}, "all labels are 0"),
        ({"labels": np.arange(N) % 2 + 0.5}, "labels holds 0.5.*record task='regression', or give bins=2"),
        ({"task": np.array("amounts")}, "task is amounts: give classification or regression"),
        ({"task": np.array("regression"), "labels": np.ones(N)}, "all labels are 1"),
        ({"task": np.array("regression"), "labels": 1.7e9 + np.arange(N)}, "by too little for float32"),
        ({"task": np.array("regression"), "known_labels": np.arange(3) / 2}, "differ from labels"),
        ({"known_rows": np.array([1, 1])}, "names a row twice"),
        ({"known_labels": np.array([0, 0, 0])}, "differ from labels"),
        ({"known_rows": None, "known_labels": np.array([1])}, "known_labels and no known_rows"),
        ({"labels": None}, "known_rows and no labels"),
        ({"party0_gradients": 1e-18 * RECEIVED}, "rescale all by one factor, to between 1e-12 and 1e"),
        ({"party0_gradients": 1e300 * RECEIVED.astype(float)}, "NaN or infinity in epoch 0, row 0"),
        ({"batch": FIVES}, "has both order and batch"),
        ({"known_rows": np.arange(N)}, "names all rows"),
        ({"labels": None, "known_labels": np.array([0, 1, 3])}, "known_labels lack a class"),
        ({"version": np.array(3)}, "reads the versions 1 and 2"),
        ({"rows": np.zeros(N, int)}, "rows has an id twice"),
    ],
)  # fmt: skip
def test_what_is_no_wire_gives_one_line(changes, line, tmp_path):
    assert "wire" in refused(read_wire, written(tmp_path, "npz", arrays(**changes)), match=line)


@pytest.mark.parametrize("name", ["wire.npz", "wire.parquet"])
def test_a_damaged_file_gives_one_line(name, tmp_path):
    one_line(lambda: read_wire(str(tmp_path / name)), f"{name} is missing")
    (tmp_path / name).write_bytes(b"PK\x03\x04 and nothing")
    one_line(lambda: read_wire(str(tmp_path / name)), "cannot be read")


def test_a_pickle_is_never_opened(tmp_path):
    np.savez(tmp_path / "wire.npz", **arrays(), party1_columns=np.array([{}], object))
    one_line(lambda: read_wire(str(tmp_path / "wire.npz")), "never opened")


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ({"party0_gradients": [[[1.0]] * 2] * 11 + [[[1.0]], [[1.0]] * 3]}, "lists of different lengths"),
        ({"labels": [0, 1] * 6 + [None]}, "column 'labels' holds nulls"),
    ],
)  # fmt: skip
def test_rows_of_a_parquet_file_that_are_not_alike_are_refused(columns, line, tmp_path):
    pq.write_table(pa.table(columns), tmp_path / "wire.parquet")
    refused(read_wire, str(tmp_path / "wire.parquet"), match=line)
    values = RECEIVED[0]  # one epoch needs no list
    pq.write_table(pa.table({"party0_gradients": values.tolist()}), tmp_path / "wire.parquet")
    (party,) = read_wire(str(tmp_path / "wire.parquet")).parties
    np.testing.assert_array_equal(party.gradients[0], values)


def test_rows_of_several_runs_may_be_numbered_by_person(tmp_path):
    runs = []
    for place, rows in (("one", np.arange(N)), ("two", np.arange(N)[::-1] + 5)):
        (tmp_path / place).mkdir()
        runs.append(written(tmp_path / place, "npz", arrays(rows=rows)))
    data = load("wire", runs[0], {"runs": (runs[1],)})
    assert data.recording.rows.tolist() == [*range(N), *range(N + 4, 4, -1)]
    written(tmp_path / "two", "npz", arrays())
    refused(load, "wire", runs[0], {"runs": (runs[1],)}, match="whether its rows have numbers")


def test_labels_that_are_numbers_are_cut_at_quantiles_of_all_runs(tmp_path):
    runs, low = [], np.arange(N) / 10
    for place, labels in (("one", low), ("two", low + 0.5)):
        (tmp_path / place).mkdir()
        whole = arrays(labels=labels, known_labels=labels[[3, 4, 21]], known_rows=[3, 4, 21])
        runs.append(written(tmp_path / place, "npz", whole))
    data = load("wire", runs[0], {"runs": (runs[1],), "bins": 2})
    both = np.concatenate([low, low + 0.5])
    np.testing.assert_array_equal(data.labels, both > np.median(both))
    assert len(data.classes) == 2
    refused(load, "wire", runs[0], {"bins": 1}, match="bins=1 makes one class")
    same = written(tmp_path, "npz", arrays(labels=np.ones(N), known_rows=None))
    refused(load, "wire", same, {"bins": 2}, match="bins=2 makes classes without rows: 24 of 24")
