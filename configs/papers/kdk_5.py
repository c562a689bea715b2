r"""KDk, Table 5: the active attack (a malicious optimizer, then model completion), undefended and with KDk.

    python -m launch.sweep --config=configs/papers/kdk_5.py:VARIANT --workdir=runs/kdk_5_VARIANT \
        --config.data.dir=DIR

VARIANT is cifar10, cifar100, cinic10, yahoo or criteo, an image set with -resnet20, cifar10-reduced or
criteo-sample; `configs/papers/kdk.py` describes each, what DIR must hold, and what one trial costs.
DATASET-released is the malicious optimizer of the released class, criteo-lambda1 as in Table 4.

18 settings: those of Table 4 at this table's epsilon, honest and malicious. For CIFAR-10 that is 1,100 core
hours, on a GPU about 14 with the attacks; cifar10-reduced takes about 5 minutes on 2 cores.
The malicious party's gradients, read by a probe, are attacked too. For Criteo the table
prints k = 3, which two classes cannot have: here it is 2.
"""

from configs.papers import kdk, kdk_4

KDK = {  # Table 5: epsilon and k; it prints k = 3 for Criteo, which has two classes
    "cifar10": (0.5, 3),
    "cifar100": (0.6, 3),
    "cinic10": (0.5, 3),
    "yahoo": (0.4, 3),
    "criteo": (0.4, 2),
}
VARIANTS = {name: (*rules, "released") for name, rules in kdk_4.VARIANTS.items()}


def get_config(variant=""):
    dataset, rule = kdk.choose(variant, VARIANTS)
    values = kdk.groups(dataset, rule)
    small = rule in kdk.SMALL
    completion = kdk.completion(values["completion"], small)
    return kdk.config(
        "kdk/5",
        dataset,
        rule,
        grid=kdk.kdk_methods(*KDK[dataset], small),
        attacks={
            "passive": completion,
            "active": completion,
            **kdk.known_defense(values["completion"]),
        },
        federations=("split", "malicious"),
        values=values,
        reduced=2,
    )
