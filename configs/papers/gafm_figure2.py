r"""GAFM's Figures 2, C.1, C.2 and C.3: gradients against predictions, of vanilla and of GAFM; 3 seeds.

    python -m launch.sweep --config=configs/papers/gafm_figure2.py:DATASET \
        --workdir=runs/gafm_figure2_DATASET --config.data.dir=DIR

DATASET is imdb (Figure 2; 6 runs, 6 minutes on 2 cores), spambase (C.1; 6 runs, seconds), criteo (C.2)
or isic (C.3), or one of those with a rule of ``configs/papers/gafm.py``, which also describes what DIR
holds. ``python -m launch.reproduce --workdir=runs/gafm_figure2_DATASET`` draws the figure. It has four
panels: what vanilla and what GAFM send, and GAFM's two parts, the gradients of the GAN loss and of the
cross entropy, which ``analysis.reproduction.gafm_gradients.parts`` takes apart. A prediction is f where the
bottom ends in a sigmoid; the generator's is that of the stored weights on the stored f.
"""

from configs.papers import gafm


def get_config(variant=""):
    dataset, rule = gafm.named(variant, ("imdb", "spambase", "criteo", "isic"))
    grid = {"undefended": {}, "gafm": gafm.gafm(dataset)}
    return gafm.config("figure2", dataset, rule, grid, seeds=3, median="global_median")
