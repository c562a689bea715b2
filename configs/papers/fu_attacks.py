r"""Fu et al. 2022: the passive and the active attack on six data sets, undefended.

    python -m launch.sweep --config=configs/papers/fu_attacks.py:VARIANT --workdir=runs/fu_VARIANT \
        --config.data.dir=DIR

VARIANT is cifar10, cifar100, cinic10, yahoo, criteo or bhi, with

    -resnet18   of image sets: the bottoms that KDk's paper names
    -released   the malicious optimizer of the released class in place of the paper's rule
    -lambda1    of criteo and bhi: lambda_u = 1 in place of 50
    -reduced    of cifar10, -sample of criteo and bhi: small, for the order of attacks alone

DIR holds the set; for what, and for what a setting costs, see `configs/papers/kdk.py`. BHI holds Kaggle's
patch folders, 86,477 pairs of patches of one patient, where the released code pairs files across patients;
a setting takes 4 core hours, estimated from a step of 64 patches, 1.2 s of one core. 6 settings a set, 3 seeds,
honest and malicious: for CIFAR-10 60 core hours, on a GPU an hour. cifar10-reduced took 16 minutes beside
other work on 2 cores, bhi-sample (2,000 patches in one .npz, width 8) about 10.
"""

from configs.papers import fu, kdk

VARIANTS = {
    "cifar10": ("resnet18", "reduced", "released"),
    "cifar100": ("resnet18", "released"),
    "cinic10": ("resnet18", "released"),
    "yahoo": ("released",),
    "criteo": ("sample", "released", "lambda1"),
    "bhi": ("sample", "released", "lambda1"),
}


def get_config(variant=""):
    dataset, rule = kdk.choose(variant, VARIANTS)
    values = kdk.groups(dataset, rule, fu.DATASETS)
    small = rule in kdk.SMALL
    completion = kdk.completion(values["completion"], small)
    return kdk.config(
        "fu/attacks",
        dataset,
        rule,
        grid={"undefended": {}},
        attacks={
            "passive": completion,
            "active": completion,
            **kdk.known_defense(values["completion"]),
        },
        federations=("split", "malicious"),
        values=values,
        setting={
            "known_labels_per_class": values["completion"]["known"] // fu.CLASSES[dataset],
            "n_classes": fu.CLASSES[dataset],
        },
        datasets=fu.DATASETS,
    )
