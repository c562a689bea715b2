"""What a config may say, its defaults, and the checks that need nothing but the config.

A config file's ``get_config()`` returns ``ordered({...})`` with any of the fields of ``DEFAULT``.
In ``grid`` each entry is an arm: ``{arm: {defense: {knob: value or tuple of values}}}``; a tuple is
an axis of the grid. Defenses of one arm are chained in listing order; an entry ``"model"`` there names
the arm's own ``top`` and ``top_hidden`` in place of ``config.model``'s. In ``attacks``:
``{attack: {option: value or tuple of values}}``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from vfljax.errors import UserError

DEFAULT: dict[str, Any] = {
    "name": "sweep",
    "notes": (),  # sentences the report prints on top
    "seeds": 3,  # seeds 0, 1, ..., seeds - 1
    "data": {
        "name": "digits",
        "dir": "",  # the folder (or file) of data sets that are not embedded
        "options": {},  # the loader's own: `python -m launch.data` lists them
        "train": 0.6,  # shares (up to 1.0) of all rows, of the published part, or counts
        "validation": 0.2,
        "test": 0.2,
        "scaling": "standard",
        "scaling_rows": "train",  # whose statistics: each seed's training rows, or "all" rows
        "resident_gb": 4.0,  # features larger than this stay on the host; batches are fetched
    },
    "parties": {
        "passive": 1,
        "label_features": True,
        "rule": "contiguous",  # images also: "rows", "grid" (patches)
        "shares": (),  # (2, 2, 1): of columns, pixels or words, passive parties first; () equal
        "columns": (),  # of a table: one tuple of names or globs a party, "*" is the rest
    },
    "model": {
        "bottom": "mlp",
        "hidden": (64,),
        "activation": "relu",  # of the bottoms' hidden layers
        "output": "identity",  # what the bottoms end in, with model splitting
        "cut": 16,  # width of each party's embedding; without model splitting it is C
        "top": "head",
        "top_hidden": (),
        "aggregation": "concatenate",
        "weights": "default",  # how linear layers start; "torch": as PyTorch's
        "options": {},  # the bottom network's own fields, for example {"width": 16}
        "pretrained": "",  # a file of weights the bottoms start from
    },
    "training": {
        "epochs": 30,
        "batch_size": 32,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "milestones": (),
        "decay": 0.1,
        "drop_last": False,
        "class_weights": (),  # of the label party's cross entropy, one a class; (): all 1
        "scope": "all",
        "evaluation": "final",  # "released": beside it, test AUC pooled over each epoch's steps
        "record": (0, -1),  # epochs whose exchange is stored; -1 is the last, always among them
        "record_rows": 0,  # of how many training rows; 0: all. What attacks see, of test rows too
    },
    "malicious": {
        "parties": ((0,),),  # an axis: one tuple a set of attackers
        "gamma": 1.0,
        "rule": "intended",  # the paper's, or the released class's: "released", "released_torch2"
    },
    "teacher": {
        "network": "mlp",  # any bottom network that reads the label party's columns
        "options": {},
        "pretrained": "",
        "hidden": (64,),
        "epochs": 20,
        "batch_size": 32,
        "learning_rate": 1e-3,
        "temperature": 1.0,
    },
    "grid": {"undefended": {}},
    "attacks": {"passive": {}, "active": {}, "direct": {}, "norm": {}},
    "attackers": ((0,),),  # an axis: who attacks a run nobody was malicious in; several collude
    "published": {},  # figures of a paper to print beside ours, see vfljax.published
    "execution": {"width": 0, "shard_seconds": 20.0},  # width 0: chosen by backend
}

# their keys name arms, defenses, attacks and options: checked where those are known
FREE = (
    "grid",
    "attacks",
    "published",
    "data.options",
    "model.options",
    "teacher.options",
)


def ordered(values: Mapping[str, Any]) -> ConfigDict:
    """A config file's values as a ConfigDict that keeps listing order at every level (the default
    sorts names), with every field it does not name at its default, so that all can be overridden."""
    return _ordered(_filled(DEFAULT, values, ""))


def _ordered(values: Mapping[str, Any]) -> ConfigDict:
    out = ConfigDict(sort_keys=False)
    for key, value in values.items():
        out[key] = _ordered(value) if isinstance(value, Mapping) else value
    return out


def _filled(default: Mapping[str, Any], given: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Given fields in their order, then the others; whole numbers of a float field as floats, for an
    override to be either."""
    out: dict[str, Any] = {}
    for key in [*given, *(key for key in default if key not in given)]:
        name = f"{path}.{key}" if path else key
        known, value = default.get(key), given.get(key, default.get(key))
        if isinstance(known, Mapping) and isinstance(value, Mapping) and name not in FREE:
            value = _filled(known, value, name)
        elif type(known) is float and type(value) is int:
            value = float(value) if value != 1 else value
        out[key] = value
    return out


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that is in no table, with the nearest known one."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    choice = f"choose from {', '.join(known)}" if known else "there is none"
    return UserError(f"unknown {kind} {name!r}: {hint}{choice}.")


def _plain(value: Any) -> Any:
    """JSON values: dicts, lists and scalars."""
    if isinstance(value, (ConfigDict, Mapping)):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _merge(default: Any, given: Any, path: str) -> Any:
    if not isinstance(default, Mapping):
        return typed(default, given, path)
    if not isinstance(given, Mapping):
        raise UserError(f"config.{path}={given!r} must be a group of fields: {', '.join(default)}.")
    for key in given:
        if key not in default:
            raise unknown(
                "config field",
                f"{path}.{key}" if path else key,
                [f"{path}.{name}" if path else name for name in default],
            )
    out = {}
    for key, value in default.items():
        name = f"{path}.{key}" if path else key
        if name in FREE and key in given:
            if path and not isinstance(given[key], (Mapping, ConfigDict)):
                raise UserError(f"config.{name}={given[key]!r} must be a group of fields.")
            out[key] = _plain(given[key])
        else:
            out[key] = _merge(value, given.get(key, value), name)
    return out


