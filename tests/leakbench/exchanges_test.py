"""A recorded exchange is a wire: rows, known labels and order are those that attacks on the board see."""

import pathlib
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from analysis.leakbench import exchanges
from analysis.leakbench.boards import KNOWN
from analysis.leakbench.entry_files import sha256_of
from vfljax.config import from_file
from vfljax.datasets.wire import read_wire
from vfljax.datasets.wire_checks import checked_wire
from vfljax.errors import packaged
from vfljax.sweep.grid import parse
from vfljax.sweep.known import split_arrays
from vfljax.sweep.plan import make_plan

STORED = packaged("analysis/leakbench/exchange")
E, N, D, ROWS = 2, 60, 3, 90
DRAW = np.random.default_rng(0)
TRAIN = DRAW.permutation(ROWS)[:N]
LABELS = (np.arange(ROWS) % 2).astype(np.int32)


def plan() -> Any:
    features = DRAW.normal(size=(ROWS, 2, 2))
    return SimpleNamespace(
        splits=[None, SimpleNamespace(train=TRAIN)],
        dataset=SimpleNamespace(labels=LABELS),
        table=SimpleNamespace(features=(features, features[:, 0])),
        experiment=SimpleNamespace(
            training=SimpleNamespace(batch_size=8), parties=SimpleNamespace(passive=1)
        ),
    )


def exchange(**more):
    order = np.stack([DRAW.permutation(N) for _ in range(E)]).astype(np.int32)
    arrays = {
        name: DRAW.normal(size=(E, N, D)) for name in ("party0_embeddings", "party0_gradients")
    }
    sent = np.ones((E, N), bool)
    return {**arrays, "order": order, "sent": sent, "epochs": np.array([0, 4]), **more}


@pytest.mark.parametrize("mates", [False, True])
def test_a_wire_has_what_attackers_see(mates):
    made, orders = plan(), np.stack([DRAW.permutation(N), DRAW.permutation(N)])
    sent = exchange(**({"mates_order": None} if mates else {}))
    arrays = exchanges._wire(sent, made, {"known_order": orders}, 1)
    wire = checked_wire(pathlib.Path("seed1.npz"), arrays)
    assert (wire.labels == LABELS[TRAIN]).all()
    assert {*wire.known_rows.tolist()} == {*orders[1][:KNOWN].tolist()}
    columns = wire.parties[0].columns
    assert columns is not None
    assert (columns == made.table.features[0][TRAIN].reshape(N, 4)).all()
    if mates:  # batches had rows that are not recorded
        assert wire.order is None
    else:
        assert (wire.order == sent["order"]).all()
        assert wire.batch_size == 8


def test_a_chain_is_known_by_its_knobs():
    knobs = {"kdk.epsilon": 0.2, "kdk.k": 2.0}
    assert exchanges._is({"kdk": {"epsilon": (0.2,), "k": 2}}, knobs)
    assert not exchanges._is({"kdk": {"epsilon": (0.3,), "k": 2}}, knobs)


def test_the_stored_exchange_is_that_of_its_index_and_of_the_boards_rows():
    indices = sorted(STORED.rglob(exchanges.INDEX))
    assert len(indices) == 2
    plan = make_plan(parse(from_file("configs/leakbench.py:digits")))
    orders = split_arrays(plan.dataset.labels, plan.splits)["known_order"]
    for path in indices:
        index = msgspec.json.decode(path.read_bytes(), type=exchanges.Recorded)
        (wires,) = index.wires
        files = {name: path.parent / name for name in wires.sha256}
        assert {name: sha256_of(file) for name, file in files.items()} == wires.sha256
        for seed, file in enumerate(files.values()):
            wire = read_wire(str(file))
            assert wire.labels is not None
            assert (wire.labels == plan.dataset.labels[plan.splits[seed].train]).all()
            assert (wire.known_rows == np.sort(orders[seed][:KNOWN])).all()
    assert sum(file.stat().st_size for file in STORED.rglob("*") if file.is_file()) < 3 << 20
