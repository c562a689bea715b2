r"""KDk, Table 4: the passive attack (model completion) without a defense and with KDk.

    python -m launch.sweep --config=configs/papers/kdk_4.py:VARIANT --workdir=runs/kdk_4_VARIANT \
        --config.data.dir=DIR

VARIANT is cifar10, cifar100, cinic10, yahoo or criteo, an image set with -resnet20, cifar10-reduced or
criteo-sample; `configs/papers/kdk.py` describes each, what DIR must hold, and what one trial costs.
criteo-lambda1 is Criteo with lambda_u = 1 in place of 50, which for two classes can push every row to one.

9 settings: undefended, KDk as released and KDk as the paper's equation 9 has it, 3 seeds. For CIFAR-10 that
is 560 core hours, on a GPU about 7 with the attacks; Criteo takes minutes on 2 cores. cifar10-reduced
takes about 8 minutes on 2 cores, criteo-sample 2. Beside the published attack stand its form that trains
the whole model ("passive/finetune_bottom", the paper's text) and attackers with the same labels who know of
defenses: a probe of embeddings and gradients, and the same learning from its own calls.
"""

from configs.papers import kdk

KDK = {  # Table 4: epsilon and k
    "cifar10": (0.45, 3),
    "cifar100": (0.5, 3),
    "cinic10": (0.45, 3),
    "yahoo": (0.35, 3),
    "criteo": (0.4, 2),
}
VARIANTS = {**kdk.ALL, "criteo": ("sample", "lambda1")}


def get_config(variant=""):
    dataset, rule = kdk.choose(variant, VARIANTS)
    values = kdk.groups(dataset, rule)
    small = rule in kdk.SMALL
    return kdk.config(
        "kdk/4",
        dataset,
        rule,
        grid=kdk.kdk_methods(*KDK[dataset], small),
        attacks={
            "passive": kdk.completion(values["completion"], small),
            **kdk.known_defense(values["completion"]),
        },
        federations=("split",),
        values=values,
    )
