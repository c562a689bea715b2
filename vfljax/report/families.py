"""Which families of attacks apply to a federation: *switch on* is said of a defense once all were tried on it.

A family is a row of the table of attacks. It applies to a configuration if it can be run on a federation that
was trained, for as many classes, from what was recorded. Oracles and the rows of plugins are not asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from vfljax import attacks, defenses
from vfljax.attacks.core import USUAL
from vfljax.config import Config
from vfljax.models.mlp import MLP
from vfljax.report.points import members_of
from vfljax.types import MALICIOUS, SPLIT, federation_of

BOTTOM = MLP((4,), 4)  # stands for the attackers' bottom where only an attack's needs are read
OF_UPLOADS = {"swapping": "swap"}
"""Attacks that read what one upload alone leaves in the exchange."""

OF_TREES = {
    of_numbers: frozenset(
        {"direct", "cohabitation", "node_spreading", "probe", "ranks", "reader", posterior}
    )
    for of_numbers, posterior in ((False, "node_posterior"), (True, "posterior"))
}
"""Attacks on trees, of which paths through nodes are the embeddings, by whether labels are numbers. The others
read what networks send."""


class Applying:
    """The families that apply to the configurations of a stored sweep."""

    def __init__(
        self,
        experiment: Config,
        header: Mapping[str, Any],
        federations: list[str],
        entries: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """``federations`` are the names of those that were trained, ``entries`` those of
        ``store.attack_summary``."""
        data, training = header["data"], experiment.training
        self._classes = len(data["balance"])
        self._kinds = [federation_of(name).kind for name in federations]
        self._upload = experiment.malicious.upload if MALICIOUS in self._kinds else ""
        reads = ({*USUAL} | {"columns"}) - {*data.get("missing", ())}
        reads |= {"parameter gradients"} if training.record_parameter_gradients else set()
        reads |= {"nodes"} if data.get("trees") else set()
        self._reads = frozenset(reads)
        self._trees = bool(data.get("trees"))
        status: dict[str, set[str]] = {}
        for entry in entries.values():
            status.setdefault(entry["attack"], set()).add(entry["status"])
        self._skipped = {name for name, of in status.items() if of == {"skipped"}}
        self._whole = not training.record_rows or training.record_rows >= data["train"]

    def families(self, panel: str, chain: str) -> frozenset[str]:
        """Returns the names of the families that apply to a configuration.

        Args:
          panel: of the federation.
          chain: the defenses, as in the column ``defenses``.
        """
        kinds = tuple(k for k in self._kinds if (k in (SPLIT, MALICIOUS)) == (panel == SPLIT))
        listed = [defenses.TABLE[name].known_by.get(panel, ()) for name in members_of(chain)]
        known = {knower.attack for row in listed for knower in row}
        return frozenset(
            name
            for name, row in attacks.TABLE.items()
            if name not in self._skipped
            and row.origin is None
            and OF_UPLOADS.get(name, self._upload) == self._upload
            and (not row.whole_batches or (name in known and self._whole))
            and self._applies(name, kinds)
        )

    def _applies(self, name: str, kinds: tuple[str, ...]) -> bool:
        needs = _needs(name, self._classes)
        if needs is None:
            return False
        federations, reads = needs
        if self._trees:  # what gradients that are encrypted rule out was skipped
            return name in OF_TREES[self._classes == 1] and bool({*kinds} & federations)
        return bool({*kinds} & federations) and reads <= self._reads


@functools.cache
def _needs(name: str, classes: int) -> tuple[frozenset[str], frozenset[str]] | None:
    """Returns the federations of an attack with its usual options, and what it reads; None if it has no such
    attack for the number of classes."""
    try:
        attack = attacks.TABLE[name]((BOTTOM,), classes)
    except ValueError:
        return None
    if attack.oracle or attack.diagnostic or (attack.binary and classes > 2):
        return None
    return frozenset(attack.federations), frozenset(attack.reads)
