"""Hooks of a recorder in PyTorch, in the recipe for plain PyTorch and where other systems need them."""

import numpy as np
import pytest

import vfljax
from tests.sweeps import plan_of, tiny, train
from vfljax.datasets.wire import read_wire
from vfljax.errors import UserError
from vfljax.federation.training import epoch_of
from vfljax.sweep.initial import initial_weights

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
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


def test_a_recording_in_pytorch_holds_what_vfljax_exchanges(tmp_path):
    recipe = pytest.importorskip("analysis.recipes.plain_torch")
    plan = plan_of(CONFIG)
    training, rows = plan.experiment.training, plan.splits[0].train
    weights = initial_weights(plan.groups[0].spec, plan.experiment, plan.seeds, plan.table)
    parts = [network(variables) for variables in (*weights.bottoms, weights.active)]

    def batches(epoch):
        orders = epoch_of(epoch, plan.seeds, len(rows)).order
        return torch.tensor(np.asarray(orders[0])).split(training.batch_size)

    x, own = (scaled(owner.features, rows) for owner in plan.party_columns)
    optimizer = torch.optim.SGD(
        [p for part in parts for p in part.parameters()],
        lr=training.learning_rate,
        momentum=training.momentum,
        weight_decay=training.weight_decay,
    )
    labels, every = (
        torch.tensor(plan.dataset.labels[rows]).long(),
        map(batches, range(training.epochs)),
    )
    recipe.train(*parts, optimizer, x, own, labels, every, tmp_path / "run0.npz")
    train(tmp_path / "sweep", CONFIG)
    wire = read_wire(str(tmp_path / "run0.npz"))
    exchange = vfljax.load(tmp_path / "sweep").trial(0).exchange()
    for name in ("embeddings", "gradients"):
        expected = exchange[f"party0_{name}"]
        found, scale = getattr(wire.parties[0], name), np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=1e-4 * scale)
    assert wire.batch_size == training.batch_size
    np.testing.assert_array_equal(
        wire.order // training.batch_size, exchange["order"] // training.batch_size
    )
    assert wire.sent.all()


def test_only_batches_are_recorded_and_their_answers_may_come_late(tmp_path):
    """An incomplete last batch is left out, there is evaluation, and gradients are scaled and of bfloat16."""
    x, bottom = torch.randn(50, 6), torch.nn.Linear(6, 3)
    wire, labels = vfljax.Recorder(), np.arange(50) % 2
    cut = torch.nn.Identity()  # what is sent is rounded
    handle = wire.torch(cut, party="bank")
    for _ in range(2):
        losses = []
        for rows in torch.arange(50).split(16)[:3]:
            with wire.batch(rows, scale=8.0):
                losses.append(cut(bottom(x[rows]).bfloat16()).float().mean())
            cut(bottom(x))
        (8.0 * torch.stack(losses).sum()).backward()  # of all micro-batches at once
        wire.epoch()
    handle.remove()
    with wire.batch([0]):
        cut(bottom(x))
    wire.save(tmp_path / "run0.npz", labels=labels, say=lambda line: None)
    found = read_wire(str(tmp_path / "run0.npz"))
    assert (found.epochs.tolist(), found.batch_size, found.names) == ([0, 1], 16, ("bank",))
    assert found.sent.tolist() == [[True] * 48 + [False] * 2] * 2
    sent = bottom(x[:48]).bfloat16().float().detach().numpy()
    np.testing.assert_array_equal(found.parties[0].embeddings[1, :48], sent)
    np.testing.assert_allclose(found.parties[0].gradients[:, :48], 1 / 48, rtol=1e-2)


def test_what_returns_no_tensor_is_refused():
    wire, module = vfljax.Recorder(), torch.nn.LSTM(3, 2)
    wire.torch(module, party=0)
    with wire.batch(range(4)), pytest.raises(UserError, match="returns a tuple"):
        module(torch.ones(4, 3))
