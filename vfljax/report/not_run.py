"""What was not attacked, or not scored, and why; the text is in a template."""

from __future__ import annotations

from collections.abc import Iterator

from vfljax import defenses
from vfljax.report.assessed import Assessed
from vfljax.report.configurations import ConfigurationSummary, knowledge
from vfljax.report.stored_rows import (
    FEDERATIONS,
    StoredRows,
    federation_of_kind,
    federations_of,
    identity_of,
)
from vfljax.report.templates import paragraphs


def not_attacked(assessed: Assessed) -> list[str]:
    """Returns sentences on what was not attacked or not scored, and why."""
    rows = assessed.rows
    scored = {row.known for row in rows.local_only}
    return paragraphs(
        "not_attacked",
        skipped=[entry for entry in rows.described.values() if entry["status"] == "skipped"],
        defense_unknown=_defense_unknown(assessed, rows),
        lost=_lost(assessed),
        # numbers of known labels for which the local-only baseline has no figures
        not_scored=[known for known in sorted(knowledge(rows)) if known and known not in scored],
    )


def _defense_unknown(assessed: Assessed, rows: StoredRows) -> Iterator[tuple[str, str, str, str]]:
    """Yields method, federation, defense and advice, where no attack takes the defense into account."""
    members = dict.fromkeys(
        (c.method, name) for c in assessed.configurations for name in c.defenses
    )
    for federation, title in FEDERATIONS.items():
        run = [
            identity_of(entry)
            for entry in rows.described.values()
            if entry["status"] == "ok"
            and federation
            in map(federation_of_kind, rows.kinds_trained.intersection(federations_of(entry)))
        ]
        for method, name in members if run else ():
            row = defenses.TABLE[name]
            if row.known_by.get(federation) and not row.known_to(federation, run):
                yield method, title, name, row.advice(federation)


def _lost(assessed: Assessed) -> list[tuple[ConfigurationSummary, list[str]]]:
    """Returns every configuration with the federations in which it was trained but not attacked."""
    attacked = {(a.configuration.number, a.federation) for a in assessed.attacked}
    return [
        (
            c,
            [
                FEDERATIONS[federation]
                for federation in assessed.federations
                if federation in map(federation_of_kind, c.accuracy)
                and (c.number, federation) not in attacked
            ],
        )
        for c in assessed.configurations
    ]
