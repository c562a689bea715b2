r"""Sun et al. 2022, Table 4: the spectral attack and dCor on Criteo with 49 % clicks.

    python -m launch.sweep --config=configs/papers/sun_4.py:criteo-sample --workdir=runs/sun_4 \
        --config.data.dir=FILE

Appendix G: rows without a click are left out until 49 % of the others are clicks; undefended and
alpha_d = .03, 5 seeds. Beside the spectral attack stand attackers who know more: 40 labels, and
gradients.

Variants: "criteo" (the published setting), "criteo-sample" (of the first 10,000 rows; minutes on 2
cores), "criteo-sample-brief", "criteo-sample-long"; see ``configs/papers/sun.py``, also for what the
first one needs: Kaggle's train.txt, prepared with the option positive_ratio=0.49, and 25 hours on 2
cores or a GPU.
"""

from configs.papers import sun


def get_config(variant=""):
    return sun.balanced("sun/4", variant, 0.49)
