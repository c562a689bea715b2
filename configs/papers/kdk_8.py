r"""KDk, Table 8: accuracy and the direct attack under four other defenses and KDk, CIFAR-10 and CIFAR-100.

    python -m launch.sweep --config=configs/papers/kdk_8.py:VARIANT --workdir=runs/kdk_8_VARIANT \
        --config.data.dir=DIR

VARIANT is cifar10, cifar100, either with -resnet20, or cifar10-reduced; `configs/papers/kdk.py` describes
each, what DIR must hold, and what one trial costs.

Without model splitting (see there). 29 configurations, 3 seeds: the table's 20, the undefended federation,
and PPDL and DiscreteSGD as the papers have them ("ppdl_paper", "discrete_sgd_paper"), while "ppdl" sends
untreated entries where it runs out of them and "discrete_sgd" has the fixed bound .03, both as released. For
CIFAR-10 5,400 core hours, on a GPU about two days. cifar10-reduced has 21 configurations and 2 seeds, and
takes about 10 minutes on 2 cores.
"""

from configs.papers import kdk

SETS = ("cifar10", "cifar100")
VARIANTS = {name: kdk.IMAGES[name] for name in SETS}
METHODS = {**kdk.PUBLISHED_METHODS, "kdk_k3": "kdk", "kdk_k5": "kdk"}


def methods(small):
    """The table's rows, and the undefended federation, which it does not print."""
    return {
        "undefended": {},
        **kdk.other_defenses(small),
        "kdk_k3": {"kdk": {"epsilon": 0.45, "k": 3}},
        "kdk_k5": {"kdk": {"epsilon": (0.7, 0.75, 0.85), "k": 5}},
    }


def of_table(table, variant, offered):
    """The config of Table 8 or 9."""
    dataset, rule = kdk.choose(variant, offered)
    values = kdk.groups(dataset, rule)
    return kdk.config(
        table,
        dataset,
        rule,
        grid=methods(rule in kdk.SMALL),
        attacks={**kdk.DIRECT, **kdk.known_defense(values["completion"])},
        federations=("no_split",),
        values=values,
        reduced=2,
        methods=METHODS,
        names=kdk.PUBLISHED_DIRECT,
    )


def get_config(variant=""):
    return of_table("kdk/8", variant, VARIANTS)
