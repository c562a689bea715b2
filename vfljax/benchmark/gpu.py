"""What a GPU makes of many trials at once: a suite of ``vfljax benchmark``.

It times 1,024 trials of the grid suite's structure: as a sweep runs them, without the time between calls, with
products of lower precision, and beside eager PyTorch. Of 16 trials of ResNet-18 (``convolutions``), whose share
of the device's matrix rate has an aim, it compares XLA's convolutions, which over trials become grouped ones
("xla vmap"), with matrix products ("matmul vmap"), and both with trials one after the other ("map"). The
memory of each program is counted before it runs (``jaxprs``), at the sizes of the aims without a GPU too.

Useful operations of a step are three times those of the forward pass: 6 a weight and row of a linear
layer. The matrix rate is measured on the same devices, with the same precision of products. On a machine
without a GPU the suite runs at sizes that take seconds, and its first line tells so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.benchmark import convolutions, jaxprs
from vfljax.benchmark.convolutions import Images
from vfljax.benchmark.grid_speed import COLUMNS, GRID
from vfljax.benchmark.measuring import (
    TimedStep,
    epoch_shapes,
    in_turn,
    markdown,
    matmul_rate,
    peak_memory,
    ratios,
    times,
)
from vfljax.federation import training
from vfljax.models import MLP
from vfljax.sweep import programs
from vfljax.types import Spec

GROUPED, PRODUCTS = "xla vmap", "matmul vmap"
FORMS = (("xla", "vmap"), ("matmul", "vmap"), ("xla", "map"), ("matmul", "map"))
OURS, QUEUED, EAGER = "float32", "float32, all epochs queued", "eager PyTorch"
# of products: JAX's setting, and the networks'
PRECISIONS = {"TF32": ("tensorfloat32", "float32"), "bfloat16": ("float32", "bfloat16")}
FORM = {
    OURS: "tabular settings, as a sweep runs them",
    GROUPED: "grouped convolutions",
    PRODUCTS: "matrix products",
}
LEAST_SHARE, MOST_BETWEEN, LEAST_OF_EAGER = 0.4, 0.05, 100  # the aims
NO_EAGER = contextlib.nullcontext((None, "A checkout has it: run this command in its folder."))
TIME, USEFUL = "us a setting and step (median; range)", "useful GFLOP/s"
HEADER = ("what", TIME, USEFUL, "of the matrix rate", "peak so far, GiB")
MEMORY = ("program", "members", "counted, GB", "by XLA, GB", "members that fit a device")


class Sizes(NamedTuple):
    """How much is trained; by default what the aims are about."""

    settings: int = 1024  # tabular
    spec: Spec = dataclasses.replace(GRID, epochs=8)
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


def measured(
    turns: int, sizes: Sizes | None = None, eager: Any = None
) -> tuple[dict[str, Any], str]:
    """Returns figures and tables.

    Args:
      turns: in which everything is measured.
      sizes: what is trained; None for the aims' on a GPU, and for small ones elsewhere.
      eager: gives PyTorch's times; see ``analysis.benchmark_peers.peers``. None: they are left out.
    """
    gpu = jax.default_backend() != "cpu"
    sizes = sizes or (Sizes() if gpu else SMALL)
    tabular, about = _tabular(sizes, turns, eager or (lambda *_: NO_EAGER))
    networks, needed = _networks(sizes, turns)
    rate = matmul_rate(sizes.matrix)
    lines = [*tabular, *networks]
    config: Any = jax.config
    precision = config.jax_default_matmul_precision or "the backend's default"
    note = (
        f"Matrix rate: {rate:,.0f} GFLOP/s, products of {sizes.matrix:,} x {sizes.matrix:,} float32 "
        f"matrices, precision {precision}."
    )
    memory, held = _memory(sizes, {OURS: about.pop("bytes_a_setting"), **needed})
    result = {
        "gpu": gpu,
        "matmul_gflops": rate,
        "precision": precision,
        "rows": [{**line._asdict(), **_figures(line, rate)} for line in lines],
        "memory": memory,
        **about,
    }
    verdicts = (*_tabular_verdicts(tabular, about), *_verdicts(networks, rate), note)
    ending = [f"- {line}" for line in verdicts]
    table = markdown(HEADER, [_row(line, rate) for line in lines])
    return result, "\n".join([_device(gpu), "", table, "", held, "", *ending])


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
    """Many tabular trials in every way, in turn; and what the JSON has of them besides."""
    spec, count = sizes.spec, sizes.settings
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
        "bytes_a_setting": ours.program.member_bytes((ours.member, ours.state)),
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
    """The time between calls, what precision changes, and eager PyTorch's time."""
    every = {line.name: line.microseconds for line in lines}
    # of the turns' ratios, the largest is the least time between calls
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
            f"of a setting differs by {change['loss']:.1g} at most, and training accuracy, "
            f"{about['accuracy']:.3f} in float32, by {change['accuracy']:+.4f} on average."
            for name, change in about["changes"].items()
        ),
        eager,
    ]


def _memory(sizes: Sizes, needed: dict[str, int]) -> tuple[list[dict[str, Any]], str]:
    """Rows and table of every program's memory: at the sizes that were measured, whose members ``needed`` so
    many bytes by XLA's count, and at the aims'."""
    rows, cells = [], []
    for each in dict.fromkeys((sizes, Sizes())):
        for name, (members, counted) in _counted(each).items():
            by_xla = needed.get(name) if each is sizes else None
            fitting = programs.fitting_members(by_xla) if by_xla else None
            figures = {"counted": counted, "bytes_a_member": by_xla, "fitting": fitting}
            rows.append({"name": name, "members": members, **figures})
            shown = [f"{counted / 1e9:.2g}", f"{members * by_xla / 1e9:.2g}" if by_xla else "-"]
            cells.append([_shown(name), f"{members:,}", *shown, f"{fitting:,}" if fitting else "-"])
    return rows, markdown(MEMORY, cells)


def _counted(sizes: Sizes) -> dict[str, tuple[int, int]]:
    """Each program's members, and the bytes that its arrays take, without running it."""

    def live(function: Callable[..., Any], *shapes: Any) -> int:
        return jaxprs.live_bytes(jax.make_jaxpr(function)(*shapes).jaxpr)

    run = jax.vmap(training.make_run(sizes.spec), in_axes=(0, None))
    shapes = epoch_shapes(sizes.spec, sizes.settings, COLUMNS, {})
    found = {OURS: (sizes.settings, live(run, *shapes))}
    keys = jax.random.split(jax.random.key(0), sizes.networks)
    for implementation, mode in FORMS:
        train, start = convolutions.training_of(implementation, sizes.width, sizes.images)
        alone = functools.partial(lambda train, variables: train(variables, ()), train)
        run = jax.vmap(alone) if mode == "vmap" else functools.partial(jax.lax.map, alone)
        starts = jax.eval_shape(jax.vmap(start), keys)
        found[f"{implementation} {mode}"] = sizes.networks, live(run, starts)
    return found


def _networks(sizes: Sizes, turns: int) -> tuple[list[Measurement], dict[str, int]]:
    """Every form of the ResNet's settings, in turn, and the bytes of a setting in each."""
    operations = 3.0 * forward_operations(sizes.width, sizes.images)
    measures, needed, peaks, too_large = {}, {}, {}, []
    for implementation, mode in FORMS:
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
