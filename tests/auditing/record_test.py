"""The recorder of ``guide/record_a_wire.md``, run as it stands there on a federation in plain PyTorch."""

import sys
import types

import jax.numpy as jnp
import numpy as np
import pytest

import vfljax
from tests.conftest import ROOT, real_data
from tests.how_to_add_test import blocks
from tests.sweeps import plan_of, tiny, train
from vfljax.auditing import suite
from vfljax.datasets.wire import read
from vfljax.federation.training import epoch_of
from vfljax.sweep.initial import initial_weights

torch = pytest.importorskip("torch")
PAGE = ROOT / "analysis" / "guide" / "record_a_wire.md"
# of the suite, with fewer steps: what is compared is the same
ATTACKS = {
    **{name: suite.ATTACKS[name] for name in ("norm", "mean", "spectral")},
    "probe": {"epoch": (-1, "mean"), "steps": 200},
    "joint": {"steps": 50},
}
SEEDS = 2
# places of the page's blocks
RECORDER, LOOP, FLOWER, SECRETFLOW, FATE = range(5)


def ran(*numbers, **names):
    """The names that are there once these blocks of the page have been run."""
    for number in numbers:
        exec(blocks(PAGE.read_text(), "python")[number], names)
    return names


@pytest.fixture(scope="module")
def config():
    return tiny(
        data={
            **{"name": "spambase", "dir": str(real_data("spambase")), "scaling": "standard"},
            **{"train": 400, "validation": 100, "test": 100},
        },
        seeds=SEEDS,
        grid={"undefended": {}},
        attacks=suite.suited(ATTACKS, ("split",), 40, 2),
        federations=("split",),
        known_draws=5,
        **{"model.top": "mlp", "model.top_hidden": (6,), "training.record": (0, 1, 2)},
    )


def network(variables, seed, activation):
    """A PyTorch MLP of one seed's weights."""
    layers = []
    for _, layer in sorted(variables["params"].items()):
        kernel, bias = (torch.tensor(np.asarray(layer[n][seed])) for n in ("kernel", "bias"))
        linear = torch.nn.Linear(*kernel.shape)
        linear.load_state_dict({"weight": kernel.T, "bias": bias})
        layers += [linear, activation()]
    return torch.nn.Sequential(*layers[:-1])


def scaled(columns, rows):
    x = columns[rows].astype(np.float64)
    spread = x.std(axis=0)
    return torch.tensor((x - x.mean(axis=0)) / np.where(spread > 0, spread, 1)).float()


def recording(config, seed):
    """Train and record a seed's federation by the page's code, to run0.npz in the working directory."""
    plan = plan_of(config)
    training, rows = plan.experiment.training, plan.splits[seed].train
    weights = initial_weights(plan.groups[0].spec, plan.experiment, plan.seeds, plan.table)
    parts = [network(v, seed, torch.nn.ReLU) for v in (*weights.bottoms, weights.active)]

    def order(epoch):
        orders = epoch_of(jnp.int32(epoch), jnp.asarray(plan.seeds), len(rows)).order
        return torch.tensor(np.asarray(orders[seed]))

    x, own = (scaled(owner.features, rows) for owner in plan.party_columns)
    optimizer = torch.optim.SGD(
        [p for part in parts for p in part.parameters()],
        lr=training.learning_rate[0],
        momentum=training.momentum[0],
        weight_decay=training.weight_decay[0],
    )
    names = {
        **dict(zip(("bottom", "own_bottom", "top"), parts)),
        **{
            "torch": torch,
            "x": x,
            "own": own,
            "labels": torch.tensor(plan.dataset.labels[rows]).long(),
        },
        **{"order": order, "optimizer": optimizer},
        **{"epochs": training.epochs, "batch_size": training.batch_size},
    }
    ran(RECORDER, LOOP, **names)


@pytest.fixture(scope="module")
def wires(config, tmp_path_factory):
    """The paths of recordings, one a seed."""
    folder = tmp_path_factory.mktemp("wires")
    with pytest.MonkeyPatch.context() as patch:
        for seed in range(SEEDS):
            (folder / str(seed)).mkdir()
            patch.chdir(folder / str(seed))
            recording(config, seed)
    return [folder / str(seed) / "run0.npz" for seed in range(SEEDS)]


