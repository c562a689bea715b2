r"""Sun et al. 2022, the numbers that its text alone states, Criteo.

    python -m launch.sweep --config=configs/papers/sun_text.py:criteo-sample --workdir=runs/sun_text \
        --config.data.dir=FILE

Sections 1, 6.2 and 8: the spectral attack undefended, under Marvell (s = 8), label DP (epsilon = .5) and
dCor (alpha_d = .002, .003, .005). Of the text's "last two layers" the cut is attacked here, and both in
``sun_figure2``. What the text states of Avazu is a difference of Table 2, and that gradients reach an AUC
of "almost 1.0" is another paper's; the norm attack here shows whether they do. 5 seeds.

Variants: "criteo" (the published setting), "criteo-sample" (the first 10,000 rows; minutes on 2 cores),
"criteo-sample-brief", "criteo-sample-long"; see ``configs/papers/sun.py``, also for what the first one
needs: Kaggle's train.txt, prepared, and 140 hours on 2 cores or a GPU.
"""

from configs.papers import sun


def get_config(variant=""):
    return sun.config(
        "sun/text",
        variant,
        {
            "undefended": {},
            "marvell": {"marvell": {"power": 8.0}},
            "label_dp": {"label_dp": {"epsilon": 0.5}},
            "dcor_002": {"dcor": {"alpha": 0.002}},
            "dcor_003": {"dcor": {"alpha": 0.003}},
            "dcor_005": {"dcor": {"alpha": 0.005}},
        },
        {
            "arms": {
                "undefended": "none",
                "marvell": "marvell",
                "label_dp": "label_dp",
                "dcor_002": "dcor",
                "dcor_003": "dcor",
            },
            "attacks": sun.PRINTED,
            # facts of one method's settings: which layers are meant, and ranges of alpha_d it is in
            "setting": {
                "undefended": {"layers": "last two (incl. cut layer)"},
                "marvell": {"layers": "last two"},
                "label_dp": {"layers": "last two"},
                "dcor_002": {"alpha_d_min": 0.002, "alpha_d_max": 0.005},
                "dcor_003": {"alpha_d_any_of": [0.003, 0.005]},
            },
        },
    )
