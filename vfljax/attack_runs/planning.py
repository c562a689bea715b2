"""Adds attacks to the header of a sweep: their entries, the blocks of shards, and units of the baseline.

A header that is extended keeps what it has: blocks, entries and units of the baseline are only added.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vfljax import machine
from vfljax.attack_runs.jobs import draws_of, entry_of
from vfljax.attacks import learners
from vfljax.errors import UserError
from vfljax.store.units import rule_of_learners
from vfljax.sweep.plan import Plan
from vfljax.sweep.variants import AttackVariant

BLOCK, WIDE_BLOCK = 256, 1024
"""Least trials of a block, several calls of an attack: on a CPU, and on an accelerator."""
SEEDS = 10
"""Most units of the local-only baseline of the same attackers: seeds are divided among them."""
UNITS = 300
"""About how many units of attacks a sweep has at most, so that its folder has hundreds of files."""


def extended(
    header: Mapping[str, Any], plan: Plan, variants: Sequence[AttackVariant], settling: bool
) -> dict[str, Any]:
    """Returns the header of a sweep with attacks added.

    Units of another rule of the learners stay, marked as outdated: their rows are kept, no more are made, and
    all of their seeds, attackers and known labels are planned anew.

    Args:
      variants: the attacks to run; those that the header has already stay as they are.
      settling: whether they are skipped on runs of which a cheaper attack has read nearly all labels.

    Raises:
      UserError: if a variant is there with other options or knobs.
    """
    entries = _entries(header["attacks"], variants, settling)
    units = header["local_only"]
    kept = [{**of, "outdated": rule_of_learners(of) != learners.RULE} for of in units]
    baseline = [*kept, *_local_only(units, plan, variants)]
    number = sum(about["status"] == "ok" for about in entries.values())
    blocks = [*header["blocks"], *_blocks(header, number)]
    return {**header, "blocks": blocks, "attacks": entries, "local_only": baseline}


def _blocks(header: Mapping[str, Any], variants: int) -> list[list[str]]:
    """Returns the shards that are in no block yet, in the plan's order, in blocks of shards of one stage."""
    placed = {name for block in header["blocks"] for name in block}
    left = [shard for shard in header["shards"] if shard["name"] not in placed]
    trials = sum(len(shard["trials"]) for shard in left)
    least = BLOCK if machine.offered().cpu else WIDE_BLOCK
    size = max(least, trials * max(variants, 1) // UNITS)
    blocks: list[list[str]] = []
    held, stage = size, 0
    for shard in left:
        if held >= size or shard["stage"] != stage:
            blocks.append([])
            held, stage = 0, shard["stage"]
        blocks[-1].append(shard["name"])
        held += len(shard["trials"])
    return blocks


def _entries(
    stored: Mapping[str, Any], variants: Sequence[AttackVariant], settling: bool
) -> dict[str, Any]:
    """Returns the entries with those of some variants. One of another rule of the same attack stays, marked as
    outdated: its rows are kept, and no more are made."""
    entries = {key: dict(about) for key, about in stored.items()}
    for each in variants:
        new, key = entry_of(each, settling), each.key
        for about in entries.values():
            if about["label"] == new["label"] and about["rule"] != new["rule"]:
                about["outdated"] = True
        old = entries.get(key, {})
        if old:  # the attack may have its earlier rule again
            old["outdated"] = False
        if old.get("status") != "ok":
            entries[key] = new
        elif new["status"] == "ok" and any(old[n] != new[n] for n in ("options", "knobs")):
            raise UserError(
                f"{each.label} is stored with {old['options']} and {old['knobs']}, and now asks for "
                f"{new['options']} and {new['knobs']}: give it those, or attack in a copy of the workdir."
            )
    return entries


def _local_only(
    stored: Sequence[Mapping[str, Any]], plan: Plan, variants: Sequence[AttackVariant]
) -> list[dict[str, Any]]:
    """Returns the units of the local-only baseline that the attacks need and that are not stored, for all
    their attackers and numbers of known labels, and those that are stored of another rule of the learners.
    There are none for a recording without the attackers' columns.

    Args:
      stored: the units of the header.
      variants: the attacks.
    """
    if plan.dataset.recording is not None and "columns" in plan.dataset.recording.missing:
        return []
    run = [each for each in variants if not each.skipped]
    attackers = dict.fromkeys(parties for each in run for parties in each.groups)
    knobs = (point for each in run for point in each.knobs)
    known = dict.fromkeys(int(point["known"]) for point in knobs if point.get("known"))
    # an attack is compared with a baseline on the same draws of labels
    most = plan.experiment.known_draws
    draws = dict.fromkeys([most, *(draws_of(each.attack, most) for each in run)])
    points = [(labels, count) for count in draws for labels in known]
    # points by attackers and seed, in order
    wanted, have = (collections.defaultdict[Any, dict[Any, None]](dict) for _ in range(2))
    for key in itertools.product(attackers, plan.experiment.trained_seeds):
        wanted[key] = dict.fromkeys(points)
    for unit in stored:
        place = have if rule_of_learners(unit) == learners.RULE else wanted
        for seed in unit["seeds"]:
            made = dict.fromkeys(map(tuple, unit["points"]))
            place[tuple(unit["attackers"]), seed].update(made)
    seeds: dict[tuple[Any, ...], list[int]] = {}  # by attackers and what is missing
    for (group, seed), asked in wanted.items():
        missing = tuple(point for point in asked if point not in have[group, seed])
        if missing:
            seeds.setdefault((group, missing), []).append(seed)
    return [
        {
            "attackers": list(group),
            "points": list(map(list, missing)),
            "seeds": part.tolist(),
            "rule": learners.RULE,
            "outdated": False,
        }
        for (group, missing), of in seeds.items()
        for part in np.array_split(of, min(len(of), SEEDS))
    ]
