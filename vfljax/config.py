"""Config files: how they are read, and every field with its default.

A config file's ``get_config()`` returns ``ordered({...})`` with any of the fields of ``DEFAULT``.
In ``grid`` each entry is a method: ``{method: {defense: {knob: value or tuple of values}}}``; a tuple is
an axis of the grid. Defenses of one method are chained in listing order. A method's entry ``"model"``
replaces ``top`` and ``top_hidden`` of ``config.model``. The field ``attacks`` has the form
``{attack: {option: value or tuple of values}}``. Any field can be overridden on the command line, for example
by ``--config.training.epochs=100``.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import operator
import os
import pathlib
import types
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from vfljax.errors import UserError, nearest, packaged, raised, unknown, user_path


class ConfigField(NamedTuple):
    """A field of a config: its default, and a line that explains it."""

    default: Any
    meaning: str


def _grouped(fields: Mapping[str, ConfigField]) -> dict[str, Any]:
    """Returns the defaults of fields, which are given by dotted path, as nested groups."""
    out: dict[str, Any] = {}
    for path, field in fields.items():
        *groups, name = path.split(".")
        group = functools.reduce(lambda group, key: group.setdefault(key, {}), groups, out)
        group[name] = field.default
    return out


_TABLE: dict[str, tuple[Any, str]] = {
    "name": ("sweep", "title of the sweep and of its report"),
    "notes": ((), "sentences that the report prints on top"),
    "seeds": (3, "how many seeds: first_seed, ..., first_seed + seeds - 1"),
    "first_seed": (0, "the first seed"),
    "data.name": ("digits", "data set, one of those that `vfljax data` lists"),
    "data.dir": ("", "folder (or file) of data sets that do not come with the install"),
    "data.options": ({}, "options of the data set's loader, which `vfljax data` lists"),
    "data.train": (0.6, "rows to train on: a share up to 1.0 (of the published part), or a count"),
    "data.validation": (0.2, "validation rows, likewise"),
    "data.test": (0.2, "test rows, likewise"),
    "data.scaling": ("standard", "scaling of columns: standard, minmax, range or none"),
    "data.scaling_rows": ("train", "whose statistics scale: train, each seed's own rows, or all"),
    "data.permute_labels": (0.0, "share of rows whose labels are permuted; 1 leaves no signal"),
    "data.resident_gb": (4.0, "features larger than this stay on the host; batches are fetched"),
    "parties.passive": (1, "how many passive parties there are"),
    "parties.label_features": (True, "whether the label party owns columns"),
    "parties.rule": ("contiguous", "division of features; images also rows, or grid (patches)"),
    "parties.shares": ((), "of columns, pixels or words, passive parties first; (): equal"),
    "parties.columns": ((), "of a table: one tuple of names or globs a party; '*' is the rest"),
    "parties.names": ((), "names in the report, passive parties first, the label party last"),
    "model.bottom": ("mlp", "network of each party that owns columns"),
    "model.hidden": ((64,), "widths of the hidden layers of the bottoms"),
    "model.activation": ("relu", "activation of the hidden layers of the bottoms"),
    "model.output": ("identity", "activation at the end of the bottoms, with model splitting"),
    "model.cut": (16, "width of each party's embedding; without model splitting it is C"),
    "model.top": ("head", "network of the label party that reads all embeddings"),
    "model.top_hidden": ((), "widths of the hidden layers of the top model"),
    "model.aggregation": ("concatenate", "how embeddings are joined: concatenate, sum or mean"),
    "model.weights": ("default", "how linear layers start; 'torch' is as in PyTorch"),
    "model.options": ({}, "other fields of the bottom network, for example {'width': 16}"),
    "model.pretrained": ("", "file of weights that the bottoms start from"),
    "training.epochs": (30, "epochs of training"),
    "training.batch_size": (32, "rows of a batch"),
    "training.optimizer": ("sgd", "optimizer of every party: sgd or adam"),
    "training.learning_rate": (0.1, "learning rate of every party"),
    "training.momentum": (0.9, "momentum of sgd"),
    "training.weight_decay": (5e-4, "weight decay of every party"),
    "training.milestones": ((), "epochs from which the learning rate is multiplied by decay"),
    "training.decay": (0.1, "factor of the learning rate at each milestone"),
    "training.drop_last": (False, "whether the last batch of an epoch is left out if smaller"),
    "training.class_weights": ((), "in the label party's cross entropy, one a class; (): all 1"),
    "training.scope": ("all", "whose cut gradients defenses treat: all bottoms, or passive ones"),
    "training.precision": ("float32", "of products, or bfloat16: see vfljax.models.precision"),
    "training.evaluation": ("final", "'released' adds the test AUC pooled over each epoch's steps"),
    "training.record": ((0, -1), "epochs whose exchange is stored; the last, -1, always is"),
    "training.record_rows": (0, "training rows whose exchange is stored and attacked; 0: all"),
    "training.record_parameter_gradients": (False, "of last layers, without model splitting"),
    "malicious.parties": (((0,),), "an axis: a tuple of malicious parties for each federation"),
    "malicious.gamma": (1.0, "strength of the malicious optimizer; 0 is honest"),
    "malicious.rule": ("intended", "rule of the paper, or of its class: released, released_torch2"),
    "malicious.upload": ("honest", "what malicious parties send: vfljax.federation.uploads"),
    "malicious.strength": (0.0, "strength of their upload; 0 is honest"),
    "teacher.network": ("mlp", "any bottom network that reads the label party's columns"),
    "teacher.options": ({}, "other fields of the teacher's network"),
    "teacher.pretrained": ("", "file of weights that the teacher starts from"),
    "teacher.hidden": ((64,), "widths of the hidden layers of the teacher"),
    "teacher.epochs": (20, "epochs of the teacher's training"),
    "teacher.batch_size": (32, "rows of a batch of the teacher"),
    "teacher.learning_rate": (1e-3, "learning rate of the teacher"),
    "teacher.temperature": (1.0, "divisor of the teacher's logits before their softmax"),
    "grid": ({"undefended": {}}, "{method: {defense: {knob: value or tuple of values}}}"),
    "attacks": (
        {"passive": {}, "active": {}, "direct": {}, "norm": {}},
        "{attack: {option: value or tuple of values}}",
    ),
    "known_draws": (1, "draws of the known labels for each seed: figures are means over them"),
    "canaries": (0, "training rows per seed whose labels are coins, to audit a claimed epsilon"),
    "attackers": (((0,),), "an axis: who attacks where all parties were honest; several collude"),
    "federations": ((), "trained: of split, malicious, no_split; (): what the attacks are for"),
    "goal.max_leak": (1.0, "largest leak that the report accepts of a defense; 1: any"),
    "goal.max_cost": (1.0, "largest loss of test utility that the report accepts; 1: any"),
    "goal.keep_gain": (0.5, "share of the gain over the label party alone that is to be kept"),
    "reproduces": ({}, "the paper's table that this is a run of: vfljax.sweep.records.Reproduces"),
    "execution.width": (0, "trials mapped at once on a device; 0: chosen by backend"),
    "execution.shard_seconds": (20.0, "about how long a shard trains before it is stored"),
}
FIELDS = {path: ConfigField(*row) for path, row in _TABLE.items()}
DEFAULT = _grouped(FIELDS)

# groups whose keys are names of methods, defenses, attacks or options; other modules check them
FREE = ("grid", "attacks", "reproduces", "data.options", "model.options", "teacher.options")


def ordered(values: Mapping[str, Any]) -> ConfigDict:
    """Returns a config file's values as a ConfigDict in listing order (by default it sorts names). All fields
    that the file does not name have their default, so that every field can be overridden."""
    return _ordered(_filled(DEFAULT, values, ""))


class ConfigFile(NamedTuple):
    """The file of a config, and the variant that is asked of it."""

    given: pathlib.Path  # as the user names it
    path: pathlib.Path  # likewise, or the copy that comes with vfljax if no file is there
    variant: str


def located(source: str) -> ConfigFile:
    """Returns the file and the variant of FILE or FILE:VARIANT; a folder's name may have colons too.

    Raises:
      UserError: if there is no such file.
    """
    parts = source.split(":")
    for count in range(len(parts), 0, -1):
        given = pathlib.Path(os.path.expanduser(":".join(parts[:count])))
        path = packaged(given)
        if path.is_file():
            return ConfigFile(given, path, ":".join(parts[count:]))
    user_path(source, "config")
    raise UserError(f"config {parts[0]!r} is not a file: try configs/quickstart.py.")


def from_file(source: str, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read a config file and change some of its fields.

    Args:
      source: the path of a Python file with ``get_config()``, which may be a config that comes with vfljax.
        PATH:VARIANT calls ``get_config("VARIANT")``.
      fields: new values as texts, by dotted path, such as {"training.epochs": "100"}.

    Returns:
      the config, with every field that the file does not name at its default.

    Raises:
      UserError: for a file that is missing or raises, and for a field that does not exist.
    """
    _, file, variant = located(source)
    path = str(file)
    try:
        loader = SourceFileLoader("config", path)
        module = types.ModuleType("config")
        module.__file__ = path
        loader.exec_module(module)
        values = module.get_config(variant) if variant else module.get_config()
    except (Exception, SystemExit) as error:  # a config file is a program: it may raise anything
        raise UserError(f"config: {raised(error, path)}") from error
    if not isinstance(values, (Mapping, ConfigDict)):
        raise UserError(
            f"{path}: get_config() returned {type(values).__name__}: let it return ordered({{...}})."
        )
    config = _filled(DEFAULT, _plain(values), "")
    for field, text in (fields or {}).items():
        _change(config, field, text)
    return config


