"""What was not attacked, or not scored, and why: a line each."""

from __future__ import annotations

from collections.abc import Iterator

from vfljax import defenses
from vfljax.report import stored_rows
from vfljax.report.assessed import Assessed
from vfljax.report.configurations import knowledge
from vfljax.report.stored_rows import FEDERATIONS, StoredRows


def not_attacked(assessed: Assessed) -> list[str]:
    """What was not attacked, and why."""
    rows = assessed.rows
    assert rows is not None
    skipped = [entry for entry in rows.described.values() if entry["status"] == "skipped"]
    return [
        *(f"{entry['label']}: {entry['reason']}." for entry in skipped),
        *_defense_unknown(assessed, rows),
        *_diverged_trials(assessed),
        *_not_scored(rows),
    ]


def _not_scored(rows: StoredRows) -> Iterator[str]:
    """Numbers of known labels for which the local-only baseline has no figures."""
    scored = {row.known for row in rows.local_only}
    missing = [f"{known}" for known in sorted(knowledge(rows)) if known and known not in scored]
    if missing:
        yield (
            f"The local-only baseline with {' or '.join(missing)} known labels is no candidate for the "
            "strongest attack, and no excess is known, because it was not scored. `vfljax attack` adds it."
        )


def _defense_unknown(assessed: Assessed, rows: StoredRows) -> Iterator[str]:
    """Defenses and federations in which no attack took the defense into account."""
    members = dict.fromkeys(
        (c.method, name) for c in assessed.configurations for name in c.defenses
    )
    for federation, words in FEDERATIONS.items():
        run = [
            stored_rows.identity_of(entry)
            for entry in rows.described.values()
            if entry["status"] == "ok"
            and any(
                stored_rows.federation_of_kind(kind) == federation
                for kind in rows.kinds_trained.intersection(stored_rows.federations_of(entry))
            )
        ]
        for method, name in members if run else ():
            row = defenses.TABLE[name]
            if row.known_by.get(federation) and not row.known_to(federation, run):
                yield (
                    f"{method}, {words}: no attack on it takes {name} into account; in config.attacks, one of "
                    f"{row.advice(federation)} does."
                )


def _diverged_trials(assessed: Assessed) -> Iterator[str]:
    attacked = {(a.configuration.number, a.federation) for a in assessed.attacked}
    for c in assessed.configurations:
        if c.diverged:
            yield f"{c.label}: {c.diverged} of {c.trials} trials diverged."
        trained = set(map(stored_rows.federation_of_kind, c.accuracy))
        missing = [
            FEDERATIONS[federation]
            for federation in assessed.federations
            if federation in trained and (c.number, federation) not in attacked
        ]
        if missing and c.diverged < c.trials:
            yield f"{c.label}: no attack on it {' or '.join(missing)}."
