r"""KDk, Table 6: the direct attack (the sign of the gradient), undefended and with KDk.

    python -m launch.sweep --config=configs/papers/kdk_6.py:VARIANT --workdir=runs/kdk_6_VARIANT \
        --config.data.dir=DIR

VARIANT is cifar10, cifar100, cinic10, yahoo or criteo, an image set with -resnet20, cifar10-reduced or
criteo-sample; `configs/papers/kdk.py` describes each, what DIR must hold, and what one trial costs.

9 settings without model splitting, as Table 4's. The published attack is "direct/first_negative/epoch=0":
the first class with a negative entry in epoch 0. Beside it stand the most and the least negative entry, which
a reader of KDk's paper would try, averages and votes over epochs, own logits fused with averaged gradients,
and a probe. For CIFAR-10 560 core hours, on a GPU about 5; cifar10-reduced takes about 10 minutes on 2
cores.
"""

from configs.papers import kdk

VARIANTS = kdk.ALL
KDK = {  # Table 6: epsilon and k
    "cifar10": (0.45, 3),
    "cifar100": (0.5, 3),
    "cinic10": (0.45, 3),
    "yahoo": (0.35, 3),
    "criteo": (0.4, 2),
}


def get_config(variant=""):
    dataset, rule = kdk.choose(variant, VARIANTS)
    values = kdk.groups(dataset, rule)
    return kdk.config(
        "kdk/6",
        dataset,
        rule,
        grid=kdk.kdk_methods(*KDK[dataset], rule in kdk.SMALL),
        attacks={**kdk.DIRECT, **kdk.known_defense(values["completion"])},
        federations=("no_split",),
        values=values,
        names=kdk.PUBLISHED_DIRECT,
    )
