"""The config of a sweep: typed records, and how files, flags and Python fill them.

A config file's ``get_config()`` returns ``ordered({...})`` with any of the fields of ``Config``.
In ``grid`` each entry is a method: ``{method: {defense: {knob: value or tuple of values}}}``; a tuple is
an axis of the grid. Defenses of one method are chained in listing order. A method's entry ``"model"``
replaces ``top`` and ``top_hidden`` of ``config.model``. The field ``attacks`` has the form
``{attack: {option: value or tuple of values}}``. Any field can be overridden on the command line, for example
by ``--config.training.epochs=100``.
"""

from __future__ import annotations

from vfljax.config.axes import as_axis, check_distinct, combinations
from vfljax.config.files import described, from_file, located, ordered, returned
from vfljax.config.making import DEFAULT, FIELDS, FREE, changed, convert, expected, make, resolve
from vfljax.config.records import Config, Goal, Malicious, Model, Parties, Reproduces, Teacher

__all__ = [
    "DEFAULT",
    "FIELDS",
    "Config",
    "Goal",
    "Malicious",
    "Model",
    "Parties",
    "Reproduces",
    "Teacher",
    "from_file",
    "make",
    "ordered",
    "resolve",
]
