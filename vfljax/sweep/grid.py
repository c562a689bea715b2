"""The trials of a config as a table: one row for each trial, one column for each of its numbers and options.

A *configuration* is one value for every knob and number of a method. A *trial* trains it in one federation
from one seed. The columns are those of the stored results: ``trial``, ``configuration``, ``method``,
``defenses`` (the chain, such as "kdk+noise"), ``federation``, ``seed``, the fields of ``config.model`` that a
method sets (``model.top``), knobs and options (``kdk.epsilon``, ``kdk.anchor``), and the numbers of training. A
cell that a method lacks is NaN. Programs are groups of the rows (``vfljax.sweep.specs``). Host only.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportReturnType=false, reportCallIssue=false, reportAssignmentType=false

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from vfljax import attacks, defenses, models, plugins
from vfljax.config import Config, Model, as_axis, check_distinct, combinations, convert, make
from vfljax.errors import MOST_WHOLE, Field, UserError, check, unknown, unknown_row
from vfljax.federation import optimizers, uploads
from vfljax.models.making import tuples
from vfljax.store import StoredSweep
from vfljax.types import MALICIOUS, NO_SPLIT, Federation

METHOD_MODEL = ("top", "top_hidden")  # model fields that a method may set; it cannot set bottoms
IDENTITY = ("trial", "configuration", "method", "defenses", "federation", "seed")

# --- from a mapping to a config whose names are known ---


def parse(values: Mapping[str, Any], *, beyond_limits: bool = False) -> Config:
    """Returns the record of a config, checked against the tables of defenses, attacks and networks.

    Args:
      values: a mapping with any of the fields of ``Config``.
      beyond_limits: whether sizes are allowed that are refused otherwise, as in sweeps that are stored.

    Raises:
      UserError: in one line, for an invalid config.
    """
    config = make(values, beyond_limits=beyond_limits)
    check_new(config)
    _check_tables(config)
    if not config.grid:
        raise UserError("config.grid is empty: give at least {'undefended': {}}.")
    for method in config.grid:
        _check_method(config, method)
    check_attacks(config)
    check_trials(config, [Federation()])  # of one federation; of all once they are known
    return config


def experiment_of(sweep: StoredSweep) -> Config:
    """Returns the config of a stored sweep. Placeholders replace rows of plugins that are not in use."""
    plugins.stand_in(sweep.plugins)
    return parse(sweep.config, beyond_limits=True)


def _check_tables(config: Config) -> None:
    """Refuses names that are in no table, and a strength that an upload does not have."""
    for field, name, table in (
        ("model.top", config.model.top, models.TOPS),
        ("training.optimizer", config.training.optimizer, optimizers.TABLE),
        ("malicious.upload", config.malicious.upload, uploads.TABLE),
    ):
        if name not in table:
            raise unknown(Field(field), name, table)
    upload = config.malicious.upload
    for strength in as_axis(config.malicious.strength):
        remedy = f" It is that of config.malicious.upload={upload!r}."
        most = uploads.TABLE[upload].most
        check(Field("malicious.strength"), strength, 0.0, most, remedy=remedy)


def _check_method(config: Config, name: str) -> None:
    """Refuses a method with an unknown defense, and invalid or missing values of knobs and options."""
    entry, field = config.grid[name], f"grid.{name}"
    if not isinstance(entry, Mapping):
        raise UserError(
            "is no chain", field=field, value=entry, remedy="give {defense: {knob: values}}"
        )
    model_of(config, name)
    for defense, values in _chain(entry).items():
        if defense not in defenses.TABLE:
            raise unknown_row("defense", defense, defenses.TABLE)
        place = f"{field}.{defense}"
        if not isinstance(values, Mapping):
            raise UserError(
                "is no group of knobs", field=place, value=values, remedy="give {knob: values}"
            )
        row = defenses.TABLE[defense]
        for knob in values:
            if knob not in row.knobs and knob not in row.options:
                raise unknown(f"knob of {defense}", knob, [*row.knobs, *row.options])
        for knob in row.required:
            if knob not in values:
                raise UserError(f"config.{place} gives no {knob}: name its value(s).")
        for knob, axis in values.items():
            option = row.options.get(knob)
            _check_axis(f"{place}.{knob}", axis, option.default if option else None)
    if config.federations == (NO_SPLIT,) and _needs_top(entry):
        raise UserError(
            "needs a top model", field=field, remedy="add 'split' to config.federations"
        )


def _check_axis(field: str, axis: Any, default: Any) -> None:
    """Refuses values that a knob (``default`` is None) or an option of such a default cannot have. Ranges are
    the factory's to check."""
    values = as_axis(axis)
    if not values:
        raise UserError("is empty", field=field, remedy="give at least one value")
    for value in values:
        if default is None:
            check(Field(field), value, -math.inf, infinite=True)
        elif type(default) is int and type(value) is not int:
            raise UserError("is no whole number", field=field, value=value, remedy="give one")
        elif not isinstance(value, (str, bool, int, float)):
            remedy = "give a text, a number, True or False, or a tuple of these"
            raise UserError("is no option", field=field, value=value, remedy=remedy)
    check_distinct(field, values)


