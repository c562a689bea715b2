"""One small structure with 10 to 100,000 trials: how time and memory grow with a grid.

    /usr/bin/time -v python -m launch.sweep --config=configs/growth.py:1000 --workdir=runs/growth-1000

The variant is the number of trials, noise scales times seeds: 10, 100, 1000 (the default), 10000 or 100000,
which needs `--beyond_limits`. All share one program. Wisconsin breast cancer in two halves, an MLP of 16 hidden
units, 10 epochs; the norm attack on every trial. Time and memory by variant are in
`analysis/results/large_sweeps/README.md`.
"""

from vfljax.config import ordered

SIZES = {  # noise scales and seeds
    **{"10": (5, 2), "100": (25, 4), "1000": (100, 10)},
    **{"10000": (200, 50), "100000": (1000, 100)},
}


def get_config(variant="1000"):
    scales, seeds = SIZES[variant]
    return ordered(
        {
            "name": f"growth to {variant} trials",
            "notes": ("For time and memory: the scales are not chosen for what they defend.",),
            "seeds": seeds,
            "data": {"name": "breast_cancer", "train": 384, "validation": 85, "test": 100},
            "parties": {"passive": 1, "label_features": True},
            "model": {"hidden": (16,), "cut": 4, "top": "mlp", "top_hidden": (8,)},
            "training": {"epochs": 10, "batch_size": 32, "learning_rate": 0.05, "record": (-1,)},
            "grid": {
                "noise": {
                    "noise": {"scale": tuple(1e-5 * 10 ** (3 * i / scales) for i in range(scales))}
                }
            },
            "attacks": {"norm": {}},
        }
    )