def _change(config: dict[str, Any], field: str, text: str) -> None:
    """Sets the field at a dotted path to the value that a text stands for."""
    *groups, last = field.split(".")
    group: Any = config
    for name in groups:
        group = group.get(name) if isinstance(group, dict) else None
    if isinstance(group, dict) and last in group:
        group[last] = _from_text(text, group[last])
    elif any(field.startswith(f"{free}.") for free in FREE):
        raise UserError(
            f"the config file has no field {last!r} for --config.{field} to change: add it to the "
            "file, or give a config that has it."
        )
    else:
        raise _unknown_field(field)


def _from_text(text: str, present: Any) -> Any:
    """Returns the value that a text stands for, or the text itself; ``typed`` checks its type later."""
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
    """Returns the given fields in their order, then the missing ones at their default. Ints of float fields
    become floats, so that overrides may be floats; 1 stays an int, as 1 row differs from the share 1.0."""
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


def _unknown_field(path: str) -> UserError:
    """Returns the error for an unknown field. It suggests a similar field of the same group, else of any."""
    group, _, name = str(path).rpartition(".")
    known = [field for field in FIELDS if group and field.startswith(f"{group}.")] or list(DEFAULT)
    last = {field: field.rpartition(".")[2] for field in (*known, *FIELDS)}
    found = nearest(name, last.values())
    near = [field for field in last if last[field] in found]
    return unknown("config field", path, known, near=[f for f in near if f in known] or near)


