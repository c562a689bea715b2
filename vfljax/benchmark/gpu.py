"""What a GPU makes of many trials at once: a suite of ``vfljax benchmark``.

It times 1,024 trials of the grid suite's structure and 16 of ResNet-18 (``convolutions``), whose share of the
device's matrix rate has an aim, and compares XLA's convolutions, which over trials become grouped ones ("xla
vmap"), with matrix products ("matmul vmap"), and both with trials one after the other ("map").

Useful operations of a step are three times those of the forward pass: 6 a weight and row of a linear
layer. The matrix rate is measured on the same devices, with the same precision of products. On a machine
without a GPU the suite runs at sizes that take seconds, and its first line tells so.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax.benchmark import convolutions, jaxprs
from vfljax.benchmark.convolutions import Images
from vfljax.benchmark.grid_speed import COLUMNS, GRID
from vfljax.benchmark.measuring import (
    TimedStep,
    in_turn,
    markdown,
    matmul_rate,
    peak_memory,
    ratios,
    times,
)
from vfljax.models import MLP
from vfljax.types import Spec

GROUPED, PRODUCTS = "xla vmap", "matmul vmap"
FORMS = (("xla", "vmap"), ("matmul", "vmap"), ("xla", "map"), ("matmul", "map"))
LEAST_SHARE = 0.4  # the aim
HEADER = (
    *("what", "us a setting and step (median; range)", "useful GFLOP/s", "of the matrix rate"),
    "peak so far, GiB",
)


class Sizes(NamedTuple):
    """How much is trained; by default what the aims are about."""

    settings: int = 1024  # tabular
    spec: Spec = GRID
    networks: int = 16  # settings of a ResNet
    width: int = 64  # its
    images: Images = convolutions.IMAGES
    matrix: int = 8192  # rows and columns of the products that give the matrix rate


SMALL = Sizes(
    settings=8,
    spec=dataclasses.replace(
        GRID, bottoms=(MLP((8,), 4),) * 2, top=MLP((8,), 10), num_rows=64, batch_size=16
    ),
    networks=2,
    width=4,
    images=Images(batch=4, image=(8, 4, 3), steps=1, blocks=(1,)),
    matrix=256,
)


class Measurement(NamedTuple):
    """A row of the table."""

    name: str
    microseconds: tuple[float, ...]  # a setting and step, each turn; () where memory is exhausted
    operations: float  # useful ones of a setting's step
    peak: float | None  # GiB of the device so far, None for another process's

    def share(self, rate: float) -> float:
        """Of the matrix ``rate`` in GFLOP/s, at the median time."""
        return self.operations / times(self.microseconds).median / 1e3 / rate


def measured(turns: int, sizes: Sizes | None = None) -> tuple[dict[str, Any], str]:
    """Returns figures and table.

    Args:
      turns: in which everything is measured.
      sizes: what is trained; None for the aims' on a GPU, and for small ones elsewhere.
    """
    gpu = jax.default_backend() != "cpu"
    sizes = sizes or (Sizes() if gpu else SMALL)
    tabular, networks = _tabular(sizes, turns), _networks(sizes, turns)
    rate = matmul_rate(sizes.matrix)
    lines = [tabular, *networks]
    config: Any = jax.config
    precision = config.jax_default_matmul_precision or "the backend's default"
    note = (
        f"Matrix rate: {rate:,.0f} GFLOP/s, products of {sizes.matrix:,} x {sizes.matrix:,} float32 "
        f"matrices, precision {precision}."
    )
    result = {
        "gpu": gpu,
        "settings": sizes.settings,
        "networks": sizes.networks,
        "width": sizes.width,
        "matmul_gflops": rate,
        "precision": precision,
        "rows": [{**line._asdict(), **_figures(line, rate)} for line in lines],
        "notes": [note],
    }
    ending = [f"- {line}" for line in (*_verdicts(networks, rate), note)]
    table = markdown(HEADER, [_row(line, rate) for line in lines])
    return result, "\n".join([_device(gpu), "", table, "", *ending])


def _device(gpu: bool) -> str:
    first, count = jax.devices()[0], jax.device_count()
    if not gpu:
        return (
            f"This is no GPU: {count} {first.platform} device(s), sizes of seconds. The figures say "
            "nothing about the aims."
        )
    memory = (first.memory_stats() or {}).get("bytes_limit")
    text = f", {memory / 2**30:.0f} GiB of memory for JAX on each" if memory else ""
    return f"{count} {first.device_kind}{text}."


def _tabular(sizes: Sizes, turns: int) -> Measurement:
    """Many tabular trials of vfljax."""
    case = TimedStep(sizes.spec, sizes.settings, COLUMNS, {}, None)
    microseconds = tuple(case.measure(1.0) for _ in range(turns))
    operations = 6.0 * case.weights * sizes.spec.batch_size
    name = f"{sizes.settings:,} tabular settings"
    return Measurement(name, microseconds, operations, case.memory)


def _networks(sizes: Sizes, turns: int) -> list[Measurement]:
    """Every form of the ResNet's settings, in turn."""
    operations = 3.0 * forward_operations(sizes.width, sizes.images)
    measures, peaks, too_large = {}, {}, []
    for implementation, mode in FORMS:
        form = f"{implementation} {mode}"
        try:
            measures[form] = convolutions.ours(
                implementation, mode, sizes.width, sizes.networks, sizes.images
            )
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            too_large.append(form)
            continue
        peaks[form] = peak_memory()
    lines = [
        Measurement(form, tuple(1e3 * each for each in milliseconds), operations, peaks[form])
        for form, milliseconds in in_turn(measures, turns).items()
    ]
    return [*lines, *(Measurement(form, (), operations, None) for form in too_large)]


