"""A recorder writes the exchange that it was shown, whatever the order, ids and types of its messages."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vfljax
from tests.datasets.refusals import refused
from vfljax.datasets.wire import equal_in_all_runs, read_wire
from vfljax.recorder.remarks import Kind, scale_jumps

N, D = 24, 3
LABELS = np.arange(N) % 2
TYPES = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, ">f4", ">i2")


def quiet(line):
    """Nothing is printed."""


def exchange(random, epochs, dtype=np.float32, parties=1):
    """Embeddings and gradients [parties, E, N, D] of small whole numbers, which every type holds."""
    z, g = random.integers(-100, 100, size=(2, parties, epochs, N, D))
    return z.astype(dtype), np.where(g == 0, 1, g).astype(dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("wires")


def saved(recorder, folder, **given):
    place = folder / "wire"  # which no ending is added to
    remarks = recorder.save(place, say=quiet, **given)
    return read_wire(str(place)), {remark.kind for remark in remarks}


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    epochs=st.integers(1, 4),
    dtype=st.sampled_from(TYPES),
    ids=st.sampled_from(["places", "numbers", "texts"]),
    late=st.booleans(),
    by_rows=st.booleans(),
    marked=st.booleans(),
    dropped=st.booleans(),
)
def test_a_grid_is_read_as_it_was_sent(
    seed, epochs, dtype, ids, late, by_rows, marked, dropped, folder
):
    """In batches in any order, with any ids, answered later and out of order, rows of an answer shuffled."""
    random = np.random.default_rng(seed)
    z, g = exchange(random, epochs, dtype, parties=2)
    sent = np.ones((epochs, N), bool)
    if marked and dropped:  # rows that an epoch leaves out, and an epoch that is not recorded
        sent = random.random((epochs, N)) < 0.8
        sent[:, 0] = True
    of = {
        "places": np.arange(N),
        "numbers": random.permutation(10**9 + np.arange(N)),
        "texts": np.array([f"id {i}" for i in random.permutation(N)]),
    }[ids]
    wire, order, numbers = vfljax.Recorder(), np.zeros((epochs, N), int), []
    for epoch in range(epochs):
        rows = random.permutation(np.flatnonzero(sent[epoch]))
        order[epoch, rows] = np.arange(len(rows))
        waiting = []
        for batch in np.split(rows, range(7, len(rows), 7)):
            for party in (0, 1):
                message = wire.sent(party, of[batch].tolist(), z[party, epoch, batch])
                shuffled = random.permutation(batch) if by_rows else batch
                waiting.append((party, of[shuffled] if by_rows else message, shuffled))
            if not late:
                for party, which, here in waiting:
                    wire.received(party, which, 4.0 * g[party, epoch, here].astype(float), scale=4)
                waiting = []
        for k in random.permutation(len(waiting)):
            party, which, here = waiting[k]
            wire.received(party, which, g[party, epoch, here])
        numbers.append(wire._epoch)
        if marked:
            wire.epoch()
            if dropped:
                wire.epoch()
    kept = {"labels": LABELS} | ({} if ids == "places" else {"row_ids": of})
    found, _ = saved(wire, folder, **kept)
    assert not found.packed
    np.testing.assert_array_equal(found.sent, sent)
    np.testing.assert_array_equal(found.epochs, numbers if marked else np.arange(epochs))
    for party in (0, 1):
        for values, read_as in ((z, "embeddings"), (g, "gradients")):
            expected = np.where(sent[..., None], values[party].astype(np.float32), 0)
            np.testing.assert_array_equal(getattr(found.parties[party], read_as), expected)
    if sent.all():  # else batches may have several sizes
        assert found.batch_size == 7
        same = found.order // 7 == order // 7
        assert same.all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(8, 30))
def test_rows_drawn_with_replacement_keep_their_messages_in_order(seed, steps, folder):
    random, wire, by_row = np.random.default_rng(seed), vfljax.Recorder(), [[] for _ in range(N)]
    previous = None
    for _ in range(steps):
        rows = random.integers(N, size=9)  # a row may be in a message twice
        z, g = exchange(random, 1)
        z, g = z[0, 0, :9], g[0, 0, :9]
        for row, sent, received in zip(rows, z, g, strict=True):
            by_row[row].append((sent, received))
        message = wire.sent("bank", rows, z)
        if previous:
            wire.received("bank", *previous)
        previous = message, g
    wire.received("bank", *previous)
    found, _ = saved(wire, folder, labels=LABELS)
    (party,) = found.parties
    assert found.packed == (max(map(len, by_row)) > 1)
    assert found.order is None or not found.packed
    assert found.names == ("bank",)
    assert found.sent.sum() == 9 * steps
    for row, messages in enumerate(by_row):
        here = found.sent[:, row]
        assert here.sum() == len(messages)
        assert not messages or here[-1] or not found.packed
        if messages:
            z, g = (np.stack(part) for part in zip(*messages))
            np.testing.assert_array_equal(party.embeddings[here, row], z)
            np.testing.assert_array_equal(party.gradients[here, row], g)


def test_a_party_that_leaves_and_a_narrow_one_are_recorded(folder):
    random, wire = np.random.default_rng(0), vfljax.Recorder(["b", "a"])
    z, _ = exchange(random, 3)
    for epoch in range(3):
        message = wire.sent("b", np.arange(N), z[0, epoch])
        wire.received("b", message, z[0, epoch] + 200)
        if epoch < 2:
            wire.received("a", wire.sent("a", np.arange(N), z[0, epoch, :, 0]), z[0, epoch, :, 1])
        wire.epoch()
    columns = {"b": np.ones((N, 2)), "a": random.normal(size=(N, 5))}
    found, _ = saved(wire, folder, labels=LABELS, columns=columns)
    assert found.names == ("b", "a")
    assert [of.columns.shape for of in found.parties] == [(N, 2), (N, 5)]
    assert found.parties[0].sent.all()
    np.testing.assert_array_equal(found.parties[1].sent, [[True] * N] * 2 + [[False] * N])
    np.testing.assert_array_equal(found.parties[1].embeddings[1, :, 0], z[0, 1, :, 0])
    assert not found.parties[1].embeddings[:, :, 1:].any()


def test_epochs_without_an_answer_are_left_out_of_what_each_party_sent(folder):
    wire = vfljax.Recorder()
    z, g = exchange(np.random.default_rng(0), 3, parties=2)
    for epoch in range(3):
        for party, rows in ((0, np.arange(N)), (1, np.arange(N - 4))):
            answer = g[party, epoch, rows] * (epoch > 0)
            wire.received(party, wire.sent(party, rows, z[party, epoch, rows]), answer)
        wire.epoch()
    found, _ = saved(wire, folder, labels=LABELS)
    assert found.silent == 1
    assert found.shape == (2, N, D)
    for party, rows in zip(found.parties, (N, N - 4), strict=True):
        assert [*party.sent.sum(axis=1)] == [rows, rows]


def test_runs_that_drew_with_replacement_are_runs_of_one_federation(folder):
    found = []
    for seed in range(2):
        random, wire = np.random.default_rng(seed), vfljax.Recorder()
        for _ in range(12):
            z, _ = exchange(random, 1)
            wire.sent(0, random.integers(N, size=9), z[0, 0, :9])
        found.append(saved(wire, folder, labels=LABELS)[0])
    assert len(found[0].epochs) != len(found[1].epochs)
    assert equal_in_all_runs(found[0]) == equal_in_all_runs(found[1])


def a_run(messages=20, scale=lambda k: 1.0, answered=lambda k: True):
    """A recorder of messages of all rows, whose gradients shrink a little."""
    random, wire = np.random.default_rng(0), vfljax.Recorder()
    for k in range(messages):
        message = wire.sent(0, np.arange(N), random.normal(size=(N, D)))
        if answered(k):
            g = random.normal(size=(N, D))
            wire.received(0, message, scale(k) * 0.99**k * g / np.linalg.norm(g, axis=1)[:, None])
    return wire


ONES = np.ones((N, D))
COLUMNS = np.random.default_rng(0).normal(size=(N, 4)) + LABELS[:, None]  # no column tells all


@pytest.mark.parametrize(
    ("run", "given", "kind"),
    [
        ({"answered": lambda k: False}, {}, Kind.NO_GRADIENTS),
        ({}, {"columns": ()}, Kind.NO_COLUMNS),
        ({"scale": lambda k: 2.0 ** (k // 8)}, {}, Kind.LOSS_SCALE),
        ({"answered": lambda k: k < 19}, {}, Kind.UNANSWERED),
        ({"answered": lambda k: k < 19}, {"drop_unanswered": True}, Kind.DROPPED),
        ({"scale": lambda k: np.inf if k == 3 else 1}, {}, Kind.NOT_FINITE),
        ({"scale": lambda k: 0.9**k}, {"columns": [COLUMNS[np.argsort(LABELS)]]}, Kind.MISALIGNED),
        ({}, {"columns": [np.stack([COLUMNS[:, 0], 3.0 - LABELS], 1)]}, Kind.LABEL_COLUMN),
    ],
)
def test_what_makes_figures_wrong_is_said(run, given, kind, folder):
    _, clean = saved(a_run(), folder, labels=LABELS, columns=[COLUMNS])
    assert not clean
    found, kinds = saved(a_run(**run), folder, **{"labels": LABELS, "columns": [COLUMNS], **given})
    assert kinds == {kind}
    epochs = 19 if kind in (Kind.UNANSWERED, Kind.DROPPED, Kind.NOT_FINITE) else 20
    assert len(found.epochs) == epochs


@pytest.mark.parametrize("texts", [False, True])
def test_what_was_given_may_be_written_over(texts, folder):
    """A loop that fills the same buffers in every step loses nothing."""
    (z,), (g,) = exchange(np.random.default_rng(0), 3)
    names = np.array([f"id {i}" for i in range(N)]) if texts else 100 + np.arange(N)
    wire, rows, buffer = vfljax.Recorder(), np.empty_like(names), np.empty((N, D), np.float32)
    for epoch in range(3):
        rows[:], buffer[:] = np.roll(names, epoch), np.roll(z[epoch], epoch, axis=0)
        message = wire.sent(0, rows, buffer)
        buffer[:] = np.roll(g[epoch], epoch, axis=0)
        wire.received(0, message, buffer)
        rows[:], buffer[:] = names[0], 0
    found, _ = saved(wire, folder, labels=LABELS, row_ids=names)
    np.testing.assert_array_equal(found.parties[0].embeddings, z)
    np.testing.assert_array_equal(found.parties[0].gradients, g)


class Foreign:
    """An array of a library that NumPy reads by DLPack alone, or not at all if it is on a GPU."""

    def __init__(self, values, on_gpu=False):
        self.values, self.on_gpu = values, on_gpu

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()

    def __dlpack__(self, **options):
        if self.on_gpu:
            raise BufferError("it is on a GPU")
        return self.values.__dlpack__(**options)


def test_an_array_of_another_library_is_recorded_or_refused(folder):
    wire = vfljax.Recorder()
    wire.received(0, wire.sent(0, range(N), Foreign(2 * ONES)), ONES)
    refused(
        wire.sent, 0, range(N), Foreign(ONES, on_gpu=True), match="a Foreign that NumPy cannot read"
    )
    found, _ = saved(wire, folder, labels=LABELS)
    np.testing.assert_array_equal(found.parties[0].embeddings, [2 * ONES])


def test_convolutional_cuts_are_flattened_and_said(folder):
    wire = vfljax.Recorder()
    z = np.arange(N * 12).reshape(N, 3, 2, 2)
    wire.received(0, wire.sent(0, np.arange(N), z), 1.0 + z)
    found, kinds = saved(wire, folder, labels=LABELS, columns=[COLUMNS])
    assert kinds == {Kind.FLATTENED}
    np.testing.assert_array_equal(found.parties[0].gradients[0], 1 + z.reshape(N, 12))


def test_labels_that_are_numbers_are_written_with_their_task(folder):
    """They are read as numbers, or cut into classes, and columns are compared with their order."""
    amounts = np.exp(np.random.default_rng(1).normal(size=N)) - 1.0
    given = {"labels": amounts, "task": "regression", "known_rows": [3, 5]}
    columns = COLUMNS - LABELS[:, None] + (amounts > np.median(amounts))[:, None]
    found, kinds = saved(a_run(), folder, columns=[columns], **given)
    assert (found.classes, kinds) == (1, set())
    np.testing.assert_array_equal(found.labels, amounts.astype(np.float32))
    np.testing.assert_array_equal(found.known_labels, found.labels[[3, 5]])
    cut = np.array([np.median(amounts)])
    halves = read_wire(str(folder / "wire"), cut)
    np.testing.assert_array_equal(halves.labels, amounts > cut)
    alone = {"known_rows": [3, 5], "known_labels": amounts[[3, 5]], "task": "regression"}
    found, _ = saved(a_run(), folder, **alone)
    np.testing.assert_array_equal(found.known_labels, amounts[[3, 5]].astype(np.float32))


def test_only_jumps_by_powers_of_two_are_a_loss_scale():
    lengths = np.exp(np.random.default_rng(0).normal(0, 0.05, size=40))
    assert not scale_jumps(lengths * 0.97 ** np.arange(40))
    assert not scale_jumps(np.where(np.arange(40) < 20, lengths, 1.5 * lengths))
    assert not scale_jumps(0.85 ** np.arange(40))
    assert not scale_jumps(2.0 ** -np.repeat(np.arange(10) / 2, 4))
    assert scale_jumps(np.where(np.arange(40) < 20, lengths, lengths / 4)) == [(20, -2)]


def test_parties_whose_names_have_no_order_are_numbered_as_they_first_send(folder):
    wire = vfljax.Recorder()
    for party in ("b", (1, 2), None):
        wire.received(party, wire.sent(party, range(N), ONES), ONES)
    found, _ = saved(wire, folder, labels=LABELS)
    assert found.names == ("b", "(1, 2)", "None")


class Tensor(np.ndarray):
    """As PyTorch's where a recorder reads it, of a type that NumPy knows."""

    requires_grad = True

    def detach(self):
        return self

    float = cpu = detach

    def register_hook(self, hook):
        if not self.requires_grad:
            raise RuntimeError("a tensor without a gradient has no hook")
        self.hook = hook


