"""BERT, the bottom model of text. It maps token ids [B, L], whole float32 numbers, 0 for padding, to [B, out].

``from_torch`` places the weights of released checkpoints, which ``vfljax.models.weights`` reads.
``vfljax.datasets.converters.texts`` makes the ids.

Devlin, Chang, Lee, Toutanova, BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding, NAACL 2019. The encoder computes what transformers' BertModel computes.

Two published choices are not offered: the three learning rates for Yahoo (top, BERT, linear layer), instead of
which there is one, and MixText's mixing in BERT's hidden layers, instead of which the cut is mixed.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from vfljax.errors import Field, UserError
from vfljax.models.mlp import ACTIVATIONS, product_precision
from vfljax.models.tensors import as_variable, torch_shape
from vfljax.types import Array, PyTree

PAD = 0  # [PAD]'s id in every released vocabulary
_WORDS = "embeddings.word_embeddings.weight"
_SIZES = "set the model's sizes to the checkpoint's"
SEGMENTS = 2  # rows of the token type table; only row 0 is used: a party holds one text

_normal = nn.initializers.normal(0.02)
_Linear = functools.partial(nn.Dense, kernel_init=_normal)
_Embed = functools.partial(nn.Embed, embedding_init=_normal)
# the two-pass variance: the one-pass formula loses digits that epsilon 1e-12 does not hide
_Norm = functools.partial(nn.LayerNorm, epsilon=1e-12, use_fast_variance=False)


class Layer(nn.Module):
    """One encoder layer, each half normalized after its residual sum: [B, L, H] -> [B, L, H].
    ``mask`` [B, 1, 1, L] is True where a position may be attended to."""

    heads: int
    intermediate: int
    dropout: float
    dtype: Any = None

    @nn.compact
    def __call__(self, x: Array, mask: Array, train: bool) -> Array:
        attended = nn.MultiHeadDotProductAttention(
            self.heads,
            dropout_rate=self.dropout,
            broadcast_dropout=False,  # each attention weight drops by itself, as in the paper's code
            deterministic=not train,
            dtype=self.dtype,
            precision=product_precision(self.dtype),
            kernel_init=_normal,
            name="attention",
        )(x, mask=mask)
        attended = nn.Dropout(self.dropout, deterministic=not train)(attended)
        x = _Norm(dtype=self.dtype, name="attention_norm")(x + attended)
        options: Any = {"dtype": self.dtype, "precision": product_precision(self.dtype)}
        y = nn.gelu(_Linear(self.intermediate, name="expand", **options)(x), approximate=False)
        y = _Linear(x.shape[-1], name="contract", **options)(y)
        y = nn.Dropout(self.dropout, deterministic=not train)(y)
        return _Norm(dtype=self.dtype, name="output_norm")(x + y)


class Bert(nn.Module):
    """The encoder, then Linear(out) of the [CLS] position, which is the first: [B, L] -> [B, out].

    ``pooled`` puts the pooler, tanh(Linear(hidden)), between the two. The defaults are BERT-base.
    No position attends to a padded one (id 0), so embeddings there do not matter.
    Ids outside the vocabulary are clipped into it, and fractions cut off: nothing can raise inside a
    compiled program.

    Raises:
      UserError: when traced, if x is not [B, L] or L exceeds ``positions``.
    """

    out: int
    vocabulary: int = 30522
    hidden: int = 768
    layers: int = 12
    heads: int = 12
    intermediate: int = 3072
    positions: int = 512
    dropout: float = 0.1
    pooled: bool = True
    output: str = "identity"
    dtype: Any = None  # see ``parties.from_module``

    reads: ClassVar[tuple[str, ...]] = ("text",)
    mixable: ClassVar[bool] = False  # a convex combination of token ids means nothing

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        self._check(x.shape)
        ids = jnp.clip(x.astype(jnp.int32), 0, self.vocabulary - 1)
        mask = (ids != PAD)[:, None, None, :]
        words = _Embed(self.vocabulary, self.hidden, name="word_embeddings")(ids)
        places = jnp.arange(ids.shape[1])[None]
        places = _Embed(self.positions, self.hidden, name="position_embeddings")(places)
        segment = jnp.zeros((1, 1), jnp.int32)
        segment = _Embed(SEGMENTS, self.hidden, name="token_type_embeddings")(segment)
        x = _Norm(dtype=self.dtype, name="embeddings_norm")(words + places + segment)
        x = nn.Dropout(self.dropout, deterministic=not train)(x)
        for n in range(self.layers):
            sizes = self.heads, self.intermediate, self.dropout
            x = Layer(*sizes, self.dtype, name=f"layer_{n}")(x, mask, train)
            self.sow("layers", "hidden", x[:, 0].astype(jnp.float32))
        x = x[:, 0].astype(jnp.float32)
        if self.pooled:
            x = jnp.tanh(_Linear(self.hidden, name="pooler")(x))
        return ACTIVATIONS[self.output](_Linear(self.out, name="linear")(x))

    def _check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2:
            raise UserError(f"BERT reads token ids [B, L] and got columns of shape {shape}.")
        if shape[1] > self.positions:
            what = f"BERT got texts of {shape[1]} tokens and has {self.positions} positions"
            raise UserError(what, remedy="shorten the texts or raise positions")
        if self.hidden % self.heads:
            what = f"BERT's hidden={self.hidden} is not a multiple of heads={self.heads}"
            raise UserError(what, remedy="correct either")


tiny = functools.partial(Bert, hidden=128, layers=2, heads=2, intermediate=512)  # L-2_H-128_A-2


def from_torch(
    module: Bert, state: dict[str, np.ndarray], variables: PyTree
) -> tuple[PyTree, list[str]]:
    """Places the weights of a BertModel of the package transformers.

    Args:
      module: the network.
      state: tensors by transformers' names, with or without ``bert.`` before them; LayerNorm.gamma and .beta
        of old conversions are read too.
      variables: the module's; ``linear`` keeps its values, for no checkpoint has it.

    Returns:
      The variables with the weights in place, and the tensors left out: pretraining and task heads, stored
      positions, and the pooler if ``pooled`` is False.

    Raises:
      UserError: for a tensor that is missing, of another shape or type, or of another encoder.
    """
    given = _renamed(state)
    flat: dict[Any, Any] = dict(flatten_dict(variables["params"]))
    names = {_torch_name(path): path for path in flat if path[0] != "linear"}
    for name, path in names.items():
        shape = torch_shape(flat, path)
        if name not in given:
            hint = "; give pooled=False" if name.startswith("pooler.") else ""
            raise UserError(f"tensor {name!r} {list(shape)} is missing from the weights{hint}.")
        original, value = given[name]
        if value.shape != shape:
            data: tuple[str | Field, ...] = ()
            if name == _WORDS and value.shape[:1] != shape[:1]:  # the data decides the row count
                option = Field("data.options.vocabulary")
                data = ("give ", option, "=vocab.txt, the checkpoint's, and ")
            what = f"tensor {original!r} has shape {list(value.shape)} and the model needs {list(shape)}"
            raise UserError(what, remedy=(*data, _SIZES))
        flat[path] = as_variable(original, value, flat[path], path[-1] == "kernel")
    left_out = {name: original for name, (original, _) in given.items() if name not in names}
    for name, original in left_out.items():
        buffer = name in ("embeddings.position_ids", "embeddings.token_type_ids")
        if name.startswith(("embeddings.", "encoder.")) and not buffer:
            what = f"tensor {original!r} has no place in this encoder of {module.layers} layers"
            raise UserError(what, remedy=f"{_SIZES}, or choose a plain BERT's weights")
    return {**variables, "params": unflatten_dict(flat)}, sorted(left_out.values())


def _renamed(state: dict[str, np.ndarray]) -> dict[str, tuple[str, np.ndarray]]:
    """Returns a dict from transformers' present name, without prefix, to (the file's name, value)."""
    given: dict[str, tuple[str, np.ndarray]] = {}
    for original, value in state.items():
        name = original.removeprefix("bert.")
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
        name = name.replace("LayerNorm.beta", "LayerNorm.bias")
        if name in given:
            raise UserError(f"tensors {given[name][0]!r} and {original!r} are both {name!r}.")
        given[name] = (original, value)
    return given


# transformers' names of the parts
_PARTS = {
    **{
        f"{kind}_embeddings": f"embeddings.{kind}_embeddings"
        for kind in ("word", "position", "token_type")
    },
    "embeddings_norm": "embeddings.LayerNorm",
    **{part: f"attention.self.{part}" for part in ("query", "key", "value")},
    "out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "expand": "intermediate.dense",
    "contract": "output.dense",
    "output_norm": "output.LayerNorm",
    "pooler": "pooler.dense",
}


def _torch_name(path: tuple[str, ...]) -> str:
    """("layer_0", "attention", "out", "kernel") -> "encoder.layer.0.attention.output.dense.weight"."""
    kind, _, number = path[0].partition("_")
    layer = f"encoder.layer.{number}." if kind == "layer" else ""
    return f"{layer}{_PARTS[path[-2]]}.{'bias' if path[-1] == 'bias' else 'weight'}"