def check_attacks(config: Config) -> None:
    """Refuses unknown attacks, axes that name a value twice, and numbers that are too large."""
    points = 0
    for name, values in config.attacks.items():
        if name not in attacks.TABLE:
            raise unknown_row("attack", name, attacks.TABLE)
        if not isinstance(values, Mapping):
            field = f"attacks.{name}"
            raise UserError(
                "is no group", field=field, value=values, remedy="give {option: values}"
            )
        for option, axis in values.items():
            field, limit = f"attacks.{name}.{option}", "attack_numbers"
            for value in as_axis(axis):
                if isinstance(value, (int, float)) and value < math.inf:
                    limit = "attack_steps" if option == "steps" else limit
                    check_size(config, limit, field, value)
                if isinstance(value, int) and abs(value) > MOST_WHOLE:
                    check(Field(field), value, -MOST_WHOLE, MOST_WHOLE, whole=True)
            check_distinct(field, as_axis(axis))
        points += _points(values) * len(config.attackers)
    check_count(config, "attack_points", "attacks", points, "attacks on every trial")


# --- limits of a new sweep ---

# A grid of three axes of a thousand values is a short line of a config and 10^9 trials. The limits are far
# above any sweep whose report somebody reads, about where planning alone takes minutes.
LIMITS = {
    "trials": 50_000,  # 160 times the quickstart's; each is planned one by one
    "seeds": 10_000,  # intervals shrink by their root; each seed splits and orders all rows
    "epochs": 1_000_000,  # of a trial or a teacher; every row of results lists a loss for each
    "parties": 1_000,  # each has a network of its own in every program
    "programs": 500,  # each compiles for some seconds to minutes
    "attack_points": 10_000,  # attack variants times points of knobs, run on every trial
    "attack_steps": 10_000_000,  # 400 times the published 25 x 1,024
    "attack_numbers": 1_000_000,  # any other number of an attack: a count, a width, a batch
}
LIFT = Field("beyond_limits", ", or lift all limits by `vfljax sweep --beyond_limits`")
LONGEST = 200  # characters of a name


def check_size(config: Config, limit: str, field: str, value: float) -> None:
    """Raises UserError for a number that is above its limit.

    Args:
      config: may lift all limits.
      limit: a name of ``LIMITS``.
      field: of the config.
      value: the number.
    """
    if value > LIMITS[limit] and not config.beyond_limits:
        what = f"is beyond the limit of {LIMITS[limit]:,}"
        raise UserError(what, field=field, value=value, remedy=("choose at most that", LIFT))


def check_count(config: Config, limit: str, field: str, count: int, what: str) -> None:
    """Raises UserError for a product of axes that is above its limit.

    Args:
      config: may lift all limits.
      limit: a name of ``LIMITS``.
      field: the group of the config that has the axes.
      count: the product of their lengths.
      what: a word for what is counted, such as "trials".
    """
    if count > LIMITS[limit] and not config.beyond_limits:
        what = f"makes {count:,} {what}, beyond the limit of {LIMITS[limit]:,}"
        raise UserError(what, field=field, remedy=("give fewer values", LIFT))


def _points(axes: Mapping[str, Any]) -> int:
    """Returns the number of combinations of the values of some axes."""
    return math.prod(len(as_axis(axis)) for axis in axes.values())


def check_new(config: Config) -> None:
    """Raises UserError for sizes beyond ``LIMITS``, and for texts that a report could not show."""
    for limit, field in (
        *(("seeds", "seeds"), ("seeds", "first_seed"), ("parties", "parties.passive")),
        *(("epochs", "training.epochs"), ("epochs", "teacher.epochs")),
    ):
        check_size(config, limit, field, operator.attrgetter(field)(config))
    check_text("name", config.name)
    for note in config.notes:
        check_text("notes", note, MOST_WHOLE, allowed="\n\t")
    for name in config.parties.names:
        check_text("parties.names", name)
    for method in config.grid:
        check_text("grid", method)


