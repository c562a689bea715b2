"""Networks beside their PyTorch twins on the same random weights: values, gradients, batch statistics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.harness import assert_close, quick_jit
from tests.models.drawing import draw, pixels
from vfljax.models import BOTTOMS, MLP, Head, WideDeep
from vfljax.models.parties import from_module
from vfljax.models.resnet import from_torch

nets = pytest.importorskip("tests.reference.torch_nets")
RNG = np.random.default_rng(0)
COLUMNS = RNG.normal(size=(16, 14)).astype(np.float32)
VOCABULARY = (0, 5, 3, 0, 4)


def mlp():
    net = nets.mlp(14, (20, 20), 2, batch_norm=True)
    return net, MLP((20, 20), 2, batch_norm=True), COLUMNS, nets.variables_of


def head():
    """BN, ReLU, Linear, repeated; columns so small that epsilon is seen."""
    nn = nets.torch.nn
    first = (nn.BatchNorm1d(14), nn.ReLU(), nn.Linear(14, 9))
    net = nn.Sequential(*first, nn.BatchNorm1d(9), nn.ReLU(), nn.Linear(9, 3))
    return net, Head((9,), 3), COLUMNS * np.float32(0.01), nets.variables_of


def cnn(module, channels, hidden, padding, image):
    def variables_of(net):
        """PyTorch's first Linear reads [C, H, W], ours [H, W, C]."""
        variables = nets.variables_of(net)
        first = variables["params"]["Dense_0"]
        kernel = first["kernel"].reshape(channels[-1], -1, len(first["bias"]))
        first["kernel"] = kernel.transpose(1, 0, 2).reshape(-1, len(first["bias"]))
        return variables

    net = nets.cnn(channels, hidden, module.out, padding, (2, *image))
    return net, module, pixels(3, *image, 2), variables_of


def cnn_gafm():
    return cnn(BOTTOMS["cnn_gafm"](out=7), (6, 16, 32), (120, 84), 0, (25, 23))


def cnn_marvell():
    module = BOTTOMS["cnn_marvell"](out=5, linear=True, hidden=(64,))
    return cnn(module, (64, 64, 64, 64), (64,), 1, (19, 17))


def wide_deep():
    def variables_of(net):
        def rows(tables):
            return np.concatenate([one.weight.detach().numpy() for one in tables])

        deep = nets.variables_of(net.deep)
        params = {
            "embedding_table": rows(net.deep_tables),
            "wide_table": rows(net.wide_tables),
            "wide": nets.variables_of([net.wide])["params"],
            "deep": deep["params"],
        }
        return {"params": params, "batch_stats": {"deep": deep["batch_stats"]}}

    columns = [RNG.integers(v, size=12) if v else RNG.normal(size=12) for v in VOCABULARY]
    module = WideDeep(6, VOCABULARY, embedding=3, hidden=(8, 7), batch_norm=True)
    net = nets.WideDeep(VOCABULARY, 3, (8, 7), 6, batch_norm=True)
    return net, module, np.stack(columns, axis=1).astype(np.float32), variables_of


def resnet(name, blocks, image, stem="cifar", **kind):
    module = BOTTOMS[name](out=5, width=8, stem=stem, blocks=blocks)
    x = pixels(6, *image, 3)
    empty = jax.eval_shape(lambda: from_module(module).init(jax.random.key(0), x))
    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), empty)

    def variables_of(net):
        state = {name: np.array(tensor.detach()) for name, tensor in net.state_dict().items()}
        variables, left_out = from_torch(module, state, empty)
        assert not left_out
        return variables

    net = nets.ResNet(blocks, 8, 5, imagenet=stem == "imagenet", **kind)
    return net, module, x, variables_of


def resnet18():
    return resnet("resnet18", (2, 1), (32, 24), "imagenet")


def resnet20():
    return resnet("resnet20", (1, 2), (16, 12), pad=True)


def resnet50():
    return resnet("resnet50", (1, 2), (16, 12), bottleneck=True)


@pytest.mark.parametrize(
    "case", [mlp, head, cnn_gafm, cnn_marvell, wide_deep, resnet18, resnet20, resnet50]
)
def test_evaluation_and_a_training_step_are_pytorch_s(case):
    net, module, x, variables_of = case()
    net, x = nets.randomize(net, 1), jnp.asarray(x)
    variables = variables_of(net)
    own = draw(from_module(module).init, x)
    assert jax.tree.map(jnp.shape, variables) == jax.tree.map(jnp.shape, dict(own))
    weights = jnp.asarray(RNG.normal(size=(len(x), module.out)), jnp.float32)

    @quick_jit
    def all_of(variables):
        def loss(params):
            now = {**variables, "params": params}
            z, moved = module.apply(now, x, train=True, mutable=["batch_stats"])
            return jnp.sum(z * weights), (z, moved)

        gradients, (trained, moved) = jax.grad(loss, has_aux=True)(variables["params"])
        return module.apply(variables, x), trained, gradients, moved.get("batch_stats", {})

    evaluated, trained, gradients, statistics = all_of(variables)
    tensor = nets.torch.from_numpy(np.array(x.transpose(0, 3, 1, 2) if x.ndim == 4 else x))
    expected = net.eval()(tensor).detach().numpy()
    near = {"rtol": 1e-3, "atol": 1e-4 * np.abs(expected).max()}
    np.testing.assert_allclose(evaluated, expected, **near)
    out = nets.in_training(net, tensor)
    np.testing.assert_allclose(trained, out.detach().numpy(), rtol=1e-3, atol=1e-3)
    assert_close(statistics, {"batch_stats": {}, **variables_of(net)}["batch_stats"], 1e-4)
    (out * nets.torch.from_numpy(np.array(weights))).sum().backward()
    expected = variables_of(nets.gradients_of(net))["params"]
    for a, b in zip(jax.tree.leaves(gradients), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * np.abs(b).max() + 1e-5)
