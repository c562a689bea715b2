"""BERT against its PyTorch twin through the checkpoints' names, padding, dropout, refused shapes."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.datasets.refusals import one_line
from tests.models.drawing import applied, draw, run
from tests.models.weight_files import bert_tensors
from vfljax.errors import UserError
from vfljax.models import BOTTOMS, parties
from vfljax.models.bert import Bert, from_torch

SIZES = {"vocabulary": 40, "positions": 12, "hidden": 24, "layers": 2, "heads": 4}
SIZES["intermediate"] = 20
SMALL = Bert(5, **SIZES)


def token_ids(rows=6, length=9, seed=0):
    """Texts of lengths 3..length, padded with 0, as the float columns a bottom model receives."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(1, SIZES["vocabulary"], (rows, length))
    lengths = np.linspace(3, length, rows).astype(int)
    return np.where(np.arange(length) < lengths[:, None], ids, 0).astype(np.float32)


@functools.cache  # tests must not change it
def initial(module=SMALL):
    return draw(parties.from_module(module).init, jnp.asarray(token_ids()))


def twin(seed=0, scale=0.3):
    """The PyTorch model with random weights far from their defaults, norms included."""
    torch = pytest.importorskip("torch")
    from tests.reference.torch_bert import BertModel

    torch.manual_seed(seed)
    model = BertModel(**SIZES)
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.normal_(1.0 if name.endswith("LayerNorm.weight") else 0.0, scale)
    return model, {name: value.detach().numpy() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("pooled", [True, False])
def test_it_computes_what_the_pytorch_model_computes_on_the_same_weights(pooled):
    torch = pytest.importorskip("torch")
    model, state = twin()
    module = Bert(5, **SIZES, pooled=pooled, output="tanh")
    variables, left_out = from_torch(module, state, initial(module))
    assert left_out == ([] if pooled else ["pooler.dense.bias", "pooler.dense.weight"])
    ids = token_ids()
    out, (_, layers) = run(module)(variables, jnp.asarray(ids), False, None)
    with torch.no_grad():
        every, pooled_vector = model(torch.from_numpy(ids).long())
    for mine, theirs in zip(layers["hidden"], every, strict=True):
        np.testing.assert_allclose(mine, theirs.numpy(), atol=1e-4)
    linear = variables["params"]["linear"]
    vector = (pooled_vector if pooled else every[-1]).numpy()
    expected = np.tanh(vector @ np.asarray(linear["kernel"]) + np.asarray(linear["bias"]))
    np.testing.assert_allclose(out, expected, atol=1e-4)
    assert np.ptp(vector, axis=0).max() > 0.1  # rows differ: agreement is not of constants


def test_padding_does_not_change_the_result():
    ids = jnp.asarray(token_ids())
    longer = jnp.pad(ids, ((0, 0), (0, 3)))
    variables, apply = initial(), applied(SMALL)
    np.testing.assert_allclose(apply(variables, ids), apply(variables, longer), atol=1e-6)
    moved = jax.tree.map(jnp.copy, variables)
    table = moved["params"]["word_embeddings"]["embedding"]
    moved["params"]["word_embeddings"]["embedding"] = table.at[0].add(100.0)
    np.testing.assert_allclose(apply(variables, ids), apply(moved, ids), atol=1e-6)


def test_every_token_counts_but_padding_and_ids_outside_the_vocabulary_are_clipped():
    ids = token_ids()
    variables, apply = initial(), applied(SMALL)
    out = apply(variables, jnp.asarray(ids))
    for place in range(ids.shape[1]):
        other = ids.copy()
        other[:, place] = np.where(ids[:, place] > 0, ids[:, place] % 39 + 1, 0)
        moved = np.abs(apply(variables, jnp.asarray(other)) - out).max(axis=1)
        np.testing.assert_array_equal(moved > 1e-6, ids[:, place] > 0)
    wild, tame = np.zeros((2, *ids.shape), np.float32)
    wild[0, :3], tame[0, :3] = (-3.0, 2.0, 1e6), (0.0, 2.0, 39.0)
    out = apply(variables, jnp.asarray(wild))  # all other rows are padding
    np.testing.assert_array_equal(out, apply(variables, jnp.asarray(tame)))
    assert np.isfinite(out).all()


def test_the_presets_have_the_published_sizes():
    x = jax.ShapeDtypeStruct((2, 8), jnp.float32)
    for name, count in (("bert", 109_482_240), ("bert_tiny", 4_385_920)):
        module = BOTTOMS[name](out=3)
        shapes = jax.eval_shape(module.init, jax.random.key(0), x)["params"]
        width = module.hidden * 3 + 3
        assert sum(v.size for v in jax.tree.leaves(shapes)) - width == count
        assert not module.mixable


def test_shapes_it_cannot_read_are_one_line():
    variables = initial()
    with pytest.raises(UserError, match="13 tokens and has 12 positions"):
        SMALL.apply(variables, jnp.zeros((2, 13)))
    with pytest.raises(UserError, match=r"token ids \[B, L\] and got columns of shape \(2, 3, 4\)"):
        SMALL.apply(variables, jnp.zeros((2, 3, 4)))
    with pytest.raises(UserError, match="hidden=24 is not a multiple of heads=5"):
        initial(Bert(5, **{**SIZES, "heads": 5}))


def state_of():
    return bert_tensors(**{size: n for size, n in SIZES.items() if size != "heads"})


def test_prefix_old_names_heads_and_half_precision_are_understood():
    state = state_of()
    expected, _ = from_torch(SMALL, state, initial())
    heads = {"cls.predictions.bias": np.ones(3), "classifier.weight": np.ones((2, 3))}
    buffer = {"bert.embeddings.position_ids": np.arange(12)}
    old = {
        "bert."
        + k.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): v
        for k, v in state.items()
    }
    assert "bert.embeddings.LayerNorm.gamma" in old
    variables, left_out = from_torch(SMALL, {**old, **heads, **buffer}, initial())
    assert left_out == ["bert.embeddings.position_ids", "classifier.weight", "cls.predictions.bias"]
    assert jax.tree.structure(variables) == jax.tree.structure(initial())
    layer = variables["params"]["layer_1"]
    for kernel, name in (
        (layer["expand"]["kernel"], "intermediate.dense"),
        (layer["attention"]["query"]["kernel"].reshape(24, 24), "attention.self.query"),
        (layer["attention"]["out"]["kernel"].reshape(24, 24), "attention.output.dense"),
    ):
        np.testing.assert_array_equal(kernel, np.float32(state[f"encoder.layer.1.{name}.weight"].T))
    jax.tree.map(np.testing.assert_array_equal, variables, expected)
    halves = {k: v.astype(np.float16) for k, v in state.items()}
    variables, _ = from_torch(SMALL, halves, initial())
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-2), variables, expected)
    assert {v.dtype.name for v in jax.tree.leaves(variables)} == {"float32"}


