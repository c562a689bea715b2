r"""KDk, Figure 7: the passive and the active attack under four other defenses and KDk.

    python -m launch.sweep --config=configs/papers/kdk_figure7.py:VARIANT \
        --workdir=runs/kdk_figure7_VARIANT --config.data.dir=DIR

VARIANT is cifar10, cifar100, cinic10, one of them with -resnet20, or cifar10-reduced;
`configs/papers/kdk.py` describes each, what DIR must hold, and what one trial costs.

30 points, honest and malicious, 3 seeds: for CIFAR-10 11,000 core hours, on a GPU about six days. PPDL and
DiscreteSGD as in Table 8. cifar10-reduced has 10 points without malicious parties, 5 seeds, and takes about
20 minutes on 2 cores.
"""

from configs.papers import kdk

VARIANTS = kdk.IMAGES
FEWER = {  # of the reduced variant
    "noise": {"noise": {"scale": (1e-3, 1e-2)}},
    "compression": {"compression": {"keep_rate": (0.25, 0.1)}},
    "ppdl": {"ppdl": {"theta": (0.5, 0.25), "on_exhaustion": "keep"}},
    "discrete_sgd": {"discrete_sgd": {"intervals": 6, "bound": 0.03, "interval": "fixed"}},
    "kdk": {"kdk": {"epsilon": (0.45, 0.66), "k": 3}},
}


def get_config(variant=""):
    dataset, rule = kdk.choose(variant, VARIANTS)
    values = kdk.groups(dataset, rule)
    small = rule in kdk.SMALL
    completion = kdk.completion(values["completion"], small)
    points = {"kdk": {"kdk": {"epsilon": (0.25, 0.3, 0.45, 0.5, 0.66), "k": 3}}}
    others = FEWER if small else {**kdk.other_defenses(), **points}
    return kdk.config(
        "kdk/figure7",
        dataset,
        rule,
        grid={"undefended": {}, **others},
        attacks={
            "passive": completion,
            **({} if small else {"active": completion}),
            **kdk.known_defense(values["completion"]),
        },
        federations=("split",) if small else ("split", "malicious"),
        values=values,
    )
