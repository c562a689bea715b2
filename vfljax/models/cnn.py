"""Plain convolutional networks: GAFM's and Marvell's bottom models for ISIC skin lesions.

They map images [B, H, W, C], with values of about [0, 1], to embeddings [B, out]. They sow the pooled map of
every convolution and every hidden layer.

    (3x3 convolution, ReLU, 2x2 max pool) repeated, flatten, (Linear, ReLU) repeated, Linear -> output

GAFM (Han and Guan 2023, appendix E.2), ``gafm``: 64x64x1 images, channels 6, 16, 32 without padding,
so 6x6x32, then Linear layers of 120, 84 and 40 units. We take the 40 units as the embedding itself, without
an activation: Table 1 calls it a 6-layer network (three convolutions and three Linears), the text names a
sigmoid unit for Spambase and IMDB but none here, and section 3 allows a cut of d > 1, whose sum the
cross-entropy loss reads. The paper does not mention ReLUs between the Linears; we assume them. For a single
sigmoid unit at the end, set hidden=(120, 84, 40), out=1, output="sigmoid".

Marvell (Li et al. 2022), ``marvell``: six convolutions of 64 channels, padded to the image's size, cut after
the fourth. In the paper, the label party has the others and the hidden layers of 64. As a deviation, only the
passive half is offered, for no top model of vfljax has convolutions. Its embedding is the flattened map of the
fourth convolution: 84x84 images leave 5x5x64 = 1600 numbers. Padding, the cut and 84x84 are from the
released code, which has one hidden layer of 64 where the paper has two. ``linear=True`` adds a Linear(out).
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import flax.linen as nn
import jax.numpy as jnp

from vfljax.models.convolution import conv, images
from vfljax.models.mlp import ACTIVATIONS, WEIGHTS, dense, initializers
from vfljax.types import Array


class CNN(nn.Module):
    """The network of the module docstring.

    Raises:
      ValueError: when traced, if images are too small for the poolings or, without ``linear``, if ``out`` is
        not the width of the flattened map or ``hidden`` is not empty.
    """

    out: int
    output: str = "identity"
    channels: tuple[int, ...] = (6, 16, 32)
    hidden: tuple[int, ...] = (120, 84)
    padding: str = "VALID"  # or "SAME"
    linear: bool = True  # whether the network ends in a Linear(out)
    weights: str = "default"  # or "torch", see ``vfljax.models.mlp.dense``; also of convolutions
    convolution: str = "auto"
    dtype: Any = None  # see ``parties.from_module``
    reads: ClassVar[tuple[str, ...]] = ("image",)
    mixable: ClassVar[bool] = True

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        del train
        x = images(x)
        self._check(x.shape)
        for channels in self.channels:
            initial = initializers(self.weights, 9 * x.shape[-1])
            options: Any = {"padding": self.padding, "implementation": self.convolution}
            options["dtype"] = self.dtype
            x = halve(nn.relu(conv(x, channels, 3, use_bias=True, **options, **initial)))
            self.sow("layers", "hidden", x.astype(jnp.float32))
        x = x.reshape(x.shape[0], -1)
        for width in self.hidden:
            x = nn.relu(dense(x, width, self.weights, self.dtype))
            self.sow("layers", "hidden", x.astype(jnp.float32))
        x = x.astype(jnp.float32)
        if self.linear:
            x = dense(x, self.out, self.weights)
        return ACTIVATIONS[self.output](x)

    def _check(self, shape: tuple[int, ...]) -> None:
        if self.padding not in ("VALID", "SAME"):
            raise ValueError(f"padding={self.padding!r}: choose 'VALID' or 'SAME'.")
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights={self.weights!r}: choose one of {WEIGHTS}.")
        lost = 2 if self.padding == "VALID" else 0
        height, width = shape[1:3]
        least = 1
        for _ in self.channels:
            height, width, least = (height - lost) // 2, (width - lost) // 2, 2 * least + lost
        if min(height, width) < 1:
            raise ValueError(
                f"images of {shape[1]}x{shape[2]} are too small for {len(self.channels)} convolutions "
                f"with pooling: this network needs at least {least}x{least}."
            )
        if not self.linear:
            flat = height * width * (self.channels[-1] if self.channels else shape[3])
            if self.hidden or self.out != flat:
                hidden = " and config.model.options.hidden=()" if self.hidden else ""
                raise ValueError(
                    f"out={self.out}, hidden={self.hidden}: images of {shape[1]}x{shape[2]} leave "
                    f"a map of {height}x{width}x{flat // (height * width)}: set config.model.cut="
                    f"{flat}{hidden}; for another cut, and for logits (without model splitting), "
                    "config.model.options.linear=True; of a teacher, config.teacher.options.linear=True."
                )


def halve(x: Array) -> Array:
    """Returns the 2x2 max pool of stride 2; an odd last row or column is dropped, as PyTorch does."""
    # a maximum over axes, because the gradient of XLA's pooling is a scatter. After ReLU, ties occur only at
    # 0, where ReLU passes no gradient
    b, h, w, c = x.shape
    x = x[:, : h // 2 * 2, : w // 2 * 2].reshape(b, h // 2, 2, w // 2, 2, c)
    return jnp.max(x, axis=(2, 4))


gafm = functools.partial(CNN, channels=(6, 16, 32), hidden=(120, 84), padding="VALID")
marvell = functools.partial(CNN, channels=(64, 64, 64, 64), hidden=(), padding="SAME", linear=False)
