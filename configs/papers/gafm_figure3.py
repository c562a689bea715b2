r"""GAFM's Figure 3 and section 4.2.2: GAFM against its GAN loss or cross entropy alone; 10 seeds.

    python -m launch.sweep --config=configs/papers/gafm_figure3.py:DATASET \
        --workdir=runs/gafm_figure3_DATASET --config.data.dir=DIR

DATASET is spambase (30 runs, a minute on 2 cores), imdb (30 runs, 30 minutes on 2 cores), criteo (30
runs, 45 minutes) or isic (30 runs, 60 hours, or a GPU), or one of those with a rule of
``configs/papers/gafm.py``, which also describes what DIR holds. The figure prints no number. Section 4.2.2
states bounds of it for IMDB, Criteo and ISIC, which are compared with (gafm/text).

With the cross entropy alone nothing trains the generator, as in the released code: its utility is the
AUC of an untrained G of f, oriented, whose order is nearly that of f.
"""

from configs.papers import gafm

TABLE = {"spambase": "figure3", "imdb": "text", "criteo": "text", "isic": "text"}


def get_config(variant=""):
    dataset, rule = gafm.named(variant, ("spambase", "imdb", "criteo", "isic"))
    grid = {
        "gafm": gafm.gafm(dataset),
        "gan_only": gafm.gafm(dataset, terms="gan"),
        "ce_only": gafm.gafm(dataset, terms="ce"),
    }
    return gafm.config(TABLE[dataset], dataset, rule, grid, median="global_median")
