"""What the tables and figures of KDk share: data, parties, networks, training and teachers by data set.

Arazzi, Nicolazzo, Nocera. "KDk: A Defense Mechanism Against Label Inference Attacks in Vertical Federated
Learning", 2024: Table 2 names the bottoms and tops, Table 3 the teachers. Rates, batches, epochs, the cut
and the known labels are those of Fu et al.'s released code, on which it builds (USENIX Security 2022); the
paper states none of them, and neither seeds nor spreads. What is read into it:

* One passive party owns the left half of an image, the first half of a text or of the hashed columns.
* Tables 4, 5 and 7 and Figures 6 and 7 are with model splitting, Tables 6, 8 and 9, whose attack is the
  direct one, without: their accuracies exceed the undefended one of Table 7 on CIFAR-100 and CINIC-10, so
  they are of another federation than Table 7's.
* 1,000 or 2,000 of the published training rows choose operating points and are not trained on.
* A teacher's batch of 64, and BERT's rate as a teacher, which the paper does not give.
* Yahoo's one rate: released are 1e-3 for the top model, 5e-6 for BERT and 5e-4 for its linear layer.

Variants
    DATASET             the published setting with ResNet-18 bottoms and ResNet-50 teachers. The paper's are
                        "pre-trained on general data"; here they start at random, unless
                        --config.model.pretrained=FILE and --config.teacher.pretrained=FILE are given
    DATASET-resnet20    the bottoms of Fu et al.'s released code
    cifar10-reduced     CIFAR-10 on 2 cores: 4,000 images, 8 epochs, 5 seeds (2 of
                        Tables 5 and 8 and Figure 6, as stored); bottoms and teachers are
                        ResNets of width 16 with a 7x7 convolution of stride 2, a pool and three blocks
    criteo-sample       Criteo from any file of its rows, 20 epochs in batches of 100

The last two show orders and shapes, and are compared with no published number. The times that the tables
name for cifar10-reduced are estimates for 2 free cores: a step of a setting takes 11 ms of one core, and a
program half a minute to compile.

What DIR must hold: CIFAR-10, CIFAR-100, CINIC-10, yahoo_answers_csv or Criteo's train.txt in a layout that
`python -m launch.data` names. Yahoo also needs BERT's weights as FILE.safetensors and their vocabulary:
--config.model.pretrained=FILE --config.teacher.pretrained=FILE --config.data.options.vocabulary=vocab.txt.

What one setting of a full run costs, in hours of one core: estimated from a step of one bottom on 32 half
images, forward, backward and update, which takes .73 s of one core with ResNet-18 and .12 s with ResNet-20;
BERT from its arithmetic at the same speed. Teachers and attacks are about half as much again. The last column
is arithmetic at 28 TFLOP/s, which 16 ResNet-18 reached in float32 on an H100
(`analysis/results/benchmark/gpu.md`), and for BERT at 10. No table of images has been run on a GPU.

    ==========  =========  =========  ===========================
    data set    ResNet-18  ResNet-20  ResNet-18 on one GPU, about
    ==========  =========  =========  ===========================
    CIFAR-10           62         10  .16 h
    CIFAR-100          93         15  .24 h
    CINIC-10          226         37  .59 h
    Yahoo       BERT 1300             10 h
    Criteo           < .1             seconds
    ==========  =========  =========  ===========================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vfljax.config import ordered
from vfljax.errors import unknown

EPOCH = 1024  # steps of an epoch of model completion, as released
RESNET8 = {"blocks": (1, 1, 1), "width": 16, "stem": "imagenet"}  # of the reduced variants


def _images(
    name: str, spelled: str, rows: tuple[int, int], classes: int, known: int, epochs: int
) -> dict[str, Any]:
    """An image set: the rows that are trained on and held out, its classes, and its epochs."""
    return {
        "spelled": spelled,
        "data": {
            "name": name,
            "dir": "",
            "options": {"rows": 0},
            "train": rows[0],
            "validation": rows[1],
            "test": 1.0,  # of the published test part
            "scaling": "range",
        },
        "model": {
            "bottom": "resnet18",
            "options": {},
            "cut": classes,
            "top": "head",
            "top_hidden": (2 * classes, classes, classes),
        },
        "training": {
            "epochs": epochs,
            "batch_size": 32,
            "learning_rate": 0.1,
            "momentum": 0.9,
            "weight_decay": 5e-4,
            "milestones": (50, 85),
        },
        "teacher": {
            "network": "resnet50",
            "options": {},
            "epochs": 20,
            "batch_size": 64,
            "learning_rate": 1e-4,
        },
        "completion": {"known": known, "steps": 25 * EPOCH},
    }


# Criteo as their released file has it: 100,000 rows, labels 0, 1, 0, 1, ...
HASHED = {"form": "hashed", "buckets": 8192, "crosses": True, "counts": True}
HASHED |= {"balanced": True, "rows": 100_000, "file": ""}
GROUPS = ("data", "model", "training", "teacher", "malicious", "completion")

# of each data set: the groups of its config, and what its own rules change of them
DATASETS: dict[str, dict[str, Any]] = {
    "cifar10": _images("cifar10", "CIFAR-10", (49_000, 1000), 10, 40, 100),
    "cifar100": _images("cifar100", "CIFAR-100", (49_000, 1000), 100, 400, 150),
    "cinic10": _images("cinic10", "CINIC-10", (178_000, 2000), 10, 40, 100),
    "yahoo": {
        "spelled": "Yahoo! Answers",
        "data": {
            "name": "yahoo",
            "dir": "",
            "options": {
                "form": "wordpiece",
                "length": 256,
                "vocabulary": "",
                "fields": ("question_content",),
                "train_rows": 50_000,
                "test_rows": 20_000,
            },
            "train": 49_000,
            "validation": 1000,
            "test": 1.0,
            "scaling": "none",
        },
        "model": {
            "bottom": "bert",
            "options": {},
            "cut": 10,
            "top": "head",
            "top_hidden": (10, 10, 10),
        },
        "training": {
            "epochs": 25,
            "batch_size": 16,
            "learning_rate": 5e-4,
            "momentum": 0.9,
            "weight_decay": 5e-4,
            "milestones": (15, 25),
        },
        "teacher": {
            "network": "bert",
            "options": {},
            "epochs": 10,
            "batch_size": 16,
            "learning_rate": 2e-5,
        },
        # MixText's numbers; it mixes in BERT's layers 7, 9 and 12, and ours at the cut
        "completion": {
            "known": 100,
            "steps": 10 * EPOCH,
            "learning_rate": 5e-4,
            "temperature": 0.5,
            "alpha": 16.0,
            "lambda_u": 1.0,
        },
    },
    "criteo": {
        "spelled": "Criteo",
        "data": {
            "name": "criteo",
            "dir": "",
            "options": HASHED,
            "train": 80_000,
            "validation": 1000,
            "test": 19_000,
            "scaling": "none",
        },
        "model": {
            "bottom": "mlp",
            "options": {},
            "hidden": (64, 16),
            "cut": 4,
            "top": "head_plain",
            "top_hidden": (8, 4),
        },
        "training": {
            "epochs": 7,
            "batch_size": 1000,
            "learning_rate": 0.05,
            "momentum": 0.5,
            "weight_decay": 5e-4,
            "milestones": (),
        },
        "teacher": {
            "network": "mlp",
            "options": {},
            "hidden": (64, 16, 4),
            "epochs": 20,
            "batch_size": 64,
            "learning_rate": 1e-4,
        },
        "completion": {"known": 100, "steps": 5 * EPOCH},
        "sample": {
            "data": {
                "options": {**HASHED, "rows": 0},
                "train": 0.75,
                "validation": 0.05,
                "test": 0.2,
            },
            "training": {"epochs": 20, "batch_size": 100},
            "completion": {"ema": 0.99, "steps": EPOCH},
        },
    },
}

# what a rule changes, by group and field
TEACHER8 = {"network": "resnet18", "options": RESNET8, "epochs": 15, "batch_size": 32}
REDUCED = {
    "data": {"options": {"rows": 10_000}, "train": 4000, "validation": 500, "test": 2000},
    "model": {"options": RESNET8},
    "training": {"epochs": 8, "milestones": (4, 7)},
    "teacher": {**TEACHER8, "learning_rate": 1e-3},
    "completion": {"steps": 2 * EPOCH, "ema": 0.99},
}
RULES: dict[str, dict[str, Any]] = {
    "": {},
    "resnet18": {"model": {"bottom": "resnet18"}},
    "resnet20": {"model": {"bottom": "resnet20"}},
    "reduced": REDUCED,
    "lambda1": {"completion": {"lambda_u": 1.0}},
    "released": {"malicious": {"rule": "released"}},
    "nosplit": {},
}
IMAGES = {"cifar10": ("resnet20", "reduced"), "cifar100": ("resnet20",), "cinic10": ("resnet20",)}
ALL = {**IMAGES, "yahoo": (), "criteo": ("sample",)}
SMALL = ("reduced", "sample")  # rules that are no run at the published setting


def choose(variant: str, offered: Mapping[str, tuple[str, ...]]) -> tuple[str, str]:
    """The data set and the rule that a variant names: "cifar10-reduced", "cifar10", or "" for the first
    data set. ``offered``: the rules of every data set but for the published setting. Raises UserError for any
    other variant."""
    variants = {name: (name, "") for name in offered}
    variants |= {
        f"{name}-{rule}": (name, rule) for name, rules in offered.items() for rule in rules
    }
    variants[""] = next(iter(variants.values()))
    if variant not in variants:
        raise unknown("variant", variant, [name for name in variants if name])
    return variants[variant]


def groups(
    dataset: str, rule: str, datasets: Mapping[str, Mapping[str, Any]] = DATASETS
) -> dict[str, Any]:
    """The groups of a config that a data set and a rule decide, "completion" among them: options of
    model completion."""
    record = datasets[dataset]
    out = {group: record[group] for group in GROUPS if group in record}
    changed = record[rule] if rule in record else RULES[rule]
    for group, changes in changed.items():
        out[group] = {**out.get(group, {}), **changes}
    return out


def completion(values: Mapping[str, Any], small: bool) -> dict[str, Any]:
    """Options of ``passive`` and ``active``: the head alone is trained, as released, and in full runs next to
    it the whole model, as the text has it ("passive/finetune_bottom")."""
    return dict(values) if small else {**values, "finetune_bottom": (False, True)}


def known_defense(values: Mapping[str, Any]) -> dict[str, Any]:
    """Attackers who know of defenses, with the same known labels: a probe of embeddings and gradients, and
    the same trained on its own calls too ("joint/exchange")."""
    known = values["known"]
    return {"probe": {"known": known}, "joint": {"known": known, "blocks": "exchange"}}


DIRECT = {
    # published: the first negative entry in epoch 0. The others know KDk, or average out noise
    "direct": {
        "rule": ("first_negative", "most_negative", "least_negative"),
        "epoch": (0, "mean", "votes"),
    },
    "fusion": {"sign": ("subtract", "add")},
}
PUBLISHED_DIRECT = {"direct": "direct/first_negative/epoch=0"}


def kdk_methods(epsilon: Any, k: Any, small: bool = False) -> dict[str, Any]:
    """Undefended and KDk with the anchor at the label (released code); in full runs also at the teacher's
    class (the paper's equation 9)."""
    knobs = {"epsilon": epsilon, "k": k}
    methods: dict[str, Any] = {"undefended": {}, "kdk": {"kdk": knobs}}
    return methods if small else {**methods, "kdk_teacher": {"kdk": {**knobs, "anchor": "teacher"}}}


def other_defenses(small: bool = False) -> dict[str, Any]:
    """The four defenses that the paper compares with. PPDL and DiscreteSGD are those of the released code,
    and in full runs those of the papers too."""
    methods: dict[str, Any] = {
        "noise": {"noise": {"scale": (1e-4, 1e-3, 1e-2, 1e-1)}},
        "compression": {"compression": {"keep_rate": (0.75, 0.5, 0.25, 0.1)}},
        "ppdl": {"ppdl": {"theta": (0.75, 0.5, 0.25, 0.1), "on_exhaustion": "keep"}},
        "discrete_sgd": {
            "discrete_sgd": {"intervals": (24, 18, 12, 6), "bound": 0.03, "interval": "fixed"}
        },
    }
    if not small:
        methods["ppdl_paper"] = {"ppdl": {"theta": (0.75, 0.5, 0.25, 0.1)}}
        methods["discrete_sgd_paper"] = {"discrete_sgd": {"intervals": (24, 18, 12, 6)}}
    return methods


PUBLISHED_METHODS = {
    "undefended": "none",
    "kdk": "kdk",
    "noise": "noisy_gradient",
    "compression": "gradient_compression",
    "ppdl": "ppdl",
    "discrete_sgd": "discrete_sgd",
}


def config(
    table: str,
    dataset: str,
    rule: str,
    *,
    grid: Mapping[str, Any],
    attacks: Mapping[str, Any],
    federations: tuple[str, ...],
    values: Mapping[str, Any],
    methods: Mapping[str, str] = PUBLISHED_METHODS,
    names: Mapping[str, str] | None = None,
    setting: Mapping[str, Any] | None = None,
    seeds: int = 3,
    reduced: int = 5,
    datasets: Mapping[str, Mapping[str, Any]] = DATASETS,
) -> Any:
    """The config of a table on a data set. ``values``: what ``groups`` made; ``methods``: a method's name in
    the JSON, left out where the grid has no such method; ``names``: the label of our attack by the JSON's;
    ``setting``: what all the table's numbers share; ``reduced``: seeds of a reduced run."""
    spelled, scale = datasets[dataset]["spelled"], rule if rule in SMALL else "full"
    kept = {group: fields for group, fields in values.items() if group != "completion"}
    return ordered(
        {
            "name": "_".join([table.replace("/", "_"), dataset, *([rule] if rule else [])]),
            "notes": (notes(table, spelled, scale, values),),
            "seeds": {"reduced": reduced, "sample": 5}.get(rule, seeds),
            "parties": {"passive": 1, "label_features": True},
            **kept,
            "grid": grid,
            "skip_settled": False,  # every published figure is measured
            "attacks": attacks,
            "federations": federations,
            "reproduces": {
                "table": table,
                "dataset": spelled,
                "scale": scale,
                "variant": "" if scale != "full" else rule,
                "arms": {method: name for method, name in methods.items() if method in grid},
                "attacks": dict(names or {}),
                "setting": dict(setting or {}),
            },
        }
    )


def notes(table: str, spelled: str, scale: str, values: Mapping[str, Any]) -> str:
    """What the report shows on top."""
    source = f"{table} on {spelled}; rates, epochs and batch are those of Fu et al.'s released code"
    if scale == "full":
        return f"{source}."
    training = values["training"]
    return (
        f"{source}, but {training['epochs']} epochs of few rows, batch {training['batch_size']} "
        f"({scale}): orders and shapes, no reproduction of numbers."
    )
