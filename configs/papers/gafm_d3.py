r"""GAFM's Table D.3: the average gradient of the GAN loss and of the cross entropy; 10 seeds.

    python -m launch.sweep --config=configs/papers/gafm_d3.py:DATASET --workdir=runs/gafm_d3_DATASET \
        --config.data.dir=DIR

DATASET is spambase (10 runs, under a minute on 2 cores), imdb (10 runs, 10 minutes on 2 cores), criteo
(10 runs, 15 minutes) or isic (10 runs, 20 hours, or a GPU), or one of those with a rule of
``configs/papers/gafm.py``, which also describes what DIR holds. Delta is .05, gamma 1 and sigma .01
everywhere, as in the table. Its text claims section 4.1's values, which differ for IMDB, Criteo and
ISIC.

The averages are no column of the sweep. ``analysis.reproduction.gafm_gradients`` computes them from what it
stores: of the last batch of the last epoch, as the released code keeps them, or of that whole epoch.
"""

from configs.papers import gafm


def get_config(variant=""):
    dataset, rule = gafm.named(variant, ("spambase", "imdb", "criteo", "isic"))
    grid = {"gafm": gafm.gafm(dataset, delta=0.05, gamma=1.0)}
    return gafm.config("D.3", dataset, rule, grid, median="global_median")
