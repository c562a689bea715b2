r"""GAFM's Table F.1: GAFM, Marvell and both (G-M) on Criteo; 10 seeds.

    python -m launch.sweep --config=configs/papers/gafm_f1.py --workdir=runs/gafm_f1 --config.data.dir=DIR

DIR holds 100,000 rows of Criteo's train.txt or more. 30 runs of 100 epochs; 45 minutes on 2 cores.
`:criteo-reduced` and `:criteo-all` are described in ``configs/papers/gafm.py``. G-M adds Marvell's noise to
GAFM's gradient. Its rows of GAFM and of Marvell repeat Table 2's, and the median attack is the released
`global_median`.
"""

from configs.papers import gafm


def get_config(variant=""):
    dataset, rule = gafm.named(variant, ("criteo",))
    marvell = gafm.baselines()["marvell"]
    grid = {
        "gafm": gafm.gafm(dataset),
        "marvell": marvell,
        "gafm_marvell": {**gafm.gafm(dataset), **marvell},
    }
    return gafm.config("F.1", dataset, rule, grid, median="global_median")
