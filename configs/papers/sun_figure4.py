r"""Sun et al. 2022, Figure 4: every layer under dCor, alone and with Marvell, Criteo.

    python -m launch.sweep --config=configs/papers/sun_figure4.py:criteo-sample --workdir=runs/sun_figure4 \
        --config.data.dir=FILE

Section 8: (a) alpha_d = .003, (b) .005, (c) Marvell (s = 8) with .002, (d) with .005; the undefended model
is trained too. Layers as in Figure 2. 5 seeds.

Variants: "criteo" (the published setting), "criteo-sample" (the first 10,000 rows; minutes on 2 cores),
"criteo-sample-brief", "criteo-sample-long"; see ``configs/papers/sun.py``, also for what the first one
needs: Kaggle's train.txt, prepared, and 155 hours on 2 cores or a GPU.
"""

from configs.papers import sun

MARVELL = {"marvell": {"power": 8.0}}


def get_config(variant=""):
    return sun.config(
        "sun/figure4",
        variant,
        {
            "undefended": {},
            "dcor": {"dcor": {"alpha": (0.003, 0.005)}},
            "dcor+marvell": {"dcor": {"alpha": (0.002, 0.005)}, **MARVELL},
        },
        {},
        attacks=sun.BY_LAYER,
    )
