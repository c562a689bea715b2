r"""KDk, Table 9: Table 8 on CINIC-10.

    python -m launch.sweep --config=configs/papers/kdk_9.py:VARIANT --workdir=runs/kdk_9_VARIANT \
        --config.data.dir=DIR

VARIANT is cinic10 or cinic10-resnet20; DIR holds CINIC-10. 87 settings: 20,000 core hours, on a GPU about a
week with ResNet-18 bottoms, a day with ResNet-20. Its reduced form is Table 8's.
"""

from configs.papers import kdk, kdk_8

VARIANTS = {"cinic10": kdk.IMAGES["cinic10"]}


def get_config(variant=""):
    return kdk_8.of_table("kdk/9", variant, VARIANTS)
