r"""Sun et al. 2022, Figure 3: leak AUC is bounded by test AUC, Criteo.

    python -m launch.sweep --config=configs/papers/sun_figure3.py:criteo-sample --workdir=runs/sun_figure3 \
        --config.data.dir=FILE

Section 6.2: test AUC and the leak AUC of the cut under (a, b) Marvell by s and (c, d) label DP by epsilon.
The text names s = 8 and epsilon = .5 and 2 alone; the other values here are ours. 5 seeds.

Variants: "criteo" (the published setting), "criteo-sample" (the first 10,000 rows; minutes on 2 cores),
"criteo-sample-brief", "criteo-sample-long"; see ``configs/papers/sun.py``, also for what the first one
needs: Kaggle's train.txt, prepared, and 115 hours on 2 cores or a GPU.
"""

from configs.papers import sun

POWERS = (1.0, 2.0, 4.0, 8.0, 16.0)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
GRID = {
    "undefended": {},
    "marvell": {"marvell": {"power": POWERS}},
    "label_dp": {"label_dp": {"epsilon": EPSILONS}},
}


def get_config(variant=""):
    return sun.config("sun/figure3", variant, GRID, {})
