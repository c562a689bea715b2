r"""What every table and figure of Sun et al. 2022 shares: data, networks, training, attacks.

Sun, Yang, Yao, Wang. "Label Leakage and Protection from Forward Embedding in Vertical Federated
Learning", 2022, section 6.1, appendices F to H. One passive party owns all columns, the label party
the labels alone. Categories are embedded in 4 numbers each and read with the scaled numbers by five
ReLU layers of 128, the fifth of which is the cut (they describe no wide part); the label party has three
layers, the third of which makes the logits. Criteo and Avazu; batches of 8,192 rows, Adam, 1e-4, 3 epochs.

Where the paper contradicts itself: appendix H takes a tenth of Criteo's rows, section 6.1 all of them;
"approximately 15k updates" are 3 epochs of all. Appendix F trains Avazu for 10 epochs, appendix H for 3
(``avazu-epochs10``). Section 5 scores |s|, algorithm 1 s (attacks ``absolute`` and ``signed``; the
second is compared with printed numbers). A tenth of the rows is for tests; here 9 % are, and 1 %
validates.

``config(...)`` makes a table's config. A variant is DATASET or DATASET-TRAINING, see ``TRAININGS``; those
of a sample need the first 10,000 rows of Kaggle's file only. The full ones need all of it, prepared
once, in some 10 GB of memory and on disk:

    python -m launch.data --dataset=criteo --data_dir=DIR --option=form=unique --option=numbers=raw \
        --prepare=PREPARED

Hours of the full ones are 15,109 updates (Avazu 13,326) a setting, by a step of 8,000 rows: 0.6 s of one
core were measured undefended and 2.9 s with dCor, whose matrices are 8,192 wide, and 0.5 s for Adam on the
embedding table of 34 million values. No GPU was measured.
"""

from collections.abc import Mapping
from typing import Any

from vfljax.config import ordered
from vfljax.errors import unknown

FULL = {
    "epochs": 3,
    "batch_size": 8192,
    "optimizer": "adam",
    "learning_rate": 1e-4,
    "momentum": 0.0,
    "weight_decay": 0.0,
    "record": (-1,),
    "record_rows": 1_000_000,  # 2.6 GB a setting; of all 41 million 105
}
SAMPLE = {**FULL, "batch_size": 1024, "record_rows": 0}
# what each changes of the training; all but the first two are of the first 10,000 rows
TRAININGS = {
    "": FULL,
    "epochs10": {**FULL, "epochs": 10},  # Avazu's appendix F
    "sample": {
        **SAMPLE,
        "epochs": 10,
        "learning_rate": 1e-3,
    },  # 80 updates; that of configs/datasets
    "sample-brief": SAMPLE,  # 3 epochs at 1e-4 as published: 24 updates, and nothing is learned
    "sample-long": {**SAMPLE, "epochs": 100},  # 1e-4 as published, 800 updates
}
VARIANTS = {
    "criteo": ("", "sample", "sample-brief", "sample-long"),
    "avazu": ("", "epochs10", "sample", "sample-brief", "sample-long"),
}
NAMES = {"criteo": "Criteo", "avazu": "Avazu"}
ROWS = {"criteo": 10_000, "avazu": 9_999}  # of a sample: the file's first

# algorithm 1 and section 5; then attackers who know more than the paper's (not the joint learner:
# columns are codes, which it cannot read, and without them it is a slower probe)
ATTACKS = {
    "spectral": {"scores": ("signed", "absolute")},
    "norm": {},
    "probe": {"known": 40, "inputs": ("embeddings", "both")},
}
PRINTED = {
    "spectral": "spectral/signed"
}  # attack of the paper -> the label that is compared with it

# the passive party's five layers and the label party's three, from the input on
PASSIVE_LAYERS = (*(f"party0.deep.hidden.{i}" for i in range(4)), "party0.cut")
LAYERS = (*PASSIVE_LAYERS, "top.hidden.0", "top.hidden.1", "top.logits")
BY_LAYER = {"spectral": {"signal": LAYERS}}


