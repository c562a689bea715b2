r"""Sun et al. 2022, Figure 7: the cost of privacy, every layer of both parties, Criteo.

    python -m launch.sweep --config=configs/papers/sun_figure7.py:criteo-sample --workdir=runs/sun_figure7 \
        --config.data.dir=FILE

Appendix B: (a) undefended, (b, c, d) alpha_d = .002, .003, .005, (e, f) Marvell (s = 8) and with .002, (g, h)
label DP (epsilon = 2) and with .002. The passive party owns the first five of eight layers, the label
party the last three, which are diagnostics. Layers as in Figure 2. 5 seeds.

Variants: "criteo" (the published setting), "criteo-sample" (the first 10,000 rows; minutes on 2 cores),
"criteo-sample-brief", "criteo-sample-long"; see ``configs/papers/sun.py``, also for what the first one
needs: Kaggle's train.txt, prepared, and 215 hours on 2 cores or a GPU.
"""

from configs.papers import sun

MARVELL = {"marvell": {"power": 8.0}}
LABEL_DP = {"label_dp": {"epsilon": 2.0}}  # first: later defenses see the noisy labels alone


def get_config(variant=""):
    return sun.config(
        "sun/figure7",
        variant,
        {
            "undefended": {},
            "dcor": {"dcor": {"alpha": (0.002, 0.003, 0.005)}},
            "marvell": MARVELL,
            "dcor+marvell": {"dcor": {"alpha": 0.002}, **MARVELL},
            "label_dp": LABEL_DP,
            "label_dp+dcor": {**LABEL_DP, "dcor": {"alpha": 0.002}},
        },
        {},
        attacks=sun.BY_LAYER,
    )
