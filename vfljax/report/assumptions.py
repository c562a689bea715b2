"""The threat model and the assumptions of a sweep, in words: what its figures are figures of.

What enters: a stored sweep, its experiment and what is known of both. What leaves: titled paragraphs. The rules
of judging are ``captions``'s.
"""

from __future__ import annotations

from collections.abc import Sequence

from vfljax import defenses, store
from vfljax.report import summary
from vfljax.report.cards import About
from vfljax.report.summary import Point
from vfljax.sweep.experiment import Experiment
from vfljax.types import MALICIOUS

Table = tuple[list[str], list[list[str]]]


def parties(sweep: store.Sweep, experiment: Experiment) -> Table:
    """Who takes part, with what."""
    of, shapes = experiment.parties, sweep.header["data"]["party_shapes"]
    attacking = {p for group in experiment.attackers for p in group}
    malicious = {p for group in experiment.malicious.parties for p in group}
    if MALICIOUS not in summary.kinds_trained(sweep):
        malicious = set()
    rows = []
    for party in range(of.passive + 1):
        role = ["holds the labels" if party == of.passive else "passive"]
        role += ["attacks"] * (party in attacking)
        role += ["malicious in some federations"] * (party in malicious)
        shape = shapes[party] if party < len(shapes) else ()
        owns = " x ".join(map(str, shape)) or "none"
        rows.append([of.name_of(party), ", ".join(role), owns])
    return ["party", "role", "columns"], rows


def threat_model(experiment: Experiment, points: Sequence[Point], of: About) -> list[str]:
    """What an attacker sees, knows and wants, a paragraph each."""
    groups = [" and ".join(map(of.name_of, group)) for group in experiment.attackers]
    several = any(len(group) > 1 for group in experiment.attackers)
    together = "; those of a group pool what they see" if several else ""
    known = f"at most {of.known} labels" if of.known else "no labels"
    guarded = sorted(
        {
            name
            for p in points
            for name in p.defenses
            if defenses.TABLE[name].remarks.epsilon(*p.values_of(name)) is not None
        }
    )
    return [
        f"Who attacks: {'; '.join(groups) or 'nobody'}{together}. An attacker follows the protocol, except "
        "where the federation is called malicious. It wants the labels of the training rows.",
        "What it sees: its own columns and model, the embeddings it sent and the gradients it received, in "
        f"the epochs that were recorded. What it knows beside: {known}, and, where an attack says so, which "
        "defense is on. It sees neither the label party's model nor other parties' columns.",
        "What it is measured by: leak on rows whose labels it does not know. "
        + (
            "Leak AUC is the chance that a row of one class is ranked above one of the other: .5 is a guess, "
            "1 is all labels. Which way its scores point is granted, one bit."
            if of.classes == 2
            else f"Balanced top-1 is the share of rows whose class, one of {of.classes}, is named, every "
            "class weighed alike."
        ),
        "What staying away means: the best that the same party fits to the same known labels from its own "
        "columns, without taking part. What leaks beyond that came through the federation.",
        "What is not covered: attacks that were not run, other data sets, other splits of columns, several "
        "runs on the same labels, and what passive parties' columns tell others. "
        + (
            f"A formal guarantee comes with {' and '.join(guarded)} alone."
            if guarded
            else "No defense here has a formal guarantee."
        ),
    ]
