r"""GAFM's Table D.2: GAFM by sigma, the deviation of the noise on real labels; 10 seeds.

    python -m launch.sweep --config=configs/papers/gafm_d2.py:DATASET --workdir=runs/gafm_d2_DATASET \
        --config.data.dir=DIR

DATASET is spambase (30 runs, under a minute on 2 cores), imdb (30 runs, 30 minutes on 2 cores), criteo
(30 runs, 45 minutes) or isic (30 runs, 60 hours, or a GPU), or one of those with a rule of
``configs/papers/gafm.py``, which also describes what DIR holds. Its row of sigma .01 is Table 2's, and the
released median attack, `global_median`, is the published one.
"""

from configs.papers import gafm

SIGMA = (0.01, 0.25, 1.0)


def get_config(variant=""):
    dataset, rule = gafm.named(variant, ("spambase", "imdb", "criteo", "isic"))
    grid = {"gafm": gafm.gafm(dataset, sigma=SIGMA)}
    return gafm.config("D.2", dataset, rule, grid, median="global_median")
