r"""GAFM's Table D.5: GAFM by gamma, the weight of the GAN's gradient, on all of ISIC; 10 seeds.

    python -m launch.sweep --config=configs/papers/gafm_d5.py --workdir=runs/gafm_d5 --config.data.dir=DIR

DIR holds SIIM-ISIC 2020, 33,126 images. 40 runs of 250 epochs; 80 hours on 2 cores, or a GPU.
`:isic-reduced` takes HAM10000 at 32x32 (``configs/papers/gafm.py``). The paper does not say how many
repetitions it ran. ``gafm_d4.py`` is the same on a tenth of the images.
"""

from configs.papers import gafm

GAMMA = (1.0, 10.0, 15.0, 20.0)


def get_config(variant=""):
    dataset, rule = gafm.named(variant, ("isic",))
    grid = {"gafm": gafm.gafm(dataset, gamma=GAMMA)}
    setting = {"sampling_ratio": 1.0}
    return gafm.config("D.5", dataset, rule, grid, median="global_median", setting=setting)
