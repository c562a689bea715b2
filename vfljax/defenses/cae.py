"""CAE: the parties are trained on soft codes that confuse the classes (Zou et al. 2022).

An encoder W and a decoder V, C -> width -> C with a ReLU between and a softmax at the end, are trained
before the federation and without its data, on rows y = softmax(U(0, 1)^C / T), which are nearly one-hot:

    10 CE(V(W(y)), y) - confusion * H(W(y)) - CE(W(y), y)

so that the code W(y) can be decoded, is spread over classes, and is not y. The federation then trains
on the codebook K = W(I) [C, C], one fixed code a class,

    targets <- targets K,    predictions: V(softmax(logits))

DCAE is CAE with rounded gradients, a chain: ``{"dcae": {"cae": {"confusion": 1.0}, "discrete_sgd":
{"intervals": 12}}}``. (Its authors fix the interval: "interval": "fixed", "bound": 3e-4.)

Reference: Zou, Liu, Kang, Liu, He, Yi, Yang, Zhang. "Defending Batch-Level Label Inference and
Replacement Attacks in Vertical Federated Learning", IEEE Transactions on Big Data 2022; details after
VFLAIR's released code. There CE applies a second softmax to probabilities, which bounds -CE, and H is
the mean over batch AND classes of -p ln p, so that other implementations need other values of ``confusion``.

Guarantee: none. A code belongs to a class, not to a row.
    - An attacker that knows a labeled row of each class reads codes as well as labels.
    - An attacker without any label can read labels too. With some confusion a code gives nearly no mass
      to its own class and some to every other, so that the label is the class whose gradient is the most
      POSITIVE while predictions are near uniform (``direct``, rule="most_positive").
    - Attacks that read a class off the sign of a gradient find the classes of the code. Their errors are
      no protection: renaming the classes has the same effect, and known rows undo it.

Set-up: the released code has width (6 C + 2)^2 (``width=0``; (2 C + 2)^2 for 100 classes), learning_rate
5e-4 (1e-5 for 100), T .025 (.028 for 20, .05 for 100), and 50 epochs for 2 classes, 20 for 5, 50 to 75 for
10, each of 235 batches of 128 rows. The default is smaller: width 64, 5000 steps, learning_rate 1e-2.
Its codebooks over 3 seeds, by ``python -m pytest -m slow -s tests/defenses/cae_test.py``:

    C   confusion   own mass   classes that are the     least mass of    classes that
                    (mean)     argmax of some code      a wrong class    V(K) decodes
    2       0        4e-7            2.0                    1.00            100 %
    2      .1        7e-6            2.0                    1.00            100 %
    2      .5        4e-3            2.0                    1.00            100 %
    2       1        .06             2.0                     .94            100 %
    2       2        .2              2.0                     .78            100 %
    10      0        4e-6            9.3                     .00             97 %
    10     .1        2e-8            8.3                     .00            100 %
    10     .5        4e-5            9.0                     .01            100 %
    10      1        2e-4            9.3                     .06            100 %
    10      2        7e-4            8.3                     .08            100 %

The released set-up with 10 classes (50 epochs, one seed) spreads codes more evenly: at .5 and 1 a
wrong class has at least .057 and .080, and the own class at most 3e-5 and 1e-4.

No value of ``confusion`` is neutral: at 0 the codebook is nearly a permutation without fixed points.

Deviation: rows are drawn anew at every step, not from 30,000. Class weights of the loss
(``config.training.class_weights``) weigh the classes of the code.
"""

from __future__ import annotations

from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax

from vfljax import errors, keys
from vfljax.defenses import core
from vfljax.defenses.rows import DefenseRow, Knower, Strengths
from vfljax.types import Array, Context, PyTree

BATCH = 128
DEVIATION = 0.01  # of initial kernels; biases start at 0
DECODABLE = 10.0  # weight of the decoder's cross entropy
MOST_NUMBERS = 100_000_000  # in both networks; with gradients and Adam's moments 1.6 GB


def init_network(key: Array, num_classes: int, width: int) -> PyTree:
    """One network C -> width -> C: its kernels and biases by name."""
    first = (num_classes, width)
    return {
        "kernel_0": DEVIATION * jax.random.normal(keys.fold(key, 0), first),
        "bias_0": jnp.zeros(width),
        "kernel_1": DEVIATION * jax.random.normal(keys.fold(key, 1), first[::-1]),
        "bias_1": jnp.zeros(num_classes),
    }


def forward(network: PyTree, x: Array) -> Array:
    """The network's logits [B, C] of ``x`` [B, C]; their softmax is its output."""
    chex.assert_rank(x, 2)
    hidden = jax.nn.relu(x @ network["kernel_0"] + network["bias_0"][None])
    return hidden @ network["kernel_1"] + network["bias_1"][None]


def cross_entropy_of_probabilities(p: Array, y: Array) -> Array:
    """The released CE []: that of softmax(``p``) against ``y``, although ``p`` [B, C] are probabilities."""
    chex.assert_rank([p, y], 2)
    chex.assert_equal_shape([p, y])
    return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(p), axis=-1))