def config(
    table: str,
    variant: str,
    grid: Mapping[str, Any],
    reproduces: Mapping[str, Any],
    *,
    attacks: Mapping[str, Any] = ATTACKS,
    datasets: tuple[str, ...] = ("criteo",),
    positive_ratio: float = 0.0,
) -> Any:
    """The config of a table ("sun/3") or figure in one of its variants: its ``grid`` and ``attacks``.

    ``reproduces``: methods, attacks and setting as ``config.reproduces`` has them. ``positive_ratio``: rows
    without a click are left out until that share of the others are clicks.
    """
    dataset, training = choose(variant, datasets)
    sample = training.startswith("sample")
    name = "_".join(("sun", table.split("/")[1], *(variant.split("-") if variant else ())))
    ratio = {"positive_ratio": positive_ratio} if positive_ratio else {}
    # Avazu has no numbers, so the option is Criteo's alone
    raw = {"numbers": "raw"} if dataset == "criteo" else {}
    shares = (0.8, 0.05, 0.15) if sample else (0.9, 0.01, 0.09)
    return ordered(
        {
            "name": name,
            "notes": notes(dataset, training, positive_ratio),
            "seeds": 5,
            "data": {
                "name": dataset,
                "dir": "",
                "options": {"form": "unique", **raw, "rows": ROWS[dataset] * sample, **ratio},
                **dict(zip(("train", "validation", "test"), shares, strict=True)),
                "scaling": "minmax",
                "scaling_rows": "all",  # "we linearly normalize it into [0, 1]"
            },
            "parties": {"passive": 1, "label_features": False},
            "model": {
                "bottom": "wide_deep",
                "options": {"embedding": 4, "wide": False},
                "hidden": (128,) * 4,
                "cut": 128,
                "output": "relu",
                "top": "mlp",
                "top_hidden": (128, 128),
                "aggregation": "concatenate",  # of one party
            },
            "training": TRAININGS[training],
            "grid": grid,
            "skip_settled": False,  # every published figure is measured
            "attacks": attacks,
            "reproduces": {
                "table": table,
                "dataset": NAMES[dataset],
                "scale": "sample" if sample else "full",
                "variant": training.removeprefix("sample").strip("-"),
                **reproduces,
            },
        }
    )


def balanced(table: str, variant: str, positive_ratio: float) -> Any:
    """The config of Table 3, 4 or 5: undefended and dCor at alpha_d = .03 with that share of clicks."""
    return config(
        table,
        variant,
        {"undefended": {}, "dcor": {"dcor": {"alpha": 0.03}}},
        {
            "arms": {"undefended": "none", "dcor": "dcor"},
            "attacks": PRINTED,
            "setting": {"positive_ratio": positive_ratio},
        },
        positive_ratio=positive_ratio,
    )


def choose(variant: str, datasets: tuple[str, ...]) -> tuple[str, str]:
    """(data set, training) of a variant; raises UserError for one that a table does not have."""
    known = {
        "-".join(filter(None, (dataset, training))): (dataset, training)
        for dataset in datasets
        for training in VARIANTS[dataset]
    }
    if (variant or datasets[0]) not in known:
        raise unknown("variant", variant, known)
    return known[variant or datasets[0]]


def notes(dataset: str, training: str, positive_ratio: float) -> tuple[str, ...]:
    """The sentences that the report of a variant begins with."""
    out = []
    if training.startswith("sample"):
        fields = TRAININGS[training]
        out.append(
            f"A sample: the first {ROWS[dataset]:,} of {NAMES[dataset]}'s 40 million rows and more, in "
            f"batches of {fields['batch_size']:,}, {fields['epochs']} epochs at "
            f"{fields['learning_rate']:g}; published: all rows, 8,192, 3 and 0.0001. Its figures say "
            "whether a claim holds on so few rows, and are no reproduction of a number."
        )
        out.append(
            "Leaks are of training rows, which so large a network learns by heart from few rows: they "
            "are bounded by the training AUC, and not by the test AUC."
        )
    else:
        out.append(
            "9 % of the rows test and 1 % validate; published: 10 % test. Attacks see a million "
            "training rows, and of a batch those among them."
        )
    if positive_ratio:
        out.append(
            f"Rows without a click are left out, in all parts, until {positive_ratio:.0%} are clicks."
        )
    return tuple(out)
