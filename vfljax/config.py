"""Config files: ``ordered``, every field and its default.

A config file's ``get_config()`` returns ``ordered({...})`` with any of the fields of ``DEFAULT``.
In ``grid`` each entry is a method: ``{method: {defense: {knob: value or tuple of values}}}``; a tuple is
an axis of the grid. Defenses of one method are chained in listing order; an entry ``"model"`` there names
another ``top`` and ``top_hidden`` than ``config.model``'s. In ``attacks``:
``{attack: {option: value or tuple of values}}``. Any field can be overridden on the command line,
``--config.training.epochs=100``.
"""

from __future__ import annotations

import ast
import contextlib
import os
import pathlib
import traceback
import types
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from vfljax.errors import UserError, unknown

DEFAULT: dict[str, Any] = {
    "name": "sweep",
    "notes": (),  # sentences the report prints on top
    "seeds": 3,  # seeds 0, 1, ..., seeds - 1
    "first_seed": 0,  # another one than 0: first_seed, ..., first_seed + seeds - 1
    "data": {
        "name": "digits",
        "dir": "",  # the folder (or file) of data sets that are not embedded
        "options": {},  # the loader's own: `vfljax data` lists them
        "train": 0.6,  # shares (up to 1.0) of all rows, of the published part, or counts
        "validation": 0.2,
        "test": 0.2,
        "scaling": "standard",
        "scaling_rows": "train",  # whose statistics: each seed's training rows, or "all" rows
        "permute_labels": 0.0,  # share of rows; at 1 columns tell nothing of labels (a control)
        "resident_gb": 4.0,  # features larger than this stay on the host; batches are fetched
    },
    "parties": {
        "passive": 1,
        "label_features": True,
        "rule": "contiguous",  # images also: "rows", "grid" (patches)
        "shares": (),  # (2, 2, 1): of columns, pixels or words, passive parties first; () equal
        "columns": (),  # of a table: one tuple of names or globs a party, "*" is the rest
        "names": (),  # what a report calls them, passive parties first, the label party last
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
        "precision": "float32",  # of the federation's products, or "bfloat16": vfljax.models.precision
        "evaluation": "final",  # "released": beside it, test AUC pooled over each epoch's steps
        "record": (0, -1),  # epochs whose exchange is stored; -1 is the last, always among them
        "record_rows": 0,  # of how many training rows; 0: all. What attacks see, of test rows too
        "record_parameter_gradients": False,  # of the bottoms' last layers, without model splitting
    },
    "malicious": {
        "parties": ((0,),),  # an axis: one tuple a set of attackers
        "gamma": 1.0,
        "rule": "intended",  # the paper's, or the released class's: "released", "released_torch2"
        "upload": "honest",  # what malicious parties send: vfljax.federation.uploads
        "strength": 0.0,  # of their upload; 0 is honest
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
    "known_draws": 1,  # draws of the known labels a seed: figures are means over them
    "canaries": 0,  # training rows a seed whose labels are coins, to audit a claimed epsilon
    "attackers": ((0,),),  # an axis: who attacks where all parties were honest; several collude
    "federations": (),  # trained: of "split", "malicious", "no_split"; (): what the attacks are for
    "goal": {
        "max_leak": 1.0,
        "max_cost": 1.0,
        "keep_gain": 0.5,
    },  # what a report asks of a defense: see records.Goal
    "reproduces": {},  # the paper's table that this is a run of, see vfljax.sweep.records.Reproduces
    "execution": {"width": 0, "shard_seconds": 20.0},  # width 0: chosen by backend
}

# their keys name methods, defenses, attacks and options: checked where those are known
FREE = ("grid", "attacks", "reproduces", "data.options", "model.options", "teacher.options")


def ordered(values: Mapping[str, Any]) -> ConfigDict:
    """A config file's values as a ConfigDict that keeps listing order at every level (the default
    sorts names), with every field it does not name at its default, so that all can be overridden."""
    return _ordered(_filled(DEFAULT, values, ""))


def from_file(source: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """Read a config file and change some of its fields.

    Args:
      source: the path of a Python file with ``get_config()``, or PATH:VARIANT for
        ``get_config("VARIANT")``.
      fields: new values as texts, by dotted path, such as {"training.epochs": "100"}.

    Returns:
      the config, with every field that the file does not name at its default.

    Raises:
      UserError: for a file that is missing or raises, and for a field that does not exist.
    """
    path, _, variant = source.partition(":")
    if not pathlib.Path(path).is_file():
        raise UserError(f"--config={path} is not a file: try configs/quickstart.py.")
    try:
        loader = SourceFileLoader("config", path)
        module = types.ModuleType("config")
        module.__file__ = path
        loader.exec_module(module)
        values = module.get_config(variant) if variant else module.get_config()
    except (Exception, SystemExit) as error:  # it is a program, and may fail in any way
        raise UserError(f"config: {_raised(error, path)}") from error
    if not isinstance(values, (Mapping, ConfigDict)):
        raise UserError(
            f"{path}: get_config() returned {type(values).__name__}: let it return ordered({{...}})."
        )
    config = _filled(DEFAULT, _plain(values), "")
    for field, text in fields.items():
        _change(config, field, text)
    return config


def _raised(error: BaseException, path: str) -> str:
    """Return what a config file raised, with the file and the line if it was raised there."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if os.path.realpath(f.filename) == os.path.realpath(path)]
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, SyntaxError):
        lines, text = [error.lineno], f"{type(error).__name__}: {error.msg}"
    elif isinstance(error, SystemExit):
        text = f"it called sys.exit({error.code!r}), and should give a config"
    elif isinstance(error, UserError):
        text = str(error)
    return f"{path}, line {lines[-1]}: {text}" if lines else f"{path}: {text}"


def _change(config: dict[str, Any], field: str, text: str) -> None:
    """Set a field of a config, by its dotted path, to what a text means there."""
    *groups, last = field.split(".")
    group, path = config, ""
    for name in [*groups, last]:
        known = list(group) if isinstance(group, dict) else []
        if name not in known and path.startswith(tuple(FREE)):
            raise UserError(
                f"the config file has no field {name!r} for --config.{field} to change: add it to the "
                "file, or give a config that has it."
            )
        if name not in known:
            raise unknown("config field", field, [_below(path, k) for k in known])
        if name is not last:
            group, path = group[name], _below(path, name)
    group[last] = _from_text(text, group[last])


def _from_text(text: str, present: Any) -> Any:
    """Return a Python literal, or the text itself; ``typed`` checks its type."""
    if isinstance(present, str):
        return text
    if isinstance(present, bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    value: Any = text
    with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(text)
    if isinstance(present, (list, tuple)) and not isinstance(value, (list, tuple)):
        return (value,)
    return float(value) if type(present) is float and type(value) is int else value


def _ordered(values: Mapping[str, Any]) -> ConfigDict:
    out = ConfigDict(sort_keys=False)
    for key, value in values.items():
        out[key] = _ordered(value) if isinstance(value, Mapping) else value
    return out


def _filled(default: Mapping[str, Any], values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The file's fields in their order, then the others; whole numbers of a float field as floats,
    for an override to be either."""
    out: dict[str, Any] = {}
    for key in [*values, *(key for key in default if key not in values)]:
        name = _below(path, key)
        known, value = default.get(key), values.get(key, default.get(key))
        if isinstance(known, Mapping) and isinstance(value, Mapping) and name not in FREE:
            value = _filled(known, value, name)
        elif type(known) is float and type(value) is int:
            value = float(value) if value != 1 else value
        out[key] = value
    return out


def _below(path: str, name: str) -> str:
    """The dotted path of a field in the group ``path``, which is "" for the whole config."""
    return f"{path}.{name}" if path else name


def _plain(value: Any) -> Any:
    """The value as JSON has it: dicts, lists and scalars."""
    if isinstance(value, (ConfigDict, Mapping)):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _merge(default: Any, value: Any, path: str) -> Any:
    if not isinstance(default, Mapping):
        return typed(default, value, path)
    if not isinstance(value, Mapping):
        raise UserError(f"config.{path}={value!r} must be a group of fields: {', '.join(default)}.")
    for key in value:
        if key not in default:
            raise unknown("config field", _below(path, key), [_below(path, k) for k in default])
    out = {}
    for key, field in default.items():
        name = _below(path, key)
        if name in FREE and key in value:
            if path and not isinstance(value[key], (Mapping, ConfigDict)):
                raise UserError(f"config.{name}={value[key]!r} must be a group of fields.")
            out[key] = _plain(value[key])
        else:
            out[key] = _merge(field, value.get(key, field), name)
    return out


def typed(default: Any, value: Any, path: str) -> Any:
    """Returns a field's value as JSON has it.

    Args:
      default: of the field, whose type the value must have.
      value: of the field; numbers of ``AXES`` may be tuples.
      path: of the field.
    """
    value = _plain(value)
    axis = path in AXES and isinstance(value, list)
    entries: list[Any] = value if axis else [value]
    kinds = {int: (int, float), float: (int, float), tuple: list}.get(type(default), type(default))
    for entry in entries:
        fits = isinstance(entry, kinds) and isinstance(entry, bool) == isinstance(default, bool)
        if not fits or (type(default) is int and entry != entry // 1):
            raise UserError(
                f"config.{path}={value!r} must be of type {type(default).__name__}, for example "
                f"{default!r}."
            )
    return int(entries[0]) if type(default) is int and not axis else value


AXES = (
    "training.learning_rate",
    "training.momentum",
    "training.weight_decay",
    "training.decay",
    "malicious.strength",
    "malicious.gamma",
)


def resolve(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the config with every default filled in, as JSON values: what a sweep stores.

    What the values mean is checked where they are parsed (``vfljax.sweep.experiment``).

    Raises:
      UserError: for a field that does not exist or is of another type than its default.
    """
    return _merge(DEFAULT, _plain(config), "")


class ChangedField(NamedTuple):
    """A field in which two configs differ."""

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.field}: {self.before} -> {self.after}"


def differences(a: Mapping[str, Any], b: Mapping[str, Any], path: str = "") -> list[ChangedField]:
    """Returns the fields in which two resolved configs differ.

    Args:
      a: the first config, or a group of it.
      b: the other.
      path: of the group.

    >>> print(*differences({"seeds": 3, "model": {"cut": 16}}, {"seeds": 3, "model": {"cut": 8}}))
    model.cut: 16 -> 8
    """
    fields = []
    for key in [*a, *(k for k in b if k not in a)]:
        name = _below(path, key)
        left, right = a.get(key, "absent"), b.get(key, "absent")
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            fields += differences(left, right, name)
        elif left != right or (isinstance(left, Mapping) != isinstance(right, Mapping)):
            fields.append(ChangedField(name, left, right))
    if path in FREE and not fields and list(a) != list(b):
        fields.append(ChangedField(path, f"order {list(a)}", list(b)))
    return fields
