"""100 settings of 50,000 rows and cut width 64: what attacks on a large sweep cost in time and memory.

    python -m launch.sweep --config=configs/large_synthetic.py --workdir=runs/large
    /usr/bin/time -v python -m launch.attack --workdir=runs/large \\
        --attacks=norm,mean,hint,spectral,residual,probe

The first trains one epoch a setting and stores the exchange, 6.1 GB, under `--workdir`; two minutes on 2
cores. The second attacks it. Synthetic rows: nothing here says anything about leakage.

    /usr/bin/time -v python -m launch.sweep --config=configs/large_synthetic.py:million \\
        --workdir=runs/million --config.data.resident_gb=0

trains 20 settings of 1,000,000 rows and 40 columns, recording 2,000 rows: with rows that stay on the host, and
without the last flag with rows on the device.
"""

from vfljax.config import ordered

SCALES = tuple(1e-6 * 10 ** (i / 16) for i in range(49))


MILLION = {
    "name": "million_synthetic",
    "notes": ("Three epochs on synthetic rows: for time and memory only.",),
    "seeds": 2,
    "data": {
        "name": "synthetic",
        "options": {"rows": 1_004_000, "columns": 40},
        "train": 1_000_000,
        "validation": 2_000,
        "test": 2_000,
    },
    "parties": {"passive": 1, "label_features": True},
    "model": {"hidden": (64, 32), "cut": 16, "top": "mlp"},
    "training": {
        "epochs": 3,
        "batch_size": 1_000,
        "learning_rate": 0.01,
        "record": (-1,),
        "record_rows": 2_000,
    },
    "grid": {"noise": {"noise": {"scale": SCALES[:40:4]}}},
    "attacks": {},
}


def get_config(variant="50000"):
    if variant == "million":
        return ordered(MILLION)
    return ordered(
        {
            "name": "large_synthetic",
            "notes": ("One epoch on synthetic rows: for time and memory only.",),
            "seeds": 2,
            "data": {"name": "synthetic", "train": 50_000, "validation": 1_000, "test": 1_000},
            "parties": {"passive": 1, "label_features": False},
            "model": {"hidden": (32,), "cut": 64, "top": "mlp"},
            "training": {"epochs": 1, "batch_size": 1_000, "learning_rate": 0.01, "record": (-1,)},
            "grid": {"undefended": {}, "noise": {"noise": {"scale": SCALES}}},
            "attacks": {
                "mean": {"known": 40},
                "hint": {"known": 40, "count": 5},
                "spectral": {"whole": (False, True)},
                "probe": {"known": 40, "inputs": "both"},
            },
        }
    )
