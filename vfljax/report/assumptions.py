"""The threat model and the assumptions of a sweep in words: what its figures are figures of."""

from __future__ import annotations

from vfljax import defenses
from vfljax.report.assessed import Assessed
from vfljax.report.stored_rows import Table
from vfljax.sweep.experiment import Experiment
from vfljax.types import MALICIOUS


def parties(assessed: Assessed, experiment: Experiment) -> Table:
    """Returns a table of the parties: role and columns of each.

    Args:
      assessed: the sweep.
      experiment: its config.
    """
    assert assessed.rows is not None
    shapes = assessed.rows.sweep.header["data"]["party_shapes"]
    attacking = {p for group in experiment.attackers for p in group}
    malicious = {p for group in experiment.malicious.parties for p in group}
    if MALICIOUS not in assessed.rows.kinds_trained:
        malicious = set()
    rows, passive = [], experiment.parties.passive
    for party in range(passive + 1):
        role = ["holds the labels" if party == passive else "passive"]
        role += ["attacks"] * (party in attacking)
        role += ["malicious in some federations"] * (party in malicious)
        shape = shapes[party] if party < len(shapes) else ()
        columns = " x ".join(map(str, shape)) or "none"
        rows.append([experiment.parties.name_of(party), ", ".join(role), columns])
    return ["party", "role", "columns"], rows


def threat_model(assessed: Assessed, experiment: Experiment) -> list[str]:
    """Returns what an attacker sees, knows and wants, a paragraph each.

    Args:
      assessed: the sweep.
      experiment: its config.
    """
    reference = assessed.reference
    groups = [" and ".join(map(reference.party_name, group)) for group in experiment.attackers]
    several = any(len(group) > 1 for group in experiment.attackers)
    together = "; those of a group pool what they see" if several else ""
    known = f"at most {reference.known} labels" if reference.known else "no labels"
    guarded = sorted(
        {
            name
            for c in assessed.configurations
            for name in c.defenses
            if defenses.TABLE[name].remarks.epsilon(*c.values_of(name)) is not None
        }
    )
    measure = (
        "Leak AUC is the chance that a row of one class is ranked above one of the other: .5 is a guess, "
        "1 is all labels. Which way its scores point is granted, one bit."
        if reference.classes == 2
        else f"Balanced top-1 is the share of rows whose class, one of {reference.classes}, is named, every "
        "class weighed alike."
    )
    guarantee = (
        f"A formal guarantee comes with {' and '.join(guarded)} alone."
        if guarded
        else "No defense here has a formal guarantee."
    )
    return [
        f"Who attacks: {'; '.join(groups) or 'nobody'}{together}. An attacker follows the protocol, except "
        "where the federation is called malicious. It wants the labels of the training rows.",
        "What it sees: its own columns and model, the embeddings it sent and the gradients it received, in "
        f"the epochs that were recorded. What it knows besides: {known}, and, where an attack is made for one, "
        "which defense is on. It sees neither the label party's model nor other parties' columns.",
        f"What it is measured by: leak on rows whose labels it does not know. {measure}",
        "What the local-only baseline is: the best that the same party fits to the same known labels from its "
        "own columns, without the federation. What leaks beyond that came through the federation.",
        "What is not covered: attacks that were not run, other data sets, other splits of columns, several "
        f"runs on the same labels, and what passive parties' columns tell others. {guarantee}",
    ]
