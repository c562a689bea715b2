r"""Sun et al. 2022, Figure 5: leak and test AUC by alpha_d, without and with Marvell, Criteo.

    python -m launch.sweep --config=configs/papers/sun_figure5.py:criteo-sample --workdir=runs/sun_figure5 \
        --config.data.dir=FILE

Section 8: (a, b) dCor alone, (c, d) with Marvell at s = 8. The text names alpha_d = 0, .002 and .005, and
Table 1 goes to .04; the values between are ours. 5 seeds.

Variants: "criteo" (the published setting), "criteo-sample" (the first 10,000 rows; minutes on 2 cores),
"criteo-sample-brief", "criteo-sample-long"; see ``configs/papers/sun.py``, also for what the first one
needs: Kaggle's train.txt, prepared, and 595 hours on 2 cores or a GPU.
"""

from configs.papers import sun

ALPHAS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.04)
MARVELL = {"marvell": {"power": 8.0}}


def get_config(variant=""):
    return sun.config(
        "sun/figure5",
        variant,
        {
            "undefended": {},
            "dcor": {"dcor": {"alpha": ALPHAS}},
            "marvell": MARVELL,
            "dcor+marvell": {"dcor": {"alpha": ALPHAS}, **MARVELL},
        },
        {},
    )