@pytest.fixture(scope="module")
def sweep(config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    train(folder, config)
    return vfljax.load(folder)


def test_a_recording_in_pytorch_holds_what_vfljax_exchanges(config, sweep, wires):
    for seed, path in enumerate(wires):
        wire, exchange = np.load(path), sweep.trial(seed).exchange()
        for name in ("embeddings", "gradients"):
            theirs = exchange[f"party0_{name}"]
            np.testing.assert_allclose(
                wire[f"party0_{name}"], theirs, atol=1e-4 * np.abs(theirs).max()
            )
        places = exchange["order"] // config["training"]["batch_size"]
        np.testing.assert_array_equal(wire["batch"], places)
        assert wire["sent"].all()


def test_it_leaks_what_the_same_federation_leaks_in_vfljax(sweep, wires, tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "ATTACKS", ATTACKS)
    attacked = vfljax.attack_wire(wires, tmp_path, say=lambda line: None)
    ours, theirs = (s.leaks().set_index(["variant", "seed"])["leak"] for s in (attacked, sweep))
    assert {*ours.index} == {*theirs.index}
    assert {variant.split("/")[0] for variant, _ in ours.index} == {*ATTACKS}
    np.testing.assert_allclose(ours[theirs.index], theirs, rtol=0, atol=0.01)


def stand_in(monkeypatch, path, **names):
    """Put a module in the place of one that is not installed, with the packages that it is in."""
    parts = path.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        module = sys.modules.get(name) or types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
    for name, value in names.items():
        monkeypatch.setattr(sys.modules[path], name, value, raising=False)


def test_the_flower_strategy_records_every_round(tmp_path, monkeypatch):
    flwr = pytest.importorskip("flwr")
    common, labels, rng = flwr.common, np.arange(30) % 2, np.random.default_rng(0)

    class Strategy(flwr.server.strategy.FedAvg):
        def __init__(self, labels):
            super().__init__()

        def aggregate_fit(self, rnd, results, failures):
            sent = [common.parameters_to_ndarrays(result.parameters)[0] for _, result in results]
            return common.ndarrays_to_parameters([rnd * z for z in sent]), {}

    stand_in(monkeypatch, "vertical_fl.strategy", Strategy=Strategy)
    strategy = ran(FLOWER)["RecordedStrategy"](labels)
    sent = rng.normal(size=(2, 3, len(labels), 4)).astype(np.float32)
    for server_round, of_clients in enumerate(sent, start=1):
        parameters = [common.ndarrays_to_parameters([z]) for z in of_clients]
        status = common.Status(common.Code.OK, "")
        results = [(None, common.FitRes(status, given, 1, {})) for given in parameters]
        strategy.aggregate_fit(server_round, results, [])
    strategy.save(tmp_path / "run0.npz")
    wire = read(str(tmp_path / "run0.npz"))
    assert (wire.epochs.tolist(), wire.batch_size) == ([0, 1], len(labels))
    for p, party in enumerate(wire.parties):
        np.testing.assert_array_equal(party.embeddings, sent[:, p])
        np.testing.assert_array_equal(party.gradients, sent[:, p] * [[[1]], [[2]]])


def test_the_secretflow_callback_records_batches_and_no_validation(tmp_path, monkeypatch):
    """The hooks are called in the order of ``SLModel.fit``, of which no release installs."""

    class Callback:
        def __init__(self, **kwargs):
            self.params = kwargs

    stand_in(monkeypatch, "secretflow.ml.nn.callbacks.callback", Callback=Callback)
    stand_in(monkeypatch, "secretflow", reveal=lambda value: value)
    callback, rng = ran(SECRETFLOW)["RecordWire"]("bob", 8), np.random.default_rng(0)
    sent = rng.normal(size=(2, 20, 3)).astype(np.float32)
    for epoch, rows in enumerate(sent):
        callback.on_epoch_begin(epoch=epoch)
        for first in range(0, 20, 8):
            hidden = rows[first : first + 8]
            callback.on_agglayer_forward_begin(
                hiddens={"bob": types.SimpleNamespace(hidden=hidden)}
            )
            callback.on_agglayer_backward_end({"bob": [2 * hidden]})
        callback.on_agglayer_forward_begin([rng.normal(size=(8, 3))])
    callback.save(tmp_path / "run0.npz", labels=np.arange(20) % 2)
    wire = read(str(tmp_path / "run0.npz"))
    assert (wire.epochs.tolist(), wire.batch_size, len(wire.parties)) == ([0, 1], 8, 1)
    np.testing.assert_array_equal(wire.parties[0].embeddings, sent)
    np.testing.assert_array_equal(wire.parties[0].gradients, 2 * sent)
    np.testing.assert_array_equal(wire.order, [range(20)] * 2)


def test_the_fate_host_records_the_rows_of_its_data_set(tmp_path, monkeypatch):
    """FATE needs older libraries than vfljax: its trainer is a stand-in of the same interface."""

    class HeteroNNTrainerHost:
        def __init__(self, ctx, model, training_args, train_set, val_set=None, optimizer=None):
            self.model, self.data, self.optimizer = model, train_set, optimizer
            self.state = types.SimpleNamespace(epoch=0)

        def training_step(self, model, inputs):
            z = model(inputs[0])
            z.backward(2 * z.detach())

        def train(self):
            loader = torch.utils.data.DataLoader(self.data, 16, shuffle=True)
            for epoch in range(3):
                for step, inputs in enumerate(loader, start=1):
                    self.training_step(self.model, inputs)
                    self.state.epoch = epoch + step / len(loader)

    stand_in(monkeypatch, "fate.ml.nn.hetero.hetero_nn", HeteroNNTrainerHost=HeteroNNTrainerHost)
    x, bottom = torch.randn(50, 6), torch.nn.Linear(6, 3)
    names = ran(RECORDER, FATE)
    recorder = names["train_host"](None, bottom, bottom, None, None, x)
    recorder.save(tmp_path / "run0.npz", columns=[x], labels=np.arange(50) % 2)
    wire = read(str(tmp_path / "run0.npz"))
    assert (wire.epochs.tolist(), wire.batch_size) == ([0, 1, 2], 16)
    (party,) = wire.parties
    sent = np.stack([bottom(x).detach().numpy()] * 3)  # it was not trained
    np.testing.assert_allclose(party.embeddings, sent, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(party.gradients, 2 * sent, rtol=1e-5, atol=1e-6)


def test_rows_that_were_not_sent_are_marked(tmp_path):
    """Of an incomplete last batch that is left out, and of an evaluation between two batches."""
    x, bottom = torch.randn(50, 6), torch.nn.Linear(6, 3)
    recorder = ran(RECORDER)["Recorder"]([bottom], 50)
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
