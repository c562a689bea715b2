"""The visible table of attacks: name -> row, and ``TABLE[name](bottoms, num_classes, **options)``.

A new attack is one file that ends in its row, one line of ``TABLE``, and one row of test values in
``tests/attacks_contract_test.py`` (``analysis/guide/add_an_attack.md`` has the steps). Where it takes
a defense into account, that defense's row names it in ``known_by``. An attack names the federations it is
defined on and runs on each that was trained (``config.federations``). ``config.attackers`` names who
attacks, ``config.malicious.parties`` who also trains maliciously or deviates in what it sends, and an option
``known`` how many labels it is given. An attack that a sweep cannot serve is skipped, and the report gives
the reason. ``divisions``, ``learners``,
``mixmatch`` and ``neighbors`` are helpers of attacks.
"""

from vfljax.attacks import (
    batch_inversion,
    centers,
    charge,
    clusters,
    cohabitation,
    completion,
    direct,
    enumeration,
    fusion,
    hints,
    joint,
    node_posterior,
    node_spreading,
    norm,
    posterior,
    probe,
    ranks,
    reader,
    residual,
    similarity,
    spectral,
    spreading,
    surrogate,
    swapping,
    two_stage,
)
from vfljax.attacks.core import Attack, AttackRow

TABLE: dict[str, AttackRow] = {
    "passive": completion.PASSIVE,
    "active": completion.ACTIVE,
    "direct": direct.ROW,
    "two_stage": two_stage.ROW,
    "norm": norm.ROW,
    "mean": centers.MEAN,
    "median": centers.MEDIAN,
    "global_median": centers.GLOBAL_MEDIAN,
    "cosine": hints.COSINE,
    "inner": hints.INNER,
    "hint": hints.HINT,
    "spectral": spectral.ROW,
    "residual": residual.ROW,
    "probe": probe.ROW,
    "fusion": fusion.ROW,
    "posterior": posterior.ROW,
    "similarity": similarity.ROW,
    "joint": joint.ROW,
    "ranks": ranks.ROW,
    "reader": reader.ROW,
    "spreading": spreading.ROW,
    "surrogate": surrogate.ROW,
    "enumeration": enumeration.ROW,
    "clusters": clusters.ROW,
    "cohabitation": cohabitation.ROW,
    "node_posterior": node_posterior.ROW,
    "node_spreading": node_spreading.ROW,
    "swapping": swapping.ROW,
    "batch_inversion": batch_inversion.ROW,
    "charge": charge.ROW,
    "correlation": charge.CORRELATION,
}

__all__ = ["TABLE", "Attack", "AttackRow"]
