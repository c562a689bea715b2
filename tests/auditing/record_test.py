"""The recorder of ``guide/record_a_wire.md``, run as it stands there on a federation in plain PyTorch."""

import re

import numpy as np
import pytest

import vfljax
from tests.conftest import ROOT
from tests.sweeps import plan_of, tiny, train
from vfljax.datasets.wire import read
from vfljax.federation.training import epoch_of
from vfljax.sweep.initial import initial_weights

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
PAGE = ROOT / "analysis" / "guide" / "record_a_wire.md"
RECORDER, LOOP = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[
    :2
]
CONFIG = tiny(
    data={
        **{"name": "breast_cancer", "scaling": "standard"},
        **{"train": 300, "validation": 100, "test": 100},
    },
    seeds=1,
    grid={"undefended": {}},
    attacks={},
    federations=("split",),
    **{"model.top": "mlp", "model.top_hidden": (6,), "training.record": (0, 1, 2)},
)


def network(variables):
    """A PyTorch MLP of the first seed's weights."""
    layers = []
    for _, layer in sorted(variables["params"].items()):
        kernel, bias = (torch.tensor(np.asarray(layer[name][0])) for name in ("kernel", "bias"))
        linear = torch.nn.Linear(*kernel.shape)
        linear.load_state_dict({"weight": kernel.T, "bias": bias})
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def scaled(columns, rows):
    x = columns[rows].astype(np.float64)
    spread = x.std(axis=0)
    return torch.tensor((x - x.mean(axis=0)) / np.where(spread > 0, spread, 1)).float()


def test_a_recording_in_pytorch_holds_what_vfljax_exchanges(tmp_path, monkeypatch):
    plan = plan_of(CONFIG)
    training, rows = plan.experiment.training, plan.splits[0].train
    weights = initial_weights(plan.groups[0].spec, plan.experiment, plan.seeds, plan.table)
    parts = [network(variables) for variables in (*weights.bottoms, weights.active)]

    def order(epoch):
        orders = epoch_of(epoch, plan.seeds, len(rows)).order
        return torch.tensor(np.asarray(orders[0]))

    x, own = (scaled(owner.features, rows) for owner in plan.party_columns)
    optimizer = torch.optim.SGD(
        [p for part in parts for p in part.parameters()],
        lr=training.learning_rate[0],
        momentum=training.momentum[0],
        weight_decay=training.weight_decay[0],
    )
    names = {
        **dict(zip(("bottom", "own_bottom", "top"), parts)),
        **{"torch": torch, "x": x, "own": own, "order": order, "optimizer": optimizer},
        "labels": torch.tensor(plan.dataset.labels[rows]).long(),
        **{"epochs": training.epochs, "batch_size": training.batch_size},
    }
    monkeypatch.chdir(tmp_path)
    exec(RECORDER, names)
    exec(LOOP, names)
    train(tmp_path / "sweep", CONFIG)
    wire = np.load(tmp_path / "run0.npz")
    exchange = vfljax.load(tmp_path / "sweep").trial(0).exchange()
    for name in ("party0_embeddings", "party0_gradients"):
        scale = np.abs(exchange[name]).max()
        np.testing.assert_allclose(wire[name], exchange[name], atol=1e-4 * scale)
    np.testing.assert_array_equal(wire["batch"], exchange["order"] // training.batch_size)
    assert wire["sent"].all()


def test_rows_that_were_not_sent_are_marked(tmp_path):
    """Of an incomplete last batch that is left out, and of an evaluation between two batches."""
    x, bottom, names = torch.randn(50, 6), torch.nn.Linear(6, 3), {}
    exec(RECORDER, names)
    recorder = names["Recorder"]([bottom], 50)
    for epoch in (0, 4):
        for rows in torch.arange(50).split(16)[:3]:
            with recorder.batch(epoch, rows):
                bottom(x[rows]).mean().backward()
            bottom(x).mean().backward()
    recorder.save(tmp_path / "run0.npz", labels=np.arange(50) % 2)
    wire = read(str(tmp_path / "run0.npz"))
    assert (wire.epochs.tolist(), wire.batch_size) == ([0, 4], 16)
    assert wire.sent.tolist() == [[True] * 48 + [False] * 2] * 2
    np.testing.assert_array_equal(wire.order, [range(50)] * 2)
    assert not wire.parties[0].embeddings[:, 48:].any()
    np.testing.assert_allclose(wire.parties[0].gradients[:, :48], 1 / 48)