def loss(networks: PyTree, y: Array, confusion: Array | float) -> Array:
    """The loss [] that encoder and decoder descend, on rows ``y`` [B, C]."""
    chex.assert_rank([y, confusion], [2, 0])
    code = jax.nn.softmax(forward(networks["encoder"], y))
    decoded = jax.nn.softmax(forward(networks["decoder"], code))
    # a code may underflow to 0, where p ln p is 0 and its gradient must be finite
    entropy = -jnp.mean(code * jnp.log(jnp.maximum(code, 1e-30)))
    return (
        DECODABLE * cross_entropy_of_probabilities(decoded, y)
        - confusion * entropy
        - cross_entropy_of_probabilities(code, y)
    )


def random_rows(key: Array, num_classes: int, temperature: float) -> Array:
    """Rows y [128, C] to train on: softmax(U(0, 1)^C), sharpened by the power 1/T."""
    return jax.nn.softmax(jax.random.uniform(key, (BATCH, num_classes)) / temperature)


def train(
    key: Array,
    num_classes: int,
    confusion: Array | float,
    learning_rate: Array | float,
    width: int,
    steps: int,
    temperature: float,
) -> PyTree:
    """Trained {"encoder": ..., "decoder": ...}; see ``cae`` for the numbers."""
    adam = optax.adam(learning_rate)
    networks = {
        name: init_network(keys.fold(key, name), num_classes, width)
        for name in ("encoder", "decoder")
    }

    def step(carry: Any, number: Array) -> tuple[Any, None]:
        networks, state = carry
        y = random_rows(keys.fold(key, "rows", number), num_classes, temperature)
        slope = jax.grad(loss)(networks, y, confusion)
        update, state = adam.update(slope, state, networks)
        return (optax.apply_updates(networks, update), state), None

    (networks, _), _ = jax.lax.scan(step, (networks, adam.init(networks)), jnp.arange(steps))
    return networks


def decode(decoder: PyTree, logits: Array) -> Array:
    """V's logits [M, C] of the model's ``logits`` [M, C]: the log of V(softmax(logits)), up to a constant
    for each row. Probabilities that round to 1 would be ties, which these logits still rank."""
    return forward(decoder, jax.nn.softmax(logits))


def cae(
    confusion: Array | float,
    learning_rate: Array | float = 1e-2,
    *,
    width: int = 64,
    steps: int = 5000,
    temperature: float = 0.025,
) -> core.Defense:
    """CAE whose encoder's entropy weighs ``confusion`` >= 0, the paper's lambda (0 to 2).

    The codebook is trained by ``steps`` of Adam with a ``learning_rate`` >= 0 and networks of a
    hidden ``width`` (0: the released (6 C + 2)^2), on rows of a ``temperature`` T > 0. CAE never
    reduces to no defense. Raises ``ValueError`` for a knob or option out of range; ``codebook`` does,
    when the sweep is planned, for networks that are too large to be trained in memory.
    """
    errors.check("confusion", confusion, 0.0, jnp.inf)
    errors.check("learning_rate", learning_rate, 0.0, jnp.inf)
    errors.check("width", width, 0, whole=True)
    errors.check("steps", steps, 1, whole=True)
    errors.check("temperature", temperature, 1e-3, jnp.inf)

    def codebook(key: Array, num_classes: int) -> PyTree:
        wide = width or (6 * num_classes + 2) ** 2
        _check_size(num_classes, wide)
        trained = train(key, num_classes, confusion, learning_rate, wide, steps, float(temperature))
        code = jax.nn.softmax(forward(trained["encoder"], jnp.eye(num_classes)))
        return {"codebook": code, "decoder": trained["decoder"]}

    def init(key: Array, data: core.TrainingData) -> PyTree:
        return codebook(key, data.num_classes) if data.codebook is None else data.codebook

    def targets(targets: Array, context: Context, state: PyTree) -> tuple[Array, Context, PyTree]:
        # full precision: an accelerator's default would round codes
        return jnp.matmul(targets, state["codebook"], precision="highest"), context, state

    return core.Defense(
        codebook=codebook,
        init=init,
        targets=targets,
        read=lambda state, logits: decode(state["decoder"], logits),
    )


def _check_size(num_classes: int, width: int) -> None:
    """Raise ``ValueError`` for networks that are too large to be trained in memory."""
    numbers = 2 * (2 * num_classes * width + width + num_classes)
    if numbers > MOST_NUMBERS:
        most = (MOST_NUMBERS - 2 * num_classes) // (4 * num_classes + 2)
        raise ValueError(
            f"cae's networks for {num_classes} classes have {numbers:,} numbers at width {width:,}, more "
            f"than the {MOST_NUMBERS:,} that are trained in memory: choose a width of at most {most:,}."
        )


ROW = DefenseRow(
    factory=cae,
    example={"confusion": 1.0, "learning_rate": 1e-2},
    known_by={
        # the class without mass is the label, and known rows separate codes as well as labels
        "no_split": (
            *(Knower("direct", "most_positive"), Knower("probe"), Knower("similarity")),
            Knower("joint"),
        ),
        "split": (Knower("probe"), Knower("similarity"), Knower("joint")),
    },
    strengths=Strengths("confusion", (0.1, 0.5, 1.0, 2.0)),
)
