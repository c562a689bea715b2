"""Measures how fast a GPU trains many trials at once: a suite of ``python -m launch.benchmark``.

It times 1,024 trials of the grid suite's structure: as a sweep runs them, without the time between calls,
with products of lower precision, and beside eager PyTorch. For 16 trials of ResNet-18 (``convolutions``), it
compares XLA's convolutions, which over trials become grouped ones ("xla vmap"), with matrix products ("matmul
vmap"), and both with trials one after the other ("map"); their aim is a share of the device's matrix rate.
Kernels in bfloat16 ("pallas vmap") are timed where the device has them; their aim is a rate.
Attacks are timed on as many trials as are trained (``attack_speed``).
The memory of each program is counted before it runs (``jaxprs``), even without a GPU at the aims' sizes.

Useful operations of a step are three times those of the forward pass: 6 per weight and row of a linear
layer. The matrix rate is measured on the same devices, with the same precision of products. On a machine
without a GPU the suite runs at sizes that take seconds, and its first line says so.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from analysis.benchmark import attack_speed, convolutions, jaxprs
from analysis.benchmark.convolutions import Images
from analysis.benchmark.grid_speed import COLUMNS, GRID
from analysis.benchmark.measuring import (
    TimedStep,
    epoch_shapes,
    fitting_members,
    in_turn,
    markdown,
    matmul_rate,
    member_bytes,
    peak_memory,
    ratios,
    times,
)
from vfljax import machine
from vfljax.federation import training
from vfljax.models import MLP
from vfljax.models.convolution import LEAST_CAPABILITY
from vfljax.types import Spec

GROUPED, PRODUCTS, KERNELS = "xla vmap", "matmul vmap", "pallas vmap"
FORMS = (("xla", "vmap"), ("matmul", "vmap"), ("pallas", "vmap"), ("xla", "map"), ("matmul", "map"))
OURS, QUEUED, EAGER = "float32", "float32, all epochs queued", "eager PyTorch"
# precision of products: by JAX's default, and by ``Spec.precision`` of the networks
PRECISIONS = {"TF32": ("tensorfloat32", "float32"), "bfloat16": ("float32", "bfloat16")}
FORM = {
    OURS: "tabular trials, as a sweep runs them",
    GROUPED: "grouped convolutions",
    PRODUCTS: "matrix products",
    KERNELS: "kernels in bfloat16",
}
LEAST_SHARE, MOST_BETWEEN, LEAST_OF_EAGER = 0.4, 0.05, 100  # the aims
LEAST_RATE = 150_000  # GFLOP/s, the aim of kernels in bfloat16
TIME, USEFUL = "µs per trial and step (median; range)", "useful GFLOP/s"
HEADER = ("what", TIME, USEFUL, "of the matrix rate", "peak so far, GiB")
MEMORY = ("program", "members", "counted, GB", "by XLA, GB", "members that fit a device")


class Sizes(NamedTuple):
    """The sizes of what is trained; the defaults are those of the aims."""

    trials: int = 1024  # tabular trials
    spec: Spec = dataclasses.replace(GRID, epochs=8)
    networks: int = 16  # trials of the ResNet
    width: int = 64  # of the ResNet
    images: Images = convolutions.IMAGES
    matrix: int = 8192  # rows and columns of the products that give the matrix rate
    exchange: attack_speed.Shape = attack_speed.Shape()  # of the trials that are attacked


SMALL = Sizes(
    trials=8,
    spec=dataclasses.replace(
        GRID, bottoms=(MLP((8,), 4),) * 2, top=MLP((8,), 10), num_rows=64, batch_size=16
    ),
    networks=2,
    width=4,
    images=Images(batch=4, image=(8, 4, 3), steps=1, blocks=(1,)),
    matrix=256,
    exchange=attack_speed.Shape(rows=96, epochs=2, columns=4),
)


class Measurement(NamedTuple):
    """A row of the table."""

    name: str
    microseconds: tuple[float, ...]  # per trial and step, of each turn; () if memory is exhausted
    operations: float  # useful operations of a trial's step
    peak: float | None  # GiB of the device so far; None for a program of another process

    def share(self, rate: float) -> float:
        """Returns the useful operations, at the median time, as a share of the matrix ``rate`` in GFLOP/s."""
        return self.operations / times(self.microseconds).median / 1e3 / rate


def measured(turns: int, eager: Any, sizes: Sizes | None = None) -> tuple[dict[str, Any], str]:
    """Returns the figures and the text of the suite.

    Args:
      turns: how many times everything is timed.
      eager: gives PyTorch's times, as ``analysis.benchmark.peers.comparison.eager``.
      sizes: None for those of the aims on a GPU, and for small ones elsewhere.
    """
    gpu = jax.default_backend() != "cpu"
    sizes = sizes or (Sizes() if gpu else SMALL)
    tabular, about = _tabular(sizes, turns, eager)
    networks, needed = _networks(sizes, turns)
    rate = matmul_rate(sizes.matrix)
    lines = [*tabular, *networks]
    config: Any = jax.config
    precision = config.jax_default_matmul_precision or "the backend's default"
    note = (
        f"Matrix rate: {rate:,.0f} GFLOP/s, products of {sizes.matrix:,} x {sizes.matrix:,} float32 "
        f"matrices, precision {precision}."
    )
    attacked, attacks = attack_speed.measured(sizes.trials, turns, sizes.exchange)
    memory, held = _memory(sizes, {OURS: about.pop("bytes_a_trial"), **needed})
    result = {
        "gpu": gpu,
        "matmul_gflops": rate,
        "precision": precision,
        "rows": [{**line._asdict(), **_figures(line, rate)} for line in lines],
        "memory": memory,
        "attacks": attacked,
        **about,
    }
    verdicts = (*_tabular_verdicts(tabular, about), *_verdicts(networks, rate), note)
    ending = [f"- {line}" for line in verdicts]
    table = markdown(HEADER, [_row(line, rate) for line in lines])
    return result, "\n".join([_device(gpu), "", table, "", attacks, "", held, "", *ending])


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


def _tabular(sizes: Sizes, turns: int, eager: Any) -> tuple[list[Measurement], dict[str, Any]]:
    """Times many tabular trials in every way, in turn. Returns rows, and further entries of the JSON."""
    spec, count = sizes.spec, sizes.trials
    cases = {OURS: TimedStep(spec, count, COLUMNS, {}, None)}
    for name, (products, networks) in PRECISIONS.items():
        rounded = dataclasses.replace(spec, precision=networks)
        with jax.default_matmul_precision(products):
            cases[name] = TimedStep(rounded, count, COLUMNS, {}, None)
    measures: Any = {n: functools.partial(case.measure, 1.0) for n, case in cases.items()}
    measures[QUEUED] = functools.partial(cases[OURS].measure, 1.0, True)
    with eager(spec, COLUMNS, count) as (measure, note):
        every = in_turn({**measures, **({EAGER: measure} if measure else {})}, turns)
    records = {name: case.train().record for name, case in cases.items()}
    last = {  # loss and accuracy of the last epoch
        name: np.asarray([r.loss[:count, -1], r.accuracy[:count, -1]])
        for name, r in records.items()
    }
    ours = cases[OURS]
    about = {
        "bytes_a_trial": member_bytes(ours.program, (ours.member, ours.state)),
        "between_calls": ratios(every[QUEUED], every[OURS])._asdict(),
        "accuracy": float(last[OURS][1].mean()),
        "changes": {
            name: {"loss": float(np.abs(loss).max()), "accuracy": float(accuracy.mean())}
            for name, (loss, accuracy) in ((n, last[n] - last[OURS]) for n in PRECISIONS)
        },
        "eager": note,
    }
    operations = 6.0 * ours.weights * spec.batch_size
    lines = [
        Measurement(name, tuple(each), operations, cases[name].memory if name in cases else None)
        for name, each in every.items()
    ]
    return lines, about


def _tabular_verdicts(lines: list[Measurement], about: dict[str, Any]) -> list[str]:
    """Returns sentences on the time between calls, on what precision changes, and on eager PyTorch."""
    every = {line.name: line.microseconds for line in lines}
    # the turn with the largest ratio has the least time between calls
    between, most, least = (1 - about["between_calls"][k] for k in ("median", "lowest", "highest"))
    eager = f"Eager PyTorch is left out: {about['eager']}"
    if EAGER in every:
        ratio = ratios(every[EAGER], every[OURS]).shown(",.1f")
        eager = f"Eager PyTorch takes {ratio} times as long as vfljax; the aim is at least {LEAST_OF_EAGER}."
    return [
        f"Time between calls takes {between:.1%} ({least:.1%} to {most:.1%}) of an epoch; the aim is below "
        f"{MOST_BETWEEN:.0%}.",
        *(
            f"{name} takes {ratios(every[name], every[OURS]).shown('.2f')} of float32's time; the last loss "
            f"of a trial differs by {change['loss']:.1g} at most, and training accuracy, "
            f"{about['accuracy']:.3f} in float32, by {change['accuracy']:+.4f} on average."
            for name, change in about["changes"].items()
        ),
        eager,
    ]


def _memory(sizes: Sizes, needed: dict[str, int]) -> tuple[list[dict[str, Any]], str]:
    """Returns the rows and the table of every program's memory, at the measured sizes and at those of the
    aims. ``needed`` has XLA's count of bytes per member at the measured sizes."""
    rows, cells = [], []
    for each in dict.fromkeys((sizes, Sizes())):
        for name, (members, counted) in _counted(each).items():
            by_xla = needed.get(name) if each is sizes else None
            fitting = fitting_members(by_xla) if by_xla else None
            figures = {"counted": counted, "bytes_a_member": by_xla, "fitting": fitting}
            rows.append({"name": name, "members": members, **figures})
            shown = [f"{counted / 1e9:.2g}", f"{members * by_xla / 1e9:.2g}" if by_xla else "-"]
            cells.append([_shown(name), f"{members:,}", *shown, f"{fitting:,}" if fitting else "-"])
    return rows, markdown(MEMORY, cells)


