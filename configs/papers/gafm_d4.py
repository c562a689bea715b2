r"""GAFM's Table D.4: GAFM by gamma, the weight of the GAN's gradient, on a tenth of ISIC; 10 seeds.

    python -m launch.sweep --config=configs/papers/gafm_d4.py --workdir=runs/gafm_d4 --config.data.dir=DIR

DIR holds SIIM-ISIC 2020. 40 runs of 250 epochs on 2,650 of its 33,126 images; 8 hours on 2 cores, or a
GPU. `:isic-reduced` takes HAM10000 at 32x32 (``configs/papers/gafm.py``). The paper does not say how
many repetitions it ran. ``gafm_d5.py`` is the same on all images.
"""

from configs.papers import gafm

GAMMA = (1.0, 10.0, 15.0, 20.0)


def get_config(variant=""):
    dataset, rule = gafm.named(variant, ("isic",))
    grid = {"gafm": gafm.gafm(dataset, gamma=GAMMA)}
    setting = {"sampling_ratio": 0.1}
    return gafm.config(
        "D.4", dataset, rule, grid, share=0.1, median="global_median", setting=setting
    )