def typed(default: Any, given: Any, path: str) -> Any:
    """``given`` if it is of the default's kind; numbers of ``training`` may be tuples (axes)."""
    given = _plain(given)
    axis = path in AXES and isinstance(given, list)
    values: list[Any] = given if axis else [given]
    for value in values:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        good = {
            bool: isinstance(value, bool),
            int: number and float(value).is_integer(),
            float: number,
            str: isinstance(value, str),
            tuple: isinstance(value, list),
        }[type(default)]
        if not good:
            raise UserError(
                f"config.{path}={given!r} must be of type {type(default).__name__}, for example "
                f"{default!r}."
            )
    return int(values[0]) if type(default) is int and not axis else given


AXES = (
    "training.learning_rate",
    "training.momentum",
    "training.weight_decay",
    "training.decay",
    "malicious.gamma",
)

_AT_LEAST = {
    "seeds": 1,
    "parties.passive": 1,
    "model.cut": 1,
    "training.epochs": 1,
    "training.batch_size": 1,
    "training.record_rows": 0,
    "training.learning_rate": 0,
    "training.momentum": 0,
    "training.weight_decay": 0,
    "training.decay": 0,
    "malicious.gamma": 0,
    "teacher.epochs": 1,
    "teacher.batch_size": 1,
    "teacher.learning_rate": 0,
    "teacher.temperature": 1e-6,
    "execution.width": 0,
    "execution.shard_seconds": 1e-3,
    "data.train": 0,
    "data.resident_gb": 0,
    "data.validation": 0,
    "data.test": 0,
}


def _at(config: Mapping[str, Any], path: str) -> Any:
    for key in path.split("."):
        config = config[key]
    return config


def resolve(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with every default filled in, as plain JSON values; raises UserError."""
    config = _plain(config)
    resolved = _merge(DEFAULT, config, "")
    for path, low in _AT_LEAST.items():
        value = _at(resolved, path)
        for one in value if isinstance(value, list) else [value]:
            if not one >= low:
                raise UserError(f"config.{path}={one} is too small: it must be at least {low}.")
    if resolved["training"]["scope"] not in ("all", "passive"):
        raise UserError(
            f"config.training.scope={resolved['training']['scope']!r} is unknown: choose 'all' "
            "(every bottom's gradient, as released) or 'passive' (what leaves the label party)."
        )
    for field, low, what in (
        ("milestones", 0, "epochs, 0 or later"),
        ("class_weights", 1e-6, "positive"),
    ):
        for one in resolved["training"][field]:
            number = isinstance(one, (int, float)) and not isinstance(one, bool)
            if not number or not low <= one < math.inf:
                raise UserError(f"config.training.{field} holds {one!r}: give numbers, {what}.")
    epochs = resolved["training"]["epochs"]
    for epoch in resolved["training"]["record"]:
        if isinstance(epoch, bool) or not isinstance(epoch, int) or not -1 <= epoch < epochs:
            raise UserError(
                f"config.training.record names epoch {epoch!r}: choose 0 to {epochs - 1}, or -1 for the "
                "last."
            )
    if not resolved["grid"]:
        raise UserError("config.grid is empty: give at least {'undefended': {}}.")
    if not isinstance(resolved["attacks"], Mapping):
        raise UserError(
            f"config.attacks={resolved['attacks']!r} must be {{attack: {{option: value}}}}."
        )
    if resolved["attacks"] and not resolved["attackers"]:
        raise UserError("config.attackers=() names nobody: give ((0,),), or no config.attacks.")
    passive = resolved["parties"]["passive"]
    for field in ("malicious.parties", "attackers"):
        for group in _at(resolved, field):
            members = group if isinstance(group, list) else [group]
            numbers = all(isinstance(p, int) and not isinstance(p, bool) for p in members)
            if not members or not numbers or not all(0 <= p < passive for p in members):
                raise UserError(
                    f"config.{field} names {group}, but passive parties are 0..{passive - 1}: "
                    "give a tuple of tuples such as ((0,),)."
                )
            if len(set(members)) < len(members):
                raise UserError(f"config.{field} names {group}: a party stands in it twice.")
    return resolved


def recorded_epochs(config: Mapping[str, Any]) -> list[int]:
    """The epochs of a resolved config whose exchange is stored, in order; the last is always one."""
    last = config["training"]["epochs"] - 1
    return sorted({last if epoch == -1 else epoch for epoch in [*config["training"]["record"], -1]})


def differences(a: Mapping[str, Any], b: Mapping[str, Any], path: str = "") -> list[str]:
    """Fields in which two resolved configs differ, as 'field: a -> b' lines."""
    lines = []
    for key in [*a, *(k for k in b if k not in a)]:
        name = f"{path}.{key}" if path else key
        left, right = a.get(key, "absent"), b.get(key, "absent")
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            lines += differences(left, right, name)
        elif left != right or (isinstance(left, Mapping) != isinstance(right, Mapping)):
            lines.append(f"{name}: {left} -> {right}")
    if path in FREE and not lines and list(a) != list(b):
        lines.append(f"{path}: order {list(a)} -> {list(b)}")
    return lines
