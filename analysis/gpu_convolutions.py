"""Time convolutions over trials in forms that the GPU suite leaves out: TF32, and networks of width 16.

    python -m analysis.gpu_convolutions

It prints the rate of 8,192 x 8,192 products in TF32, and for each form the milliseconds of a setting and step
of 16 ResNet-18, three times; `analysis/gpu.md` has the figures. Compiling takes up to a minute a form.
"""

from __future__ import annotations

import jax

import vfljax
from vfljax.benchmark import convolutions, gpu, measuring

# products' precision, then form and width
CASES = (
    *(("tensorfloat32", form, 64) for form in (("xla", "map"), ("matmul", "vmap"))),
    *(("float32", form, 16) for form in (("xla", "map"), ("matmul", "vmap"), ("xla", "vmap"))),
)


def main() -> None:
    """Measure and print every case."""
    vfljax.use_this_machine()
    sizes = gpu.Sizes()
    with jax.default_matmul_precision("tensorfloat32"):
        print(f"products in TF32: {measuring.matmul_rate(sizes.matrix):,.0f} GFLOP/s")
    for precision, (how, mode), width in CASES:
        with jax.default_matmul_precision(precision):
            measure, _ = convolutions.ours(how, mode, width, sizes.networks, sizes.images)
            spread = measuring.times([measure() for _ in range(3)])
        print(f"{precision}, width {width}, {how} {mode}: {spread.shown('.2f')} ms", flush=True)


if __name__ == "__main__":
    main()
