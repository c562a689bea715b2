"""Networks made from a config for what a party reads; every refusal is one line."""

import pathlib

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest

from tests.configs_test import load
from tests.datasets.refusals import one_line
from tests.sweeps import tiny
from vfljax.errors import UserError
from vfljax.models import BOTTOMS, MLP, ResNet, WideDeep
from vfljax.models.making import make_network, networks_for, options_of
from vfljax.sweep import plan, teachers
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import make_plan
from vfljax.types import Input

TABLE, IMAGE = Input("table", (5,)), Input("image", (32, 16, 3))
CODES, TEXT = Input("table", (3,), (0, 7, 9)), Input("text", (16,), (50,), 0)


def model_of(**changes):
    return parse({"model": changes}).model


def make(reads, **changes):
    return make_network(model_of(**changes), 4, "identity", reads)


def test_the_default_is_the_mlp_it_always_was():
    assert make(TABLE) == MLP((64,), 4, "relu", "identity", "default")
    assert make(IMAGE, hidden=()) == MLP((), 4)


def test_options_and_what_the_data_says_reach_the_network():
    made = make(IMAGE, bottom="resnet20", options={"width": 4, "blocks": [1, 1]})
    assert isinstance(made, ResNet)
    assert (made.width, made.blocks, made.shortcut, made.out) == (4, (1, 1), "pad", 4)
    wide = make(CODES, bottom="wide_deep", hidden=(8,), options={"embedding": 2})
    assert isinstance(wide, WideDeep)
    assert (wide.vocabulary, wide.hidden, wide.embedding) == ((0, 7, 9), (8,), 2)
    assert make(TABLE, bottom="wide_deep").vocabulary == (0,) * 5
    tiny = make(TEXT, bottom="bert_tiny", options={"layers": 1})
    assert (tiny.vocabulary, tiny.layers, tiny.out) == (50, 1, 4)
    assert make_network(model_of(), 4, "tanh", TABLE).output == "tanh"


@pytest.mark.parametrize("name", BOTTOMS)
def test_every_network_is_made_hashable(name):
    reads = next(x for x in (CODES, TABLE, IMAGE, TEXT) if name in networks_for(x))
    made, again = (make(reads, bottom=name, weights="torch") for _ in range(2))
    assert isinstance(made, nn.Module)
    assert hash(made) == hash(again)
    assert made.output == "identity"
    assert getattr(made, "weights", "torch") == "torch"
    # codes and tokens have no mixtures
    assert made.mixable == (name not in ("wide_deep", "bert", "bert_tiny"))


BAD = [
    (TABLE, {"bottom": "resnet19"}, "did you mean 'resnet18'"),
    (TABLE, {"bottom": "resnet18"}, "reads image and the data is of kind 'table'"),
    (TEXT, {}, "choose bert, bert_tiny"),
    (
        Input("text", (16,), (50,), 3),
        {"bottom": "bert_tiny"},
        "data pads with token 3: give config",
    ),
    (CODES, {}, "has columns of codes: choose 'wide_deep'"),
    (IMAGE, {"bottom": "resnet18", "options": {"wdth": 3}}, "did you mean 'width'"),
    (IMAGE, {"bottom": "resnet18", "options": {"out": 3}}, "unknown field of config.model.options"),
    (TABLE, {"activation": "rely"}, "did you mean 'relu'"),
    (TABLE, {"weights": "x"}, "unknown config.model.weights"),
    (IMAGE, {"bottom": "resnet18", "options": {"blocks": 3}}, "options.blocks=3 must be like"),
    (IMAGE, {"bottom": "resnet18", "options": {"blocks": [[1], 2]}}, "must be whole numbers"),
    (TABLE, {"options": {"dropout": "x"}}, "options.dropout='x' must be like its default, 0.0"),
    (TABLE, {"hidden": (2**31,)}, "from 1 to 2,147,483,647"),
    (IMAGE, {"bottom": "resnet18", "options": {"width": 2**31}}, "at most 2,147,483,647, for"),
    (TABLE, {"options": {"hidden": [8, 0]}}, "config.model.options.hidden=(8, 0) must be whole"),
    (TABLE, {"options": {"hidden": "8"}}, "config.model.options.hidden='8' must be like"),
    (IMAGE, {"bottom": "resnet18", "options": {"width": 0}}, "options.width=0 must be at least 1"),
    (IMAGE, {"bottom": "cnn_gafm", "options": {"channels": [0]}}, "options.channels=(0,) must be"),
    (
        IMAGE,
        {"bottom": "cnn_gafm", "hidden": (8,)},
        "(8,) is not read by the network 'cnn_gafm': use",
    ),
    (
        IMAGE,
        {"bottom": "resnet18", "hidden": ()},
        "hidden=() is not read by the network 'resnet18'",
    ),
    (TABLE, {"options": {"dropout": float("nan")}}, "options.dropout=nan must be in [0, 1)"),
]


@pytest.mark.parametrize(("reads", "changes", "says"), BAD, ids=[b[2][:40] for b in BAD])
def test_a_network_that_cannot_be_is_one_clear_line(reads, changes, says):
    one_line(lambda: make(reads, **changes), says)


def test_options_leave_out_what_the_data_decides_and_networks_have_defaults_of_their_own():
    assert "vocabulary" not in options_of("wide_deep")
    assert "out" not in options_of("mlp")
    assert make(IMAGE, bottom="cnn_gafm").hidden == (120, 84)
    assert make(TEXT, bottom="bert_tiny").hidden == 128


@pytest.mark.parametrize(
    "changes",
    [{"bottom": "cnn_gafm"}, {"bottom": "resnet18", "options": {"block": "foo"}}],
    ids=["image too small", "unknown block"],
)
def test_a_network_that_fails_on_the_data_is_one_line_before_training(changes):
    fields = {f"model.{key}": value for key, value in changes.items()}
    fields |= {"model.hidden": (64,), "attacks": {}, "grid": {"undefended": {}}}
    with pytest.raises(UserError, match=r"^config\.model: "):
        make_plan(parse(tiny(**fields)))


def test_arithmetic_that_fails_in_a_network_is_one_line_too(monkeypatch):
    """Whatever sizes no check has thought of."""

    def fails(*_):
        raise ZeroDivisionError("division by zero")

    for module, function, where in (
        (plan.initial, "weight_shapes", "model"),
        (teachers, "from_module", "teacher"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, function, fails)
            with pytest.raises(UserError) as error:
                make_plan(parse(tiny()))
        assert str(error.value).startswith(f"config.{where}: division by zero")


FOLDER = pathlib.Path(__file__).parents[2] / "configs" / "datasets"
READS = {"cifar10": IMAGE, "bhi": IMAGE, "ham10000": Input("image", (32, 32, 3))}
READS |= {"criteo": CODES, "avazu": CODES, "imdb_bert": TEXT}


@pytest.mark.parametrize("name", READS)
def test_a_data_set_s_network_can_be_made_as_configured(name):
    model = parse(load(FOLDER / f"{name}.py").get_config("smoke")).model
    net = make_network(model, model.cut, model.output, READS[name])
    x = jnp.zeros((2, *READS[name].shape))
    cut, _ = jax.eval_shape(lambda: net.init_with_output(jax.random.key(0), x))
    assert cut.shape == (2, model.cut)
