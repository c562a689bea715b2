"""Residual networks: the published sizes, PyTorch's numbers, and torchvision's weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.datasets.refusals import one_line
from tests.harness import quick_jit
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


@pytest.mark.parametrize(
    ("name", "options", "image", "parameters"),
    [
        ("resnet20", {"out": 10}, (32, 16, 3), 269_722),  # published
        # torchvision's, with ImageNet's stem and classes
        ("resnet18", {"out": 1000, "stem": "imagenet"}, (64, 64, 3), 11_689_512),
        ("resnet50", {"out": 1000, "stem": "imagenet"}, (64, 64, 3), 25_557_032),
    ],
)
def test_sizes_are_the_published_ones(name, options, image, parameters):
    assert count(BOTTOMS[name](**options), pixels(1, *image)) == parameters


TINY = {"out": 3, "width": 4, "blocks": (1, 1)}


def test_any_image_becomes_an_embedding_and_every_stage_is_sown():
    module, x = ResNet(**TINY, stem="imagenet"), pixels(2, 16, 8)
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
NO_WEIGHTS = (
    ({CONV: np.ones((4, 4, 3, 3), np.int8)}, f"'{CONV}' is int8 and weights are"),
    ({CONV: np.full((4, 4, 3, 3), 1e300)}, "float32 cannot hold"),
    (
        {"bn1.running_var": np.array([1.0, -0.5, 1.0, 1.0])},
        "'bn1.running_var' has the variance -0.5",
    ),
)


def test_tensors_that_are_no_weights_are_named_in_one_line():
    module = ResNet(**TINY)
    variables, state = zeros(module, X), resnet_tensors()
    for changes, message in NO_WEIGHTS:
        one_line(lambda c=changes: from_torch(module, {**state, **c}, variables), message)


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
