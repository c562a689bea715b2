"""Who holds what in a sweep, and what an attacker sees, knows and wants."""

from __future__ import annotations

from collections.abc import Sequence

from vfljax.report import guarantees
from vfljax.report.assessed import Assessed
from vfljax.report.stored_rows import StoredRows, Table
from vfljax.report.templates import paragraphs
from vfljax.sweep.experiment import Experiment
from vfljax.types import HONEST, MALICIOUS


def shape_text(shape: Sequence[int]) -> str:
    """Returns a shape as text, such as "28 x 14"."""
    return " x ".join(map(str, shape))


def parties(rows: StoredRows, experiment: Experiment) -> Table:
    """Returns a table of the parties: role and columns of each."""
    shapes = rows.sweep.header["data"]["party_shapes"]
    passive = experiment.parties.passive
    attacking = {party for group in experiment.attackers for party in group}
    malicious = {party for group in experiment.malicious.parties for party in group}
    trained = MALICIOUS in rows.kinds_trained
    upload = experiment.malicious.upload
    sends = "" if upload == HONEST else f", where it sends by the upload '{upload}'"
    lines = []
    for party in range(passive + 1):
        role = ["holds the labels" if party == passive else "passive"]
        role += ["attacks"] * (party in attacking)
        role += [f"malicious in some federations{sends}"] * (trained and party in malicious)
        columns = shape_text(shapes[party]) if party < len(shapes) else ""
        lines.append([experiment.parties.name_of(party), ", ".join(role), columns or "none"])
    return ["party", "role", "columns"], lines


def assumptions(assessed: Assessed, experiment: Experiment) -> list[str]:
    """Returns paragraphs on what an attacker sees, knows and wants."""
    reference, attackers = assessed.reference, experiment.attackers
    return paragraphs(
        "threat_model",
        reference=reference,
        groups=[" and ".join(map(reference.party_name, group)) for group in attackers],
        several=any(len(group) > 1 for group in attackers),
        guarded=sorted({name for _, name, _ in guarantees.claimed(assessed)}),
    )
