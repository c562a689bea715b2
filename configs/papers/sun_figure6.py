r"""Sun et al. 2022, Figure 6: attacks on gradients under Marvell and label DP, Criteo.

    python -m launch.sweep --config=configs/papers/sun_figure6.py:criteo-sample --workdir=runs/sun_figure6 \
        --config.data.dir=FILE

Appendix A: (a) the norm and (b) the spectral attack under Marvell by s, (c, d) under label DP by epsilon.
The values of s and epsilon are those of ``sun_figure3``, of which the text names 8, .5 and 2. 5 seeds.

Variants: "criteo" (the published setting), "criteo-sample" (the first 10,000 rows; minutes on 2 cores),
"criteo-sample-brief", "criteo-sample-long"; see ``configs/papers/sun.py``, also for what the first one
needs: Kaggle's train.txt, prepared, and 115 hours on 2 cores or a GPU.
"""

from configs.papers import sun
from configs.papers.sun_figure3 import GRID


def get_config(variant=""):
    return sun.config(
        "sun/figure6",
        variant,
        GRID,
        {},
        attacks={
            "norm": {},
            "spectral": {"signal": "gradients", "scores": ("signed", "absolute")},
            "probe": {"known": 40, "inputs": "gradients"},
        },
    )
