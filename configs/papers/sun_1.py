r"""Sun et al. 2022, Table 1: the cost of privacy, test AUC on Criteo by the label party's model.

    python -m launch.sweep --config=configs/papers/sun_1.py:criteo-sample --workdir=runs/sun_1 \
        --config.data.dir=FILE

Appendix B: dCor's weight alpha_d from .003 to .04, each with a label party of one layer ("small") and of
three ("large"). Undefended models of both sizes are trained too. 60 settings: 5 seeds.

Variants: "criteo" (the published setting), "criteo-sample" (the first 10,000 rows; minutes on 2 cores),
"criteo-sample-brief", "criteo-sample-long"; see ``configs/papers/sun.py``, also for what the first one
needs: Kaggle's train.txt, prepared, and 380 hours on 2 cores or a GPU.
"""

from configs.papers import sun

ALPHAS = (0.003, 0.005, 0.02, 0.03, 0.04)
ONE_LAYER = {"model": {"top_hidden": ()}}


def get_config(variant=""):
    return sun.config(
        "sun/1",
        variant,
        {
            "undefended_small": ONE_LAYER,
            "undefended_large": {},
            "small": {**ONE_LAYER, "dcor": {"alpha": ALPHAS}},
            "large": {"dcor": {"alpha": ALPHAS}},
        },
        {
            "arms": {"small": "dcor", "large": "dcor"},
            # facts of one method's settings
            "setting": {
                "small": {"label_party_model": "small", "label_party_layers": 1},
                "large": {"label_party_model": "large", "label_party_layers": 3},
            },
        },
    )
