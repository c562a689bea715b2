"""Which trials share a compiled program.

Trials whose ``Spec`` is equal form a group. Every number that differs within one is an array. Trials of several
chains of defenses may be given one ``Spec``, whose chain has the defenses of all of them. Host only.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportReturnType=false, reportCallIssue=false, reportAssignmentType=false

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vfljax import attacks, defenses
from vfljax.config import Config
from vfljax.defenses.rows import DefenseRow
from vfljax.errors import slug
from vfljax.sweep.grid import check_count, is_malicious, is_split, model_name, model_of
from vfljax.sweep.specs import DataShape, chain_of, first_of_each, knowers, trial_spec
from vfljax.types import DefenseSpec, Spec


class Group(NamedTuple):
    """Trials of one program."""

    name: str
    spec: Spec
    trials: pd.DataFrame  # their rows of the table of ``grid.trials``, numbered from 0
    weights: int = 0  # how many numbers a trial's networks and codebooks have


class _Structure(NamedTuple):
    """What decides a trial's program within a sweep."""

    split: bool
    chain: tuple[DefenseSpec, ...]
    model: str  # name of the top model; "": the sweep's own


class _Host(NamedTuple):
    """A chain that trials of several chains are trained with, and how many they are."""

    chain: tuple[DefenseSpec, ...]
    trials: int


def _structures(
    config: Config, shape: DataShape, trials: pd.DataFrame
) -> dict[tuple[int, bool], _Structure]:
    """Returns the structure of each configuration with and without a top model, in order of appearance.

    Trials whose defenses all have neutral knobs and default options are trained with each other's defenses
    too, at neutral knobs, where ``_union`` finds that this costs less than a program of their own; undefended
    ones join the first such chain. Their results equal those of their own chain bit for bit, or by rounding.

    Args:
      shape: the data's classes, rows and columns.
      trials: the table of the sweep's trials.
    """
    own = model_name(config.model)
    tops = {method: model_name(model_of(config, method)) for method in config.grid}
    names = {method: "" if name == own else name for method, name in tops.items()}
    count = collections.Counter(zip(trials["configuration"], is_split(trials), strict=True))
    owns: dict[_Structure, int] = collections.Counter()  # trials of each structure as it is named
    found: dict[tuple[int, bool], _Structure] = {}
    for row in first_of_each(trials):
        place = row["configuration"], row["split"]
        found[place] = _Structure(row["split"], chain_of(row), names[row["method"]])
        owns[found[place]] += count[place]
    hosts: dict[tuple[Any, ...], _Host] = {}
    joined: dict[_Structure, tuple[Any, ...]] = {}  # the place of each structure's host
    for of, number in owns.items():
        if not of.chain or not all(map(_can_be_neutral, of.chain)):
            continue
        where = of.model, of.split, _whole_batch_knowers(of), not all(map(_can_be_idle, of.chain))
        # undefended trials will join the first chain
        waiting = owns[of._replace(chain=())] if where not in hosts else 0
        new = _Host(of.chain, number + waiting)
        union = new if where not in hosts else None
        if where in hosts and not where[-1]:
            union = _union(config, shape, of.split, hosts[where], new)
        if union is not None:
            hosts[where], joined[of] = union, where
    for of in owns:
        if not of.chain:
            places = [place for place in hosts if place[:2] == (of.model, of.split)]
            # a chain that costs little, and of which not all rows are recorded, if there is one
            places.sort(key=lambda place: (place[-1], bool(place[2])))
            if places:
                joined[of] = places[0]
    return {
        place: of._replace(chain=hosts[joined[of]].chain) if of in joined else of
        for place, of in found.items()
    }


def _can_be_neutral(defense: DefenseSpec) -> bool:
    """Returns whether a trial without the defense can be trained with it."""
    # an option may be another rule: KDk anchored at its teacher changes labels at epsilon = 0 too
    return defenses.TABLE[defense.name].neutral is not None and not defense.options


def _can_be_idle(defense: DefenseSpec) -> bool:
    """Returns whether a defense costs little at neutral knobs, and leaves other defenses as they are. One that
    changes the loss compares all rows of a batch, or trains networks, at any knobs."""
    row = defenses.TABLE[defense.name]
    changes = (defenses.having(slot, (defense,)) for slot in ("loss", "read", "codebook"))
    return row.network is DefenseRow.network and not any(changes)