def test_only_the_last_linear_keeps_its_initial_values():
    before, after = initial()["params"], from_torch(SMALL, state_of(), initial())[0]["params"]
    for name in before:
        same = jax.tree.map(np.array_equal, before[name], after[name])
        assert set(jax.tree.leaves(same)) == {name == "linear"}


def test_dropout_acts_at_its_four_places_each_number_by_itself():
    """On embeddings, attention weights and what either half of a layer adds: Devlin's code."""
    module, seen = Bert(5, **SIZES, dropout=0.25), []

    def note(call, args, kwargs, context):
        own = context.module
        if context.method_name == "__call__" and isinstance(own, nn.Dropout):
            seen.append(("/".join(own.path[:-1]), own.rate, own.broadcast_dims, own.deterministic))
        if context.method_name == "__call__" and isinstance(own, nn.MultiHeadDotProductAttention):
            drops = own.dropout_rate, () if not own.broadcast_dropout else (0,), own.deterministic
            seen.append(("/".join(own.path), *drops))
        return call(*args, **kwargs)

    party, key = parties.from_module(module), jax.random.key(0)
    variables, x = initial(), jnp.asarray(token_ids())
    for train in (False, True):
        seen.clear()
        with nn.intercept_methods(note):
            jax.eval_shape(lambda key, on=train: party.apply(variables, x, on, key), key)
        layers = [
            place for n in range(2) for place in (f"layer_{n}/attention", *[f"layer_{n}"] * 2)
        ]
        assert seen == [(place, 0.25, (), not train) for place in ["", *layers]]


def test_initial_weights_have_the_published_deviation():
    module = Bert(5, **{**SIZES, "layers": 1})
    init = jax.jit(parties.from_module(module).init)
    params = init(jax.random.key(0), jnp.asarray(token_ids()))["params"]
    for path, value in jax.tree_util.tree_leaves_with_path(params):
        if path[-1].key in ("kernel", "embedding") and value.size > 400:
            np.testing.assert_allclose(np.std(value), 0.02, rtol=0.15)
        elif path[-1].key == "bias":
            assert not np.any(value)


def test_a_norm_sees_neither_scale_nor_shift():
    """Epsilon 1e-12, the two-pass variance: the sum of embeddings is made small and moved."""
    module = Bert(5, **{**SIZES, "layers": 0}, pooled=False)
    variables, x = initial(module), jnp.asarray(token_ids())
    expected = np.asarray(applied(module)(variables, x))
    for scale, shift in ((1e-2, 0.0), (1.0, 100.0)):
        params = dict(variables["params"])
        for table in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
            params[table] = {"embedding": params[table]["embedding"] * scale + shift}
        found = applied(module)({"params": params}, x)
        np.testing.assert_allclose(found, expected, atol=0.01 * np.abs(expected).max())


WORDS = "embeddings.word_embeddings.weight"
QUERY = "encoder.layer.0.attention.self.query.weight"
FAULTS = (
    ({QUERY: None}, f"tensor '{QUERY}' [24, 24] is missing"),
    ({"pooler.dense.bias": None}, "is missing from the weights; give pooled=False"),
    ({QUERY: np.ones((24, 8))}, f"'{QUERY}' has shape [24, 8] and the model needs [24, 24]"),
    ({WORDS: np.ones((41, 24))}, "give config.data.options.vocabulary=vocab.txt"),
    ({WORDS: np.ones((40, 8))}, "needs [40, 24]: set the model's sizes"),
    ({QUERY: np.ones((24, 24), np.int8)}, f"'{QUERY}' is int8"),
    ({QUERY: np.full((24, 24), 1e300)}, "float32 cannot hold"),
    ({"encoder.layer.2.output.dense.bias": np.ones(24)}, "encoder of 2 layers"),
    ({"bert." + QUERY: np.ones((24, 24))}, "are both"),
)


def test_a_faulty_checkpoint_is_one_line_that_names_the_tensor():
    for changes, message in FAULTS:
        state = {k: v for k, v in {**state_of(), **changes}.items() if v is not None}
        one_line(lambda s=state: from_torch(SMALL, s, initial()), message)