def _forms() -> list[tuple[str, str]]:
    """Returns ``FORMS``, without kernels where this device has none."""
    kernels = machine.capability() >= LEAST_CAPABILITY
    return [form for form in FORMS if kernels or form[0] != "pallas"]


def _counted(sizes: Sizes) -> dict[str, tuple[int, int]]:
    """Returns the number of members of each program and the bytes of its arrays, without running it."""

    def live(function: Callable[..., Any], *shapes: Any) -> int:
        return jaxprs.live_bytes(jax.make_jaxpr(function)(*shapes).jaxpr)

    run = jax.vmap(training.make_run(sizes.spec), in_axes=(0, None))
    shapes = epoch_shapes(sizes.spec, sizes.trials, COLUMNS, {})
    found = {OURS: (sizes.trials, live(run, *shapes))}
    keys = jax.random.split(jax.random.key(0), sizes.networks)
    for implementation, mode in _forms():
        train, start = convolutions.training_of(implementation, sizes.width, sizes.images)
        alone = functools.partial(lambda train, variables: train(variables, ()), train)
        run = jax.vmap(alone) if mode == "vmap" else functools.partial(jax.lax.map, alone)
        starts = jax.eval_shape(jax.vmap(start), keys)
        found[f"{implementation} {mode}"] = sizes.networks, live(run, starts)
    return found