class Module:
    """Its hook is called as PyTorch calls that of a module's forward pass."""

    def register_forward_hook(self, hook):
        self.hook = hook

    def __call__(self, output):
        self.hook(self, (), output)
        return output


def test_a_module_is_recorded_within_a_batch_and_its_gradients_come_at_any_time(folder):
    wire, module = vfljax.Recorder(), Module()
    wire.torch(module, "bank")
    module(ONES.view(Tensor))  # an evaluation, of no batch
    outputs = []
    for rows in np.split(np.arange(N).astype(np.int64).view(Tensor), 2):
        with wire.batch(rows, scale=4.0):
            outputs.append(module(np.outer(1 + rows, np.ones(D)).view(Tensor)))
    for output in outputs[::-1]:
        output.hook(4 * output)  # as a loss that was scaled sends it back
    without = ONES.view(Tensor)
    without.requires_grad = False
    with wire.batch(range(N)):
        module(without)
        refused(wire.batch(range(N)).__enter__, match="begun within another one")
        refused(module, "no tensor", match="module of party 'bank' returns a str")
    found, _ = saved(wire, folder, labels=LABELS, drop_unanswered=True)
    expected = np.outer(1 + np.arange(N), np.ones(D))
    np.testing.assert_array_equal(found.parties[0].embeddings[0], expected)
    np.testing.assert_array_equal(found.parties[0].gradients[0], expected)


def test_nothing_but_numpy_is_imported():
    code = (
        "import sys, vfljax; vfljax.Recorder(); print({'jax', 'pandas', 'scipy'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
