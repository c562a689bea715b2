"""Times a training step of a convolutional bottom for many trials: a suite of ``python -m launch.benchmark``.

A step of ResNet-18 (width 16 and the published 64, batch 64 of 32 x 16 x 3 images, CIFAR-10's half) is
forward pass, cross entropy, backward pass and momentum SGD. As in a sweep, one program runs on all devices,
and each device maps its trials one after the other ("map") or together ("vmap"). On a CPU, XLA's own
convolutions take 40 times as long here, and are timed at width 16 only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from analysis.benchmark.measuring import in_turn, markdown, member_bytes, ratios, times
from vfljax.models import BOTTOMS
from vfljax.sweep import batch_layout, programs
from vfljax.types import PyTree

WIDTHS = (16, 64)
REFERENCE = "PyTorch"
HEADER = ("width", "form", "ms per trial and step (median; range)", "to PyTorch's")
FORMS = (("matmul", "map"), ("matmul", "vmap"), ("xla", "vmap"), ("xla", "map"))


class Images(NamedTuple):
    """The sizes of images and network; the defaults are those of the suite."""

    batch: int = 64
    image: tuple[int, int, int] = (32, 16, 3)
    classes: int = 10
    steps: int = 4  # of each call
    blocks: tuple[int, ...] = (2, 2, 2, 2)  # ResNet-18's


IMAGES = Images()


def ours(
    implementation: str, mode: str, width: int, trials: int, images: Images = IMAGES
) -> tuple[Callable[[], float], int]:
    """Returns ``measure() -> milliseconds per trial and step`` of a compiled program, and bytes per trial.

    Args:
      implementation: as for ``network``.
      mode: "map" or "vmap".
      width: of the ResNet.
      trials: trials of the program.
      images: the sizes.
    """
    train, start = training_of(implementation, width, images)
    layout = batch_layout.layout(trials, 1 if mode == "map" else trials)
    program = programs.Program(train, layout)
    drawn = jax.jit(start)(jax.random.key(0))
    copies = jax.tree.map(lambda a: np.repeat(np.asarray(a)[None], trials, axis=0), drawn)
    variables = layout.pad(copies)
    jax.block_until_ready(program(variables, ()))

    def measure() -> float:
        began = time.perf_counter()
        jax.block_until_ready(program(variables, ()))
        return (time.perf_counter() - began) / (trials * images.steps) * 1e3

    return measure, member_bytes(program, variables)


def training_of(
    implementation: str, width: int, images: Images
) -> tuple[Callable[[PyTree, tuple[()]], PyTree], Callable[[Any], PyTree]]:
    """Returns ``train(variables, ())`` of one trial, which takes all steps, and ``start(key) -> variables``.

    Args:
      implementation: as for ``network``.
      width: of the ResNet.
      images: the sizes.
    """
    net = network(implementation, width, images)
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.random((images.batch, *images.image)), jnp.float32)
    y = jnp.asarray(rng.integers(images.classes, size=images.batch))
    optimizer = optax.sgd(0.1, momentum=0.9)

    def step(carry: PyTree, _: None) -> tuple[PyTree, None]:
        variables, state = carry

        def loss(params: PyTree) -> Any:
            now = {**variables, "params": params}
            logits, moved = net.apply(now, x, train=True, mutable=["batch_stats"])
            each = optax.softmax_cross_entropy_with_integer_labels(logits, y)
            return jnp.mean(each), moved

        gradient, moved = jax.grad(loss, has_aux=True)(variables["params"])
        update, state = optimizer.update(gradient, state)
        params = optax.apply_updates(variables["params"], update)
        return ({"params": params, **moved}, state), None

    def train(variables: PyTree, _: tuple[()]) -> PyTree:
        carry = (variables, optimizer.init(variables["params"]))
        return jax.lax.scan(step, carry, None, length=images.steps)[0][0]

    def start(key: Any) -> PyTree:
        return {name: a for name, a in net.init(key, x).items() if name != "layers"}

    return train, start


def network(implementation: str, width: int, images: Images) -> Any:
    """Returns the bottom model.

    Args:
      implementation: "matmul" or "xla", in float32, or "pallas", in bfloat16.
      width: of its first stage.
      images: the sizes.
    """
    options = {"out": images.classes, "width": width, "blocks": images.blocks}
    dtype = jnp.bfloat16 if implementation == "pallas" else None
    return BOTTOMS["resnet18"](**options, convolution=implementation, dtype=dtype)


def measured(
    repeats: int,
    trials: int,
    images: Images = IMAGES,
    reference: Callable[[int], Callable[[], float]] | None = None,
) -> tuple[dict[str, Any], str]:
    """Returns the figures and the table of every form at each width; the forms are timed in turn.

    Args:
      repeats: how many times each form is timed.
      trials: trials of each program.
      images: the sizes.
      reference: ``reference(width)`` times what ratios are relative to; see ``analysis.benchmark.peers``.
    """
    rows, cells = [], []
    for width in WIDTHS:
        slow = jax.default_backend() == "cpu" and width > min(WIDTHS)
        cases = {
            f"{how} {mode}": ours(how, mode, width, trials, images)[0]
            for how, mode in FORMS
            if not (slow and how == "xla")
        }
        if reference is not None:
            cases[REFERENCE] = reference(width)
        every = in_turn(cases, repeats)
        for form, milliseconds in every.items():
            spread, ratio = times(milliseconds), None
            if reference is not None:
                ratio = ratios(milliseconds, every[REFERENCE]).median
            figures = {"milliseconds": spread.median, "all": milliseconds, "ratio": ratio}
            rows.append({"width": width, "form": form, **figures})
            shown = "-" if ratio is None else f"{ratio:.2f}"
            cells.append([str(width), form, spread.shown(",.1f"), shown])
    return {"trials": trials, "rows": rows}, markdown(HEADER, cells)