def _networks(sizes: Sizes, turns: int) -> tuple[list[Measurement], dict[str, int]]:
    """Times every form of the ResNet's trials in turn. Returns rows, and the bytes per trial of each form."""
    operations = 3.0 * forward_operations(sizes.width, sizes.images)
    measures, needed, peaks, too_large = {}, {}, {}, []
    for implementation, mode in _forms():
        form = f"{implementation} {mode}"
        try:
            measures[form], needed[form] = convolutions.ours(
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
    return [*lines, *(Measurement(form, (), operations, None) for form in too_large)], needed


def forward_operations(width: int, images: Images) -> int:
    """Returns the number of multiplications and additions of convolutions and products in a forward pass.

    Args:
      width: of the ResNet.
      images: the sizes.
    """
    net = convolutions.network("xla", width, images)
    x = jax.ShapeDtypeStruct((images.batch, *images.image), jnp.float32)
    variables = jax.eval_shape(net.init, jax.random.key(0), x)
    total = 0
    for *_, equation in jaxprs.equations(jax.make_jaxpr(net.apply)(variables, x).jaxpr):
        arrays: list[Any] = [*equation.invars, *equation.outvars]
        shapes = [array.aval.shape for array in arrays]
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


def _shown(name: str) -> str:
    return f"{name} ({FORM[name]})" if name in FORM else name


def _row(line: Measurement, rate: float) -> list[str]:
    name = _shown(line.name)
    if not line.microseconds:
        return [name, "exhausts the memory", "", "", ""]
    share = line.share(rate)
    peak = "" if line.peak is None else f"{line.peak:.2f}"
    spread = times(line.microseconds).shown(",.2f")
    return [name, spread, f"{share * rate:,.1f}", f"{share:.0%}", peak]


def _verdicts(networks: list[Measurement], rate: float) -> list[str]:
    """Returns sentences on the figure that has an aim, and on grouped convolutions against products."""
    lines = []
    timed = {line.name: line for line in networks if line.microseconds}
    exact = [line for name, line in timed.items() if name != KERNELS]
    if exact:  # the matrix rate is that of float32
        best = max(exact, key=lambda line: line.share(rate))
        lines.append(
            f"The fastest form of the ResNet's trials, {best.name}, reaches {best.share(rate):.0%} of "
            f"the matrix rate; the aim is at least {LEAST_SHARE:.0%}."
        )
    if GROUPED in timed and PRODUCTS in timed:
        ratio = ratios(timed[PRODUCTS].microseconds, timed[GROUPED].microseconds).shown(".2f")
        lines.append(f"Products take {ratio} times as long as grouped convolutions.")
    if KERNELS in timed:
        reached = timed[KERNELS].share(rate) * rate
        lines.append(
            f"Kernels in bfloat16 reach {reached / 1e3:,.1f} TFLOP/s; the aim is at least "
            f"{LEAST_RATE / 1e3:.0f}."
        )
    return lines