def forward_operations(width: int, images: Images) -> int:
    """Returns multiplications and additions of a batch's forward pass, in convolutions and products.

    Args:
      width: of the ResNet.
      images: the sizes.
    """
    net = convolutions.network("xla", width, images)
    x = jax.ShapeDtypeStruct((images.batch, *images.image), jnp.float32)
    variables = jax.eval_shape(net.init, jax.random.key(0), x)
    total = 0
    for *_, equation in jaxprs.equations(jax.make_jaxpr(net.apply)(variables, x).jaxpr):
        variables: list[Any] = [*equation.invars, *equation.outvars]
        shapes = [v.aval.shape for v in variables]
        if equation.primitive.name == "conv_general_dilated":
            outputs = equation.params["dimension_numbers"].rhs_spec[0]
            total += 2 * math.prod(shapes[-1]) * math.prod(shapes[1]) // shapes[1][outputs]
        elif equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            total += 2 * math.prod(shapes[-1]) * math.prod(shapes[0][a] for a in contracted)
    return total


def _figures(line: Measurement, rate: float) -> dict[str, Any]:
    """Returns what the JSON has of a row besides its fields."""
    if not line.microseconds:
        return {"exhausts_memory": True}
    share = line.share(rate)
    return {**times(line.microseconds)._asdict(), "useful_gflops": share * rate, "share": share}


def _row(line: Measurement, rate: float) -> list[str]:
    forms = {GROUPED: "grouped convolutions", PRODUCTS: "matrix products"}
    name = f"{line.name} ({forms[line.name]})" if line.name in forms else line.name
    if not line.microseconds:
        return [name, "exhausts the memory", "", "", ""]
    share = line.share(rate)
    peak = "" if line.peak is None else f"{line.peak:.2f}"
    spread = times(line.microseconds).shown(",.2f")
    return [name, spread, f"{share * rate:,.1f}", f"{share:.0%}", peak]


def _verdicts(networks: list[Measurement], rate: float) -> list[str]:
    """The figure that has an aim, and grouped convolutions against products."""
    lines = []
    timed = {line.name: line for line in networks if line.microseconds}
    if timed:
        best = max(timed.values(), key=lambda line: line.share(rate))
        lines.append(
            f"The fastest form of the ResNet's settings, {best.name}, reaches {best.share(rate):.0%} of "
            f"the matrix rate; the aim is at least {LEAST_SHARE:.0%}."
        )
    if GROUPED in timed and PRODUCTS in timed:
        ratio = ratios(timed[PRODUCTS].microseconds, timed[GROUPED].microseconds).shown(".2f")
        lines.append(f"Products take {ratio} times as long as grouped convolutions.")
    return lines
