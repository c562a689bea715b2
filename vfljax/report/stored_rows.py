"""The rows of a stored sweep as records.

This is the only module of the report that reads the columns on disk. If an attack knows no label, and a few
known labels name its classes better than it does, it appears a second time under those names, because merely
renaming classes protects nobody. With two classes nothing is added, because every figure that counts takes its
direction from rows that are not scored.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from vfljax import attacks as attack_table
from vfljax import plugins, store
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT, AttackIdentity, federation_of

FEDERATIONS = {"split": "with model splitting", "no_split": "without model splitting"}
"""The federations that a report compares. With a top model, honest and malicious ones are judged together."""
KINDS = {SPLIT: "split", MALICIOUS: "malicious", NO_SPLIT: "no split"}
RENAMED = {
    **{"leak": "leak_named", "leak_crossed": "leak_named"},
    **{"leak_select": "named_select", "leak_report": "named_report"},
}
"""Figure -> column of the same figure under the names that known labels give the attack's classes."""
Table = tuple[list[str], list[list[str]]]
"""Header and rows of text."""
Described = Mapping[str, Any]
"""An entry of ``attacks.json``: an attack's options, steps and seconds, or why it was skipped."""
Key = TypeVar("Key")
Member = TypeVar("Member")
NOT_RENAMED = ("leak_error", "success", "f1", "test_", "logistic_", "untrained_", "all_labels_")


def grouped(members: Iterable[Member], key: Callable[[Member], Key]) -> dict[Key, list[Member]]:
    """Returns the members by key; keys and members keep the order in which they come.

    Args:
      members: of all groups.
      key: gives the group of a member.
    """
    out: dict[Key, list[Member]] = {}
    for member in members:
        out.setdefault(key(member), []).append(member)
    return out


def federation_of_kind(kind: str) -> str:
    """Returns the key of ``FEDERATIONS`` to which a federation of this kind or name belongs."""
    return "split" if federation_of(kind).split else "no_split"


def brief(identity: AttackIdentity) -> str:
    """Returns an attack's label without the attackers, such as 'direct/most_negative/named'."""
    return identity._replace(attackers=(0,)).label


class AttackFigures(NamedTuple):
    """The figures of an attack on one trial."""

    identity: AttackIdentity
    trial: int
    seed: int
    point: int  # number of the point of the attack's numeric knobs
    figures: Mapping[str, Any]  # the stored columns
    variant: Described
    # leak beyond the best local-only learner on its seed; verdicts use ``Strongest.excess``
    excess: float | None = None

    @property
    def oracle(self) -> bool:
        """Whether it knows more than an attacker can."""
        return bool(self.variant.get("oracle"))

    @property
    def adaptive(self) -> bool:
        """Whether it is in no paper, such as one that takes the defense into account."""
        return bool(self.variant.get("adaptive"))

    @property
    def draws(self) -> int:
        """How many draws of known labels the figures are means over; 0 if it knows no label."""
        return int(self.figures.get("draws") or 1) if self.identity.known else 0

    @property
    def knobs(self) -> dict[str, float]:
        """Its numeric knobs."""
        return {
            name.removeprefix("attack."): value
            for name, value in self.figures.items()
            if name.startswith("attack.") and value is not None
        }


class LocalOnlyRow(NamedTuple):
    """The figures of attackers who use only their own columns and known labels."""

    attackers: tuple[int, ...]
    known: int
    seed: int
    learner: str
    draws: int  # how many draws of known labels the figures are means over
    figures: Mapping[str, Any]


ByDraws = dict[int, list[LocalOnlyRow]]
"""The rows of a learner, by the number of draws of known labels that they are means over."""


class TrialFigures(NamedTuple):
    """One trained federation: a configuration and a seed."""

    trial: int
    configuration: int
    method: str
    defenses: tuple[str, ...]
    federation: str  # its kind
    seed: int
    diverged: bool
    figures: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, eq=False)
class StoredRows:
    """Everything that a report reads of a sweep."""

    sweep: store.StoredSweep
    trials: tuple[TrialFigures, ...]
    attacks: tuple[AttackFigures, ...]
    local_only: tuple[LocalOnlyRow, ...]
    described: Mapping[str, Described]  # attacks.json, by variant

    @property
    def balance(self) -> list[int]:
        """Number of rows of each class."""
        return self.sweep.header["data"]["balance"]

    @property
    def kinds_trained(self) -> set[str]:
        """The kinds of federation that were trained."""
        return {trial.federation for trial in self.trials}

    @functools.cached_property
    def learners(self) -> dict[tuple[int, tuple[int, ...]], dict[str, ByDraws]]:
        """The local-only rows by number of known labels and attackers, then by learner and number of draws."""
        out: dict[tuple[int, tuple[int, ...]], dict[str, ByDraws]] = {}
        for row in self.local_only:
            by_learner = out.setdefault((row.known, row.attackers), {})
            by_learner.setdefault(row.learner, {}).setdefault(row.draws, []).append(row)
        return out


def load(workdir: pathlib.Path) -> StoredRows:
    """Reads the sweep in ``workdir``."""
    return read(store.load(workdir))


