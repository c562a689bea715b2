r"""Li et al. 2022 (Marvell), the trade-offs that the authors' notebooks print, Criteo and Avazu.

    python -m launch.sweep --config=configs/papers/li.py:criteo-sample --workdir=runs/li --config.data.dir=FILE

Li, Sun, Yang, Gao, Xie, Smith, Wang. "Label Leakage and Protection in Two-party Split Learning", ICLR 2022.
OscarcarLi/label-protection at 9f371c5 prints 160 points in three notebooks (``diff_methods_tradeoff_viz_*``):
Criteo 47, Avazu 47, ISIC 66. A point is the test AUC and the leak of the norm attack at the cut, of one seed,
undefended, with Marvell by s and with isotropic Gaussian noise by its ratio to the longest gradient. The test
AUC is the largest of all evaluations during training. The leak is the .95 quantile over the batches of
training of |leak AUC - .5| (of Avazu's isotropic noise: of the leak AUC).

Wide & deep: categories are embedded in 4 numbers each, three ReLU layers of 128 before the cut, three after
it, Adam, 1e-4, 5 epochs, batches of 1,024 (Avazu 32,768). Criteo's rows are a share of the file that the logs
do not name; it is a tenth in the authors' ``preprocess_criteo_subset.py``. ISIC's label party begins with
convolutions, which no top model here does: its numbers are kept, and no run is made.

Deviations: their linear ("wide") part ends in the logits and passes the cut by; ours is left out. The AUCs are
of the trained model and of all rows of the last epoch: no leak is compared with a printed one. Tables of
embeddings have no penalty (theirs .01 of the squares, times 1).

Variants: "criteo" (the published setting), "avazu", "criteo-sample" (the first 10,000 rows; minutes on 2
cores). The hours of the full ones are estimated by a step of ``configs/papers/sun.py``; both need Kaggle's
files.
"""

from configs.papers import sun
from vfljax.config import ordered
from vfljax.errors import unknown

POWERS = (
    *(0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0, 1.5, 1.75),
    *(2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 20.0, 25.0),
)
RATIOS = (
    *(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75),
    *(3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 9.0, 11.0, 15.0, 25.0),
)
FULL = {**sun.FULL, "epochs": 5, "batch_size": 1024}
# of the sample: 80 updates in place of 20,000, at ten times the rate; every third strength
SAMPLE = sun.TRAININGS["sample"]
VARIANTS = {
    "criteo": ("criteo", 4_584_062, FULL, POWERS, RATIOS),
    "criteo-sample": ("criteo", 10_000, SAMPLE, POWERS[::3], RATIOS[::3]),
    "avazu": ("avazu", 0, {**FULL, "batch_size": 32_768}, POWERS, RATIOS),
}
ATTACKS = {
    "norm": {"epoch": (-1, "mean")},
    "probe": {"known": 40, "inputs": ("embeddings", "both")},
}


def get_config(variant=""):
    chosen = variant or "criteo"
    if chosen not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    name, rows, training, powers, ratios = VARIANTS[chosen]
    sample = chosen.endswith("sample")
    raw = {"numbers": "raw"} if name == "criteo" else {}
    notes = (
        "A sample: the first 10,000 of Criteo's 45.8 million rows, 10 epochs at 0.001; published: some tenth "
        "of the rows, 5 epochs at 0.0001. It says which defense leaks less at which cost, and is no "
        "reproduction of a number.",
    )
    return ordered(
        {
            "name": "_".join(("li", *chosen.split("-"))),
            "notes": notes * sample,
            "seeds": 3,  # published: one
            "data": {
                "name": name,
                "dir": "",
                "options": {"form": "unique", **raw, "rows": rows},
                **dict(zip(("train", "validation", "test"), (0.85, 0.05, 0.1), strict=True)),
                "scaling": "minmax",
                "scaling_rows": "all",  # as released
            },
            "parties": {"passive": 1, "label_features": False},
            "model": {
                "bottom": "wide_deep",
                "options": {"embedding": 4, "wide": False},
                "hidden": (128, 128),
                "cut": 128,
                "output": "relu",
                "top": "mlp",
                "top_hidden": (128, 128, 128),
                "aggregation": "concatenate",  # of one party
            },
            "training": training,
            "federations": ("split",),
            "grid": {
                "undefended": {},
                "marvell": {"marvell": {"power": powers}},
                "isotropic": {"noise": {"scale": ratios, "law": "isotropic"}},
            },
            "skip_settled": False,  # every figure is measured
            "attacks": ATTACKS,
            "reproduces": {
                "table": f"li/{name}",
                "dataset": sun.NAMES[name],
                "scale": "sample" if sample else "full",
                "arms": {"undefended": "none", "marvell": "marvell", "isotropic": "isotropic"},
                "attacks": {"norm": "norm/epoch=-1"},
            },
        }
    )
