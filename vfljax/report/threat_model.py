"""Who holds what in a sweep, and what an attacker sees, knows and wants."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vfljax.report import guarantees
from vfljax.report.judged_sweep import Judged
from vfljax.report.templates import paragraphs
from vfljax.types import HONEST, MALICIOUS, federation_of


def shape_text(shape: Sequence[int]) -> str:
    """Returns a shape as text, such as "28 x 14"."""
    return " x ".join(map(str, shape))


def parties(judged: Judged) -> pd.DataFrame:
    """Returns a table of the parties: role and columns of each."""
    experiment, shapes = judged.experiment, judged.sweep.header["data"]["party_shapes"]
    passive = experiment.parties.passive
    attacking = {party for group in experiment.attackers for party in group}
    malicious = {party for group in experiment.malicious.parties for party in group}
    kinds = {federation_of(name).kind for name in judged.trials["federation"].unique()}
    upload = experiment.malicious.upload
    sends = "" if upload == HONEST else f", where it sends by the upload '{upload}'"
    rows = []
    for party in range(passive + 1):
        role = ["holds the labels" if party == passive else "passive"]
        role += ["attacks"] * (party in attacking)
        role += [f"malicious in some federations{sends}"] * (
            MALICIOUS in kinds and party in malicious
        )
        columns = shape_text(shapes[party]) if party < len(shapes) else ""
        rows.append((experiment.parties.name_of(party), ", ".join(role), columns or "none"))
    return pd.DataFrame(rows, columns=["party", "role", "columns"])


def assumptions(judged: Judged) -> list[str]:
    """Returns paragraphs on what an attacker sees, knows and wants."""
    facts, attackers = judged.facts, judged.experiment.attackers
    claims = guarantees.guarantees(judged).dropna(subset="epsilon")
    return paragraphs(
        "threat_model",
        facts=facts,
        groups=[" and ".join(facts.parties[party] for party in group) for group in attackers],
        # of a federation of trees the header has their number and that of their levels
        trees=judged.sweep.header["data"].get("trees"),
        gradients="gradients" not in judged.sweep.header["data"].get("missing", ()),
        several=any(len(group) > 1 for group in attackers),
        positive=facts.both[0] if facts.classes == 2 else "",
        guarded=sorted({*claims["defense"]}),
    )
