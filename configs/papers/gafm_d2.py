r"""GAFM's Table D.2: GAFM by sigma, the deviation of the noise on real labels; 10 seeds.

    python -m launch.sweep --config=configs/papers/gafm_d2.py:DATASET --workdir=runs/gafm_d2_DATASET \
        --config.data.dir=DIR

DATASET is spambase (30 runs, D2_SPAMBASE_TIME), imdb (30 runs, D2_IMDB_TIME), criteo (D2_CRITEO_TIME) or
isic (D2_ISIC_TIME), or one of those with a rule of ``configs/papers/gafm.py``, which also says what DIR
holds. Its row of sigma .01 is Table 2's, and the released median attack, `global_median`, is the
published one.
"""

from configs.papers import gafm

SIGMA = (0.01, 0.25, 1.0)


def get_config(variant=""):
    dataset, rule = gafm.named(variant, ("spambase", "imdb", "criteo", "isic"))
    grid = {"gafm": gafm.gafm(dataset, sigma=SIGMA)}
    return gafm.config("D.2", dataset, rule, grid, median="global_median")