def read(sweep: store.StoredSweep, named: bool = True) -> StoredRows:
    """Returns the rows of a stored sweep.

    Args:
      sweep: as ``store.load`` returns it.
      named: whether attacks whose classes known labels name better are added under those names.
    """
    plugins.stand_in(sweep.plugins)
    described = store.attack_summary(sweep.workdir)
    trials = tuple(
        TrialFigures(
            trial=row["trial"],
            configuration=row["configuration"],
            method=row["method"],
            defenses=tuple(name for name in row["defenses"].split("+") if name),
            federation=federation_of(row["federation"]).kind,
            seed=row["seed"],
            diverged=row["status"] != "ok",
            figures=row,
        )
        for row in sweep.results.to_pylist()
    )
    attacks = [
        AttackFigures(
            identity=identity_of(row),
            trial=row["trial"],
            seed=row["seed"],
            point=row["attack_configuration"],
            figures=row,
            variant=described.get(row["variant"], {}),
        )
        for row in sweep.attacks.to_pylist()
    ]
    if named and len(sweep.header["data"]["balance"]) > 2:
        attacks += renamed(attacks)
    local_only = tuple(
        LocalOnlyRow(
            attackers=(identity := store.identity_of(row)).attackers,
            known=identity.known,
            seed=row["seed"],
            learner=store.learner_of(row),
            draws=int(row.get("draws") or 1),
            figures=row,
        )
        for row in sweep.local_only.to_pylist()
    )
    rows = StoredRows(sweep, trials, tuple(attacks), local_only, described)
    return dataclasses.replace(rows, attacks=_with_excess(rows))


def identity_of(row: Mapping[str, Any]) -> AttackIdentity:
    """Returns the identity of a stored row or of an entry of ``attacks.json``, with its federation's kind.

    It is ``outdated`` if the rows were made by another rule than this version's.
    """
    identity = store.identity_of(row)
    present = attack_table.TABLE.get(identity.attack)
    return identity._replace(
        federation=federation_of(identity.federation).kind,
        outdated=present is not None and present.rule != identity.rule,
    )


def federations_of(entry: Described) -> tuple[str, ...]:
    """Returns the kinds of federation that an attack is defined on, from its entry of ``attacks.json``. The
    kind that papers attack first comes first. A skipped attack has none."""
    return tuple(entry.get("federations", ()))


def renamed(rows: list[AttackFigures]) -> list[AttackFigures]:
    """Returns the rows of attacks under the names of known labels, if these are better on any row."""
    better = {row.identity.label for row in rows if not row.oracle and _is_better(row)}
    return [
        row._replace(
            identity=row.identity._replace(named=True, known=int(row.figures["naming"])),
            figures={
                **{k: None if k.startswith(NOT_RENAMED) else v for k, v in row.figures.items()},
                **{name: row.figures[column] for name, column in RENAMED.items()},
            },
        )
        for row in rows
        if row.identity.label in better and row.figures.get("naming")
    ]


def _is_better(row: AttackFigures) -> bool:
    figures = row.figures
    free = bool(figures.get("naming")) and not row.identity.known and bool(figures.get("renamed"))
    return free and figures["named_select"] > figures["leak_select"]


def _with_excess(rows: StoredRows) -> tuple[AttackFigures, ...]:
    """Returns the rows of attacks with the excess over the local-only baseline with as many known labels."""
    chance = chance_of(rows.balance)
    reached: dict[tuple[int, tuple[int, ...], int, int], float] = {}
    for row in rows.local_only:
        key, leak = (row.known, row.attackers, row.draws, row.seed), row.figures["leak"]
        reached[key] = max(reached.get(key, leak), leak)

    def excess(row: AttackFigures) -> float | None:
        if row.oracle:  # no local-only baseline knows as much
            return None
        known, attackers = row.identity.known, row.identity.attackers
        key = known, attackers, row.draws, row.seed
        local_only = reached.get(key) if known else chance
        return None if local_only is None else row.figures["leak"] - local_only

    return tuple(row._replace(excess=excess(row)) for row in rows.attacks)


def chance_of(balance: list[int]) -> float:
    """Returns the leak of a guess: 1/2 for two classes, 1/C for more."""
    return 0.5 if len(balance) == 2 else 1 / len(balance)


def notes(rows: StoredRows) -> list[str]:
    """Returns a sentence for each attack whose rows another rule made, and for each with renamed classes."""
    out = []
    for entry in rows.described.values():
        title = rule_title(entry)
        if title != entry["label"]:
            out.append(
                f"{title}: its rows are shown as {identity_of(entry).label}, and are part of no other figure. "
                "`vfljax attack --renew_rules` attacks with the present rule."
            )
    renamed = {row.identity.label: row.identity for row in rows.attacks if row.identity.named}
    return out + [
        f"{label}: {identity._replace(named=False).label} with its classes named by {identity.known} known "
        "labels, because that is better than its own names somewhere."
        for label, identity in renamed.items()
    ]


def rule_title(entry: Described) -> str:
    """Returns 'passive (rule 1; this version has rule 2)', or the label alone if the rules are the same."""
    identity = identity_of(entry)
    if entry["status"] == "skipped" or not identity.outdated:
        return entry["label"]
    present = attack_table.TABLE[identity.attack].rule
    return f"{entry['label']} (rule {identity.rule}; this version has rule {present})"
