"""The step of a convolutional bottom over trials, in each form: a suite of ``vfljax benchmark``.

One step of ResNet-18 (width 16 and the published 64, batch 64 of 32 x 16 x 3 images, CIFAR-10's half):
forward, cross entropy, backward, momentum SGD. Trials run as a sweep runs them: a program over all devices,
mapped one after the other ("map") or together ("vmap") on each. On a CPU XLA's own convolutions take 40 times
as long here and are timed at width 16 only.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax.models import BOTTOMS
from vfljax.sweep import batch_layout, programs
from vfljax.types import HostArray, PyTree

WIDTHS = (16, 64)
REFERENCE = "PyTorch"
FORMS = (("matmul", "map"), ("matmul", "vmap"), ("xla", "vmap"), ("xla", "map"))


class Images(NamedTuple):
    """The sizes; by default those of the suite."""

    batch: int = 64
    image: tuple[int, int, int] = (32, 16, 3)
    classes: int = 10
    steps: int = 4  # of each call
    blocks: tuple[int, ...] = (2, 2, 2, 2)  # ResNet-18's


IMAGES = Images()


def ours(
    implementation: str, mode: str, width: int, settings: int, images: Images = IMAGES
) -> Callable[[], float]:
    """``measure() -> milliseconds a setting and step`` of a compiled program of ``settings``."""
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

    layout = batch_layout.layout(settings, 1 if mode == "map" else settings)
    program = programs.Program(train, layout)
    start = dict(jax.jit(lambda key: net.init(key, x))(jax.random.key(0)))
    start.pop("layers", None)

    def stack(a: HostArray) -> HostArray:
        return np.repeat(np.asarray(a)[None], settings, axis=0)

    variables = layout.pad(jax.tree.map(stack, start))
    jax.block_until_ready(program(variables, ()))

    def measure() -> float:
        began = time.perf_counter()
        jax.block_until_ready(program(variables, ()))
        return (time.perf_counter() - began) / (settings * images.steps) * 1e3

    return measure


def network(implementation: str, width: int, images: Images) -> Any:
    """The bottom model."""
    return BOTTOMS["resnet18"](
        out=images.classes, width=width, convolution=implementation, blocks=images.blocks
    )


def measured(
    repeats: int,
    settings: int,
    images: Images = IMAGES,
    reference: Callable[[int], Callable[[], float]] | None = None,
) -> tuple[dict[str, Any], str]:
    """Figures and table of every form at each width, in turn.

    Args:
      repeats: times that each is measured.
      settings: trials of each program.
      images: the sizes.
      reference: ``reference(width)`` measures what ratios are to; see ``analysis.benchmark_peers``.
    """
    rows = []
    lines = [
        "| width | form | ms a setting and step (median; range) | to PyTorch's |",
        "|---" * 4 + "|",
    ]
    for width in WIDTHS:
        for form, times, ratio in _timed(width, repeats, settings, images, reference):
            median = statistics.median(times)
            rows.append(
                {"width": width, "form": form, "milliseconds": median, "all": times, "ratio": ratio}
            )
            spread = f"{min(times):,.1f} to {max(times):,.1f}"
            shown = "-" if ratio is None else f"{ratio:.2f}"
            lines.append(f"| {width} | {form} | {median:,.1f} ({spread}) | {shown} |")
    return {"settings": settings, "rows": rows}, "\n".join(lines)


def _timed(
    width: int,
    repeats: int,
    settings: int,
    images: Images,
    reference: Callable[[int], Callable[[], float]] | None,
) -> Iterator[tuple[str, list[float], float | None]]:
    # (form, every time, median of its ratios to PyTorch's time of the same turn)
    slow = jax.default_backend() == "cpu" and width > min(WIDTHS)
    cases = {
        f"{how} {mode}": ours(how, mode, width, settings, images)
        for how, mode in FORMS
        if not (slow and how == "xla")
    }
    if reference is not None:
        cases[REFERENCE] = reference(width)
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, measure in cases.items():
            times[name].append(measure())
    for name, measured_times in times.items():
        ratio = None
        if reference is not None:
            ratio = statistics.median(
                a / b for a, b in zip(measured_times, times[REFERENCE], strict=True)
            )
        yield name, measured_times, ratio