def _below(path: str, name: str) -> str:
    """The dotted path of a field in the group ``path``, which is "" for the whole config."""
    return f"{path}.{name}" if path else name


def _plain(value: Any) -> Any:
    """Returns the value in JSON types: dicts, lists and scalars."""
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
        where = f"config.{path}" if path else "config"
        raise UserError(f"{where}={value!r} must be a group of fields: {', '.join(default)}.")
    for key in value:
        if key not in default:
            raise _unknown_field(_below(path, key))
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
    """Checks the type of a field's value, and returns it in JSON types.

    Args:
      default: the field's default, whose type the value must have.
      value: the field's value, which may be a tuple of numbers if the field is one of ``AXES``.
      path: the field's dotted path.
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
    """Returns the config with every default filled in, in JSON types. A sweep stores this form.

    ``vfljax.sweep.experiment`` checks what the values mean when it parses them.

    Raises:
      UserError: for a field that does not exist or is of another type than its default.
    """
    return _merge(DEFAULT, _plain(config), "")


def described(values: Mapping[str, Any]) -> str:
    """Returns two lines for each field of a resolved config: its value and default, and what it means."""
    lines, defaults = [], resolve({})
    for path, field in FIELDS.items():
        names = path.split(".")
        value, default = (functools.reduce(operator.getitem, names, v) for v in (values, defaults))
        origin = "the default" if value == default else f"default {default!r}"
        axis = "; a tuple trains each of its values" if path in AXES else ""
        lines += [f"{path} = {value!r} ({origin})", f"    {field.meaning}{axis}"]
    return "\n".join(lines)
