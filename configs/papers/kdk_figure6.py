r"""KDk, Figure 6: accuracy and the attack's success over epsilon, one panel a k of 3, 5 and 10.

    python -m launch.sweep --config=configs/papers/kdk_figure6.py:VARIANT \
        --workdir=runs/kdk_figure6_VARIANT --config.data.dir=DIR

VARIANT is cifar10, cifar100, cinic10, one of them with -resnet20, or cifar10-reduced;
`configs/papers/kdk.py` describes each, what DIR must hold, and what one trial costs.

The paper does not say which attack the figure is of: it has a success on test rows, so it is a model
completion, here the passive one. 14 points, 3 seeds: for CIFAR-10 2,600 core hours, on a GPU about 30.
cifar10-reduced has epsilon .3, .6 and .8 for every k, 2 seeds, and takes about 7 minutes on 2 cores.
"""

from configs.papers import kdk

VARIANTS = kdk.IMAGES
PANELS = {3: (0.2, 0.3, 0.4, 0.5, 0.6), 5: (0.2, 0.4, 0.6, 0.8), 10: (0.2, 0.4, 0.6, 0.8)}


def get_config(variant=""):
    dataset, rule = kdk.choose(variant, VARIANTS)
    values = kdk.groups(dataset, rule)
    small = rule in kdk.SMALL
    panels = dict.fromkeys(PANELS, (0.3, 0.6, 0.8)) if small else PANELS
    grid = {f"kdk_k{k}": {"kdk": {"epsilon": epsilon, "k": k}} for k, epsilon in panels.items()}
    return kdk.config(
        "kdk/figure6",
        dataset,
        rule,
        grid={"undefended": {}, **grid},
        attacks={
            "passive": kdk.completion(values["completion"], small),
            **kdk.known_defense(values["completion"]),
        },
        federations=("split",),
        values=values,
        reduced=2,
        methods={"undefended": "none", **dict.fromkeys(grid, "kdk")},
    )
