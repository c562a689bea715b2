r"""Sun et al. 2022, Figure 2: the spectral attack on every layer, Criteo.

    python -m launch.sweep --config=configs/papers/sun_figure2.py:criteo-sample --workdir=runs/sun_figure2 \
        --config.data.dir=FILE

Section 6.2: (a) undefended, (b) Marvell at s = 8, (c) label DP at epsilon = .5. Layers are those of the
trained model in evaluation mode (published: over the course of training); those of the label party
are diagnostics. 5 seeds.

Variants: "criteo" (the published setting), "criteo-sample" (the first 10,000 rows; minutes on 2 cores),
"criteo-sample-brief", "criteo-sample-long"; see ``configs/papers/sun.py``, also for what the first one
needs: Kaggle's train.txt, prepared, and 35 hours on 2 cores or a GPU.
"""

from configs.papers import sun


def get_config(variant=""):
    return sun.config(
        "sun/figure2",
        variant,
        {
            "undefended": {},
            "marvell": {"marvell": {"power": 8.0}},
            "label_dp": {"label_dp": {"epsilon": 0.5}},
        },
        {},
        attacks=sun.BY_LAYER,
    )
