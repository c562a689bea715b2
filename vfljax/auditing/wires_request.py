"""What is asked of recordings: which there are, and how they are to be attacked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vfljax.auditing import suite
from vfljax.defenses import Knower
from vfljax.defenses.rows import LEARNS, Remark, private_remarks
from vfljax.report.words import NONE
from vfljax.sweep.grid import knobs_of

NOBODY = (Knower(""),)  # no attack that is run
CLAIMED = private_remarks(
    lambda options: True, lambda epsilon, options, prior: NONE, f"label DP {LEARNS}"
)
"""The remarks of a recorded defense whose knob epsilon is what it claims."""


class Utilities(NamedTuple):
    """The utility of some runs, one for all of them or one each: accuracy, or AUC if the rarer of two classes
    has under 30 % of the rows, or R² of labels that are numbers; () where it is not known."""

    test: tuple[float, ...] = ()
    validation: tuple[float, ...] = ()  # by default as ``test``; operating points are chosen by it


class Recorded(NamedTuple):
    """The recordings of one operating point of a method."""

    runs: tuple[str, ...]  # a file or folder each
    utility: Utilities = Utilities()
    knobs: Mapping[str, float] = {}


class WireRequest(NamedTuple):
    """The request to attack recordings."""

    # the operating points of each method, all recorded in the same runs; ``suite.UNDEFENDED`` is one of them
    methods: Mapping[str, Sequence[Recorded]]
    federation: str = "split"  # or "no_split"
    bins: int = 0  # classes that quantiles make of labels that are numbers; 0: labels are classes
    known: int = 0  # labels that attackers know; 0: those recorded, else ``suite.known_labels``
    attacks: tuple[str, ...] = ()  # names; (): those of ``suite`` that apply
    knobs: Mapping[
        str, Mapping[str, Sequence[float]]
    ] = {}  # by attack, beside its options in ``suite``
    alone: Utilities = Utilities()  # of the label party without the other parties
    # whether an epsilon that a method claims is audited on half of the rows (``sweep.counterfactuals``)
    observed: bool = False
    # by method, the attacks that take its defense into account, by default none, and what a report remarks
    known_by: Mapping[str, tuple[Knower, ...]] = {}
    remarks: Mapping[str, Remark] = {}
    fields: Mapping[str, Any] = {}  # of the sweep's config, in place of those of ``config_of``
    data: Mapping[str, Any] = {}  # likewise of the header's ``data``

    @property
    def bare(self) -> Recorded:
        """The runs without a defense."""
        return self.methods[suite.UNDEFENDED][0]

    @property
    def chains(self) -> dict[str, str]:
        """The name of the defense of each method but the undefended one, in the table of defenses."""
        return {
            name: "wire:" + re.sub(r"\W+", "_", name)
            for name in self.methods
            if name != suite.UNDEFENDED
        }

    def point(self, trial: Mapping[str, Any]) -> Recorded:
        """Returns the recordings that a trial, a row of ``grid.trials``, is one run of."""
        of = knobs_of(trial).get(self.chains.get(trial["method"], ""), {})
        return next(point for point in self.methods[trial["method"]] if point.knobs == of)
