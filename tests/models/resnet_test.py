"""Residual networks: the published sizes, PyTorch's numbers, and torchvision's weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.datasets.refusals import one_line
from tests.harness import assert_close, quick_jit
from tests.models.drawing import draw, pixels
from tests.models.weight_files import resnet_tensors
from vfljax.models import BOTTOMS
from vfljax.models.parties import from_module
from vfljax.models.resnet import ResNet, from_torch


def shapes(module, x):
    return jax.eval_shape(lambda: from_module(module).init(jax.random.key(0), x))


def zeros(module, x):
    """Variables as ``init`` gives them, without its compilation."""
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), shapes(module, x))


def count(module, x):
    return sum(int(np.prod(a.shape)) for a in jax.tree.leaves(shapes(module, x)["params"]))


def test_resnet20_has_the_published_number_of_parameters():
    x = pixels(2, 32, 16, 3)
    assert count(BOTTOMS["resnet20"](out=10), x) == 269_722
    assert count(BOTTOMS["resnet20"](out=10, shortcut="project"), x) == 272_474


@pytest.mark.parametrize(
    ("name", "parameters"), [("resnet18", 11_689_512), ("resnet50", 25_557_032)]
)
def test_with_imagenet_s_stem_and_classes_sizes_are_torchvision_s(name, parameters):
    assert count(BOTTOMS[name](out=1000, stem="imagenet"), pixels(1, 64, 64, 3)) == parameters


TINY = {"out": 3, "width": 4, "blocks": (1, 1)}


@pytest.mark.parametrize(
    ("image", "stem"), [((9, 7, 3), "cifar"), ((16, 8, 1), "imagenet"), ((8, 8), "cifar")]
)
def test_any_image_becomes_an_embedding_and_every_stage_is_sown(image, stem):
    module, x = ResNet(**TINY, stem=stem), pixels(2, *image)
    party = from_module(module)
    z, (_, layers) = quick_jit(lambda v: party.apply(v, x, False, None))(draw(party.init, x))
    assert z.shape == (2, 3)
    first, second = (layer.shape for layer in layers["hidden"])
    assert first[3] == 4
    assert second[3] == 8
    assert second[1] == -(-first[1] // 2)
    assert np.std(z) > 0


@pytest.mark.parametrize(
    ("field", "value"),
    [("block", "wide"), ("stem", "tiny"), ("shortcut", "none"), ("convolution", "fft")],
)
def test_unknown_words_are_refused(field, value):
    with pytest.raises(ValueError, match=f"{field}='{value}'"):
        ResNet(**TINY, **{field: value}).init(jax.random.key(0), pixels(2, 8, 8, 3))


def torch_case(name, stem="cifar"):
    nets = pytest.importorskip("tests.reference.torch_nets")
    bottleneck, pad = name == "resnet50", name == "resnet20"
    blocks = {"resnet18": (2, 2, 2, 2), "resnet20": (3, 3, 3), "resnet50": (3, 4, 6, 3)}[name]
    net = nets.ResNet(blocks, 8, 5, bottleneck, stem == "imagenet", pad)
    return nets, nets.randomize(net, 1), BOTTOMS[name](out=5, width=8, stem=stem)


def arrays(net):
    return {name: tensor.numpy() for name, tensor in net.state_dict().items()}


CASES = [("resnet18", "cifar"), ("resnet20", "cifar"), ("resnet50", "cifar")]
CASES += [("resnet18", "imagenet"), ("resnet50", "imagenet")]


@pytest.mark.parametrize(("name", "stem"), CASES)
def test_evaluation_and_one_training_step_are_pytorch_s(name, stem):
    nets, net, module = torch_case(name, stem)
    size = (32, 24) if stem == "imagenet" else (16, 12)
    x = pixels(6, *size, 3)
    tensor = nets.torch.from_numpy(np.array(x.transpose(0, 3, 1, 2)))
    variables = zeros(module, x)
    variables, left_out = from_torch(module, arrays(net), variables)
    assert not left_out
    expected = net.eval()(tensor).detach().numpy()
    np.testing.assert_allclose(
        quick_jit(module.apply)(variables, x),
        expected,
        rtol=1e-4,
        atol=1e-4 * np.abs(expected).max(),
    )

    expected = nets.in_training(net, tensor).detach().numpy()
    got, moved = quick_jit(lambda v: module.apply(v, x, train=True, mutable=["batch_stats"]))(
        variables
    )
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)
    statistics = from_torch(module, arrays(net), variables)[0]["batch_stats"]
    assert_close(moved["batch_stats"], statistics, 1e-4)


def test_gradients_are_pytorch_s():
    nets, net, module = torch_case("resnet18")
    x, weights = pixels(6, 16, 12, 3), pixels(6, 5, seed=2)
    tensor = nets.torch.from_numpy(np.array(x.transpose(0, 3, 1, 2)))
    start = zeros(module, x)
    variables, _ = from_torch(module, arrays(net), start)
    (net.eval()(tensor) * nets.torch.from_numpy(np.array(weights))).sum().backward()
    gradients = {**arrays(net), **{k: p.grad.numpy() for k, p in net.named_parameters()}}
    expected = from_torch(module, gradients, start)[0]["params"]

    def loss(params):
        return jnp.sum(module.apply({**variables, "params": params}, x) * weights)

    got = quick_jit(jax.grad(loss))(variables["params"])
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * np.abs(b).max())


def test_batches_far_from_0_are_normalized_by_their_variance():
    module, x = ResNet(1, blocks=(), width=1), pixels(16, 4, 4, 1) * 12**0.5  # of variance 1
    variables = quick_jit(from_module(module).init)(jax.random.key(0), x)
    kernel = jnp.zeros((3, 3, 1, 1)).at[1, 1].set(1.0)  # passes the image on
    variables["params"]["conv1"]["kernel"] = kernel
    _, moved = quick_jit(lambda v: module.apply(v, x + 1e4, True, mutable=["batch_stats"]))(
        variables
    )
    after = np.asarray(moved["batch_stats"]["bn1"]["var"])
    expected = np.var(np.asarray(x, np.float64))
    np.testing.assert_allclose((after - 0.9) / 0.1, expected, rtol=2e-2)


X = pixels(2, 8, 8, 3)


def test_a_missing_ill_shaped_or_foreign_tensor_is_named():
    module = ResNet(**TINY)
    variables, state = zeros(module, X), resnet_tensors()
    more = {**state, "bn1.num_batches_tracked": np.array(3)}
    loaded, left_out = from_torch(module, more, variables)
    assert not left_out  # everything fits
    kernel = loaded["params"]["Dense_0"]["kernel"]
    np.testing.assert_allclose(kernel, state["fc.weight"].T, rtol=1e-6)
    without = {k: v for k, v in state.items() if "downsample.1.running_var" not in k}
    for tensors, message in (
        (without, "'layer2.0.downsample.1.running_var' is missing"),
        ({**state, CONV: np.zeros((4, 4, 1, 1))}, f"'{CONV}' is of shape (4, 4, 1, 1)"),
        ({**state, "layer3.0.conv1.weight": np.zeros(3)}, "'layer3.0.conv1.weight' has no place"),
    ):
        one_line(lambda t=tensors: from_torch(module, t, variables), message)


CONV = "layer1.0.conv1.weight"
NO_WEIGHTS = {
    "integers": ({CONV: np.ones((4, 4, 3, 3), np.int8)}, f"'{CONV}' is int8 and weights are"),
    "truths": ({"fc.bias": np.ones(3, bool)}, "'fc.bias' is bool and weights are floating"),
    "too large": ({CONV: np.full((4, 4, 3, 3), 1e300)}, "float32 cannot hold"),
    "a negative variance": (
        {"bn1.running_var": np.array([1.0, -0.5, 1.0, 1.0])},
        "'bn1.running_var' has the variance -0.5",
    ),
}


@pytest.mark.parametrize("fault", NO_WEIGHTS)
def test_tensors_that_are_no_weights_are_named_in_one_line(fault):
    changes, message = NO_WEIGHTS[fault]
    module = ResNet(**TINY)
    variables, state = zeros(module, X), resnet_tensors()
    one_line(lambda: from_torch(module, {**state, **changes}, variables), message)


def test_imagenet_s_stem_and_classes_can_be_left_out_and_are_told():
    module = ResNet(**TINY)
    variables, state = zeros(module, X), resnet_tensors(out=1000, stem=7)
    loaded, left_out = from_torch(module, state, variables)
    assert set(left_out) == {name for name in state if name.split(".")[0] in ("conv1", "bn1", "fc")}
    for tree in ("params", "batch_stats"):
        for layer, own in variables[tree].items():
            same = jax.tree.all(jax.tree.map(jnp.array_equal, own, loaded[tree][layer]))
            assert same == (layer in ("conv1", "bn1", "Dense_0"))
    kernel = loaded["params"]["layer2_0"]["conv1"]["kernel"]
    expected = state["layer2.0.conv1.weight"].transpose(2, 3, 1, 0)
    np.testing.assert_array_equal(kernel, np.float32(expected))
    without = {name: a for name, a in state.items() if not name.startswith("fc.")}
    assert not any(name.startswith("fc.") for name in from_torch(module, without, variables)[1])


def test_convolutions_start_kaiming_normal_by_the_fan_out_and_the_linear_as_asked():
    module = ResNet(40, blocks=(), width=64, weights="torch")  # the stem and the Linear alone
    params = quick_jit(from_module(module).init)(jax.random.key(0), pixels(2, 8, 8, 3))["params"]
    law = stats.norm(0, (2 / (9 * 64)) ** 0.5)
    assert stats.kstest(np.ravel(params["conv1"]["kernel"]), law.cdf).pvalue > 1e-3
    assert (params["bn1"]["scale"] == 1).all()
    bound = 64**-0.5
    for values in params["Dense_0"].values():
        law = stats.uniform(-bound, 2 * bound)
        assert stats.kstest(np.ravel(values), law.cdf).pvalue > 1e-3
