r"""GAFM's Table 2: vanilla, MaxNorm, Marvell and GAFM on four data sets, 10 seeds.

    python -m launch.sweep --config=configs/papers/gafm_2.py:DATASET --workdir=runs/gafm_2_DATASET \
        --config.data.dir=DIR

DATASET is one of

    spambase  DIR holds UCI's spambase.data. 40 runs of 300 epochs, under a minute on 2 cores
    imdb      DIR holds the 50,000 reviews. 40 runs of 300 epochs, about 40 minutes on 2 cores
    criteo    DIR holds 100,000 rows of Criteo's train.txt or more. 40 runs of 100 epochs, about an hour
    isic      DIR holds SIIM-ISIC 2020, 33,126 images. 40 runs of 250 epochs, about 80 hours, or a GPU

or one of those with a rule of ``configs/papers/gafm.py``, such as `spambase-released_top`.
`configs/papers/gafm_table2_spambase.py` is the first block again, with the rules that bring in each
published figure.

The published median attack is the released `global_median`; `median/oracle` is that of the paper's
equation 9. Utilities are oriented, max(AUC, 1 - AUC): GAFM does not fix the sign of its predictions.
"""

from configs.papers import gafm


def get_config(variant=""):
    dataset, rule = gafm.named(variant, ("spambase", "imdb", "criteo", "isic"), baselines=True)
    grid = {**gafm.baselines(), "gafm": gafm.gafm(dataset)}
    return gafm.config("2", dataset, rule, grid, median="global_median")