def check_text(field: Field | str, text: Any, longest: int = LONGEST, allowed: str = "") -> None:
    """Refuses a value that is not a text, is blank or too long, or has characters that cannot be printed.

    Args:
      field: that holds the text.
      text: the text.
      longest: the most characters.
      allowed: unprintable characters that it may have all the same.
    """
    given = text if isinstance(text, str) else ""
    bad = next((c for c in given if not c.isprintable() and c not in allowed), "")
    for wrong, what, remedy in (
        (given is not text, "is no text", "put it between quotation marks"),
        (bad, f"holds the character {bad!a}, which cannot be printed", "leave it out"),
        (not given.strip(), "is blank", "write something"),
        (len(given) > longest, "is too long", f"choose at most {longest} characters"),
    ):
        if wrong:
            value = given[:LONGEST] or text
            raise UserError(what, field=field, value=value, remedy=remedy)


# --- methods: the entries of config.grid ---


def _chain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the defenses of a method and the values of their knobs and options."""
    return {name: values for name, values in entry.items() if name != "model"}


def _needs_top(entry: Mapping[str, Any]) -> bool:
    """Whether a method can be trained with model splitting only."""
    return any(defenses.TABLE[name].needs_top for name in _chain(entry))


def _trained(entry: Mapping[str, Any], federations: Iterable[Federation]) -> list[Federation]:
    """Returns those of the federations that a method is trained in."""
    return [f for f in federations if f.split or not _needs_top(entry)]


def _tops(config: Config, method: str) -> dict[str, Any]:
    """Returns the fields of ``METHOD_MODEL`` that a method sets. Raises UserError for others."""
    field = f"grid.{method}.model"
    given = config.grid[method].get("model", {})
    if not isinstance(given, Mapping):
        remedy = f"must be a group of fields: {', '.join(METHOD_MODEL)}"
        raise UserError(field=field, value=given, remedy=remedy)
    for name in given:
        if name not in METHOD_MODEL:  # attacks hold one bottom, and baselines one cut
            raise unknown((f"field of config.{field}",), name, METHOD_MODEL)
    return {name: convert(Model, name, value, field) for name, value in given.items()}


def model_of(config: Config, method: str) -> Model:
    """Returns the sweep's model with the top model that the method names.

    Args:
      method: its name in ``config.grid``.
    """
    tops = _tops(config, method)
    model = msgspec.structs.replace(config.model, **tops) if tops else config.model
    if model.top not in models.TOPS:
        raise unknown(Field(f"grid.{method}.model.top"), model.top, models.TOPS)
    return model


def model_name(model: Model) -> str:
    """Returns a name such as 'generator-16' for the fields of a model that methods may set."""
    return "-".join(_field_text(getattr(model, field)) for field in METHOD_MODEL)


def _field_text(value: Any) -> str:
    """Returns a model field as text for a table column or a name: 'generator', '16-8', 'none'."""
    return "-".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def check_trials(config: Config, federations: Sequence[Federation]) -> None:
    """Raises UserError for more trials in these federations than ``LIMITS`` allow; none is built yet.

    Args:
      federations: those that it is trained in.
    """
    count = sum(
        math.prod(map(_points, _chain(entry).values())) * len(_trained(entry, federations))
        for entry in config.grid.values()
    )
    count *= _points(config.numbers) * config.seeds
    check_count(config, "trials", "grid", count, f"trials of {config.seeds:,} seeds")


# --- the table ---


def configurations(config: Config) -> pd.DataFrame:
    """Returns the trials' columns but for ``trial``, ``federation`` and ``seed``, a row for each configuration.

    Methods come in listing order; of a method, the numbers of training change fastest, then the last knob or
    option of its last defense.
    """
    rows: list[dict[str, Any]] = []
    tops, knobs, options = {}, {}, {}  # columns in the order in which they first appear
    numbers = combinations(config.numbers, "training")
    for method, entry in config.grid.items():
        chain = _chain(entry)
        axes = {f"{name}.{k}": axis for name, of in chain.items() for k, axis in of.items()}
        named = {f"model.{k}": _field_text(v) for k, v in _tops(config, method).items()}
        tops |= named
        defaults = {}
        for name, values in chain.items():
            row = defenses.TABLE[name]
            of_knobs, of_options = row.knobs_and_options(values)
            rest = {k: p.default for k, p in row.knobs.items() if k not in values}
            defaults |= {f"{name}.{k}": value for k, value in rest.items()}
            knobs |= dict.fromkeys(f"{name}.{k}" for k in (*of_knobs, *rest))
            options |= dict.fromkeys(f"{name}.{k}" for k in of_options)
        identity = {"method": method, "defenses": "+".join(chain), **named, **defaults}
        points = combinations(axes, f"grid.{method}")
        rows += [{**identity, **point, **of} for point in points for of in numbers]
    columns: dict[str, Any] = {"configuration": range(len(rows))}
    for name in ("method", "defenses", *tops, *knobs, *options, *config.numbers):
        kind = float if name in knobs or name in config.numbers else object
        values = [tuples(row.get(name, math.nan)) for row in rows]
        columns[name] = pd.Series(values, dtype=kind)
    return pd.DataFrame(columns)


def trials(config: Config, federations: Sequence[Federation]) -> pd.DataFrame:
    """Returns the table of trials, configurations outermost, seeds innermost.

    Args:
      federations: those to train; a method that needs a top model is left out of federations without one.
    """
    points, seeds = configurations(config), config.trained_seeds
    trained = {m: [f.name for f in _trained(e, federations)] for m, e in config.grid.items()}
    places = [(c, name) for c, method in enumerate(points["method"]) for name in trained[method]]
    table = points.iloc[np.repeat([c for c, _ in places], len(seeds)).astype(int)]
    table = table.reset_index(drop=True)
    identity = {
        "trial": np.arange(len(table)),
        "federation": np.repeat(np.array([name for _, name in places], object), len(seeds)),
        "seed": np.tile(np.asarray(seeds), len(places)),
    }
    table = table.assign(**identity)
    # the optimizer of an honest federation does not read gamma
    table.loc[~is_malicious(table), "gamma"] = 0.0
    return table[[*IDENTITY, *(name for name in table if name not in IDENTITY)]]


def added(stages: Sequence[tuple[Config, pd.DataFrame]]) -> list[pd.DataFrame]:
    """Returns the trials that each stage of a sweep adds to those before, numbered on from theirs.

    A sweep that is extended keeps its trials, and the numbers of its configurations.

    Args:
      stages: the configs that the sweep had, the first one first, with their tables of trials.

    Raises:
      UserError: if the last config lacks trials that an earlier one has.
    """
    numbers: dict[str, int] = {}  # of configurations, by their numbers and options as text
    places: list[set[tuple[int, str, int]]] = []  # of trials, by stage
    seen: set[tuple[int, str, int]] = set()
    out = []
    for config, table in stages:
        rows = trial_rows(configurations(config).drop(columns="configuration"))
        keys = [repr(sorted(row.items())) for row in rows]
        number = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
        table = table.assign(configuration=number[table["configuration"].to_numpy()])
        of = zip(table["configuration"], table["federation"], table["seed"], strict=True)
        places.append(set(ordered := list(of)))
        new = table[[place not in seen for place in ordered]]
        out.append(new.assign(trial=len(seen) + np.arange(len(new))).reset_index(drop=True))
        seen |= places[-1]
    if left_out := len(seen - places[-1]):
        add = "add to config.grid, seeds or federations"
        if stages[-1][0].data.name == "wire":
            add = "name all recordings that it has, in --wire and --after"
        raise UserError(
            f"the stored sweep has {left_out} trials that this config leaves out: {add}, or choose another "
            "--workdir. Nothing was changed."
        )
    return out


def is_malicious(table: pd.DataFrame) -> pd.Series:
    """Returns whether each trial has malicious parties [trials] bool."""
    return table["federation"].str.startswith(MALICIOUS)


def is_split(table: pd.DataFrame) -> pd.Series:
    """Returns whether each trial has a top model [trials] bool."""
    return table["federation"] != NO_SPLIT


def trial_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns each row of the table without the cells that its method lacks, as results are stored."""
    return [
        {name: value for name, value in row.items() if value == value}
        for row in table.to_dict("records")
    ]


def knobs_of(row: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Returns the knobs of a row's chain, by the defense's name; ``row`` is one of ``trial_rows``."""
    return {
        name: {knob: row[f"{name}.{knob}"] for knob in defenses.TABLE[name].knobs}
        for name in filter(None, row["defenses"].split("+"))
    }


def options_of(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the options of a row's chain that the config names, by the defense's name, likewise."""
    return {
        name: {
            option: row[f"{name}.{option}"]
            for option in defenses.TABLE[name].options
            if f"{name}.{option}" in row
        }
        for name in filter(None, row["defenses"].split("+"))
    }


def defense_values(config: Config) -> dict[str, list[tuple[dict[str, float], dict[str, Any]]]]:
    """Returns the knobs and options that the grid gives every defense, by the defense's name."""
    out: dict[str, list[tuple[dict[str, float], dict[str, Any]]]] = {}
    for row in trial_rows(configurations(config)):
        options = options_of(row)
        for name, knobs in knobs_of(row).items():
            pair = knobs, options[name]
            if pair not in out.setdefault(name, []):
                out[name].append(pair)
    return out