def _whole_batch_knowers(of: _Structure) -> frozenset[str]:
    """Returns the attacks that read whole batches of this chain's trials, which all rows are recorded for."""
    known = knowers(of.chain, of.split) & set(attacks.TABLE)
    return frozenset(name for name in known if attacks.TABLE[name].whole_batches)


# numbers of the cut that idle defenses may treat for one program less: on two cores this takes about as long
# as tracing and compiling a program
IDLE_NUMBERS = 1e8


def _union(config: Config, shape: DataShape, split: bool, host: _Host, new: _Host) -> _Host | None:
    """Returns the chain of both, in the table's order; None if it cannot be built, would change an order, or
    costs more than a program of its own: large sweeps train long, and small ones mostly compile."""
    both = {*host.chain, *new.chain}
    chain = tuple(sorted(both, key=lambda d: list(defenses.TABLE).index(d.name)))
    ordered = all(tuple(d for d in chain if d in of.chain) == of.chain for of in (host, new))
    steps = config.training.epochs * -(-shape.num_rows // config.training.batch_size)
    width = (config.model.cut if split else shape.num_classes) * len(shape.inputs)
    idle = sum(of.trials * (len(chain) - len(of.chain)) for of in (host, new))
    numbers = idle * steps * config.training.batch_size * width
    if not ordered or numbers > IDLE_NUMBERS:
        return None
    try:
        defenses.build(chain, {d.name: defenses.TABLE[d.name].neutral or {} for d in chain})
    except ValueError:  # one would replace what another makes
        return None
    return _Host(chain, host.trials + new.trials)


def check_programs(config: Config, shape: DataShape, trials: pd.DataFrame) -> None:
    """Raises UserError for more programs than the config's limits allow, before any is built."""
    count = len({*_structures(config, shape, trials).values()})
    check_count(config, "programs", "grid", count, "programs to compile")


def groups(config: Config, shape: DataShape, trials: pd.DataFrame) -> list[Group]:
    """Returns trials grouped by equal Spec, in order of first appearance.

    Honest and malicious trials share a program (gamma is a number).

    Args:
      shape: the data's classes, rows and columns.
      trials: the table of the sweep's trials.
    """
    malicious = bool(is_malicious(trials).any())
    structures, specs = _structures(config, shape, trials), {}
    methods = trials.drop_duplicates("configuration").set_index("configuration")["method"]
    for (configuration, split), of in structures.items():
        if of not in specs:
            model = model_of(config, methods[configuration])
            specs[of] = trial_spec(config, shape, split, model, of.chain, malicious)
    names: dict[Spec, str] = {}
    for of, spec in specs.items():
        name = _group_name(spec, of.model)
        taken = spec not in names and name in names.values()
        names.setdefault(spec, f"{name}-{len(names)}" if taken else name)
    places = zip(trials["configuration"], is_split(trials), strict=True)
    number = {spec: i for i, spec in enumerate(names)}
    program = np.array([number[specs[structures[place]]] for place in places])
    return [
        Group(name, spec, trials[program == i].reset_index(drop=True))
        for i, (spec, name) in enumerate(names.items())
    ]


def joined(parts: Sequence[list[Group]]) -> list[Group]:
    """Returns the groups of several stages of a sweep as those of one. A program's later trials come last.

    Args:
      parts: the groups of the trials that each stage adds.
    """
    out: dict[Spec, Group] = {}
    for group in (group for part in parts for group in part):
        if group.spec in out:
            trials = pd.concat([out[group.spec].trials, group.trials], ignore_index=True)
            out[group.spec] = out[group.spec]._replace(trials=trials)
        else:
            taken = any(other.name == group.name for other in out.values())
            name = f"{group.name}-{len(out)}" if taken else group.name
            out[group.spec] = group._replace(name=name)
    return list(out.values())


def _group_name(spec: Spec, model: str) -> str:
    """Returns a name that is unique in a sweep, because stored shards refer to their group by it."""
    chain = spec.defenses or (DefenseSpec("undefended"),)
    words = ("-".join([d.name, *(str(value) for _, value in d.options)]) for d in chain)
    if spec.top is None:
        return slug("+".join(words)) + "-no_split"
    return slug("+".join(words)) + (f"-{model}" if model else "")
