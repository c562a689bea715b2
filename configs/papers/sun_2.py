r"""Sun et al. 2022, Table 2: the spectral attack and dCor on Avazu.

    python -m launch.sweep --config=configs/papers/sun_2.py:avazu-sample --workdir=runs/sun_2 \
        --config.data.dir=FILE

Appendix F: undefended and alpha_d = .03, 5 seeds. Beside the spectral attack stand attackers who know
more: 40 labels, and gradients. Their difference of test AUC is the text's "about 0.003".

Variants: "avazu" (3 epochs, appendix H), "avazu-epochs10" (appendix F), "avazu-sample" (the first 9,999
rows, one hour of clicks; minutes on 2 cores), "avazu-sample-brief", "avazu-sample-long"; see
``configs/papers/sun.py``. The first two need Kaggle's train.csv, prepared, and 42 hours on 2 cores or a
GPU.
"""

from configs.papers import sun


def get_config(variant=""):
    return sun.config(
        "sun/2",
        variant,
        {"undefended": {}, "dcor": {"dcor": {"alpha": 0.03}}},
        {"arms": {"undefended": "none", "dcor": "dcor"}, "attacks": sun.PRINTED},
        datasets=("avazu",),
    )
