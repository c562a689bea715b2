r"""KDk, Table 7: the accuracy of the federation, undefended and with KDk.

    python -m launch.sweep --config=configs/papers/kdk_7.py:VARIANT --workdir=runs/kdk_7_VARIANT \
        --config.data.dir=DIR

VARIANT is cifar10, cifar100, cinic10, yahoo or criteo, an image set with -resnet20, cifar10-reduced or
criteo-sample; `configs/papers/kdk.py` describes each, what DIR must hold, and what one trial costs.
DATASET-nosplit is the same without model splitting.

No attack is run. The table does not say which epsilon and k its KDk row has: "kdk" has those of Table 4, and
"kdk_table5" is run too. 12 settings, 9 for Criteo. For CIFAR-10 740 core hours, on a GPU about 6
hours; cifar10-reduced takes about 10 minutes on 2 cores.
"""

from configs.papers import kdk, kdk_4, kdk_5

VARIANTS = {name: (*rules, "nosplit") for name, rules in kdk.ALL.items()}


def get_config(variant=""):
    dataset, rule = kdk.choose(variant, VARIANTS)
    (epsilon, k), (other, _) = kdk_4.KDK[dataset], kdk_5.KDK[dataset]
    methods = kdk.kdk_methods(epsilon, k, rule in kdk.SMALL)
    if other != epsilon:
        methods["kdk_table5"] = {"kdk": {"epsilon": other, "k": k}}
    return kdk.config(
        "kdk/7",
        dataset,
        rule,
        grid=methods,
        attacks={},
        federations=("no_split",) if rule == "nosplit" else ("split",),
        values=kdk.groups(dataset, rule),
    )
