"""LeakBench's boards, on which entries are judged.

A board is one federation of a data set under one kind of attacker. The boards of a federation are judged on
the trials of one sweep. The config of a data set is the variant of ``configs/leakbench.py`` with its name.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from vfljax.auditing.suite import KNOWN, UNDEFENDED
from vfljax.report.frames import Frames, read_frames
from vfljax.report.judged_sweep import Judged, judge_frames
from vfljax.store import StoredSweep
from vfljax.sweep.grid import experiment_of
from vfljax.types import MALICIOUS, federation_of

GAINS = (0.5, 0.9)
"""Shares of the federation's gain over the label party alone, at which entries are compared."""


class Board(msgspec.Struct, frozen=True):
    """One federation of a data set under one kind of attacker, on which entries are judged."""

    federation: Literal["split", "no_split"]  # with a top model, or without one
    known: Literal[0, 40]  # the most labels that an attacker knows
    malicious: bool  # whether passive parties may train with the malicious optimizer

    def judged(self, sweep: StoredSweep, method: str, counted: Collection[str]) -> Judged:
        """Returns the sweep as it is judged on this board: undefended and one method.

        The method is judged as if its sweep had no other, so that its figures do not depend on other methods.
        Where attackers know no label, the direction of scores and the names of classes are granted to them:
        those that the known labels of the other boards give.

        Args:
          sweep: that of the board's federation.
          method: the name of the method.
          counted: the names of the attacks that count.
        """
        experiment = experiment_of(sweep)
        rows, trials, facts, every = read_frames(sweep, experiment, named=self.known > 0)
        trials = trials[trials["method"].isin((UNDEFENDED, method))]
        if not self.malicious:
            trials = trials[[federation_of(f).kind != MALICIOUS for f in trials["federation"]]]
        attacks = rows["trial"].isin(trials["trial"]) & rows["attack"].isin(counted)
        attacks &= rows["known"] <= self.known
        rows = rows[attacks | (rows["role"] == "learner")]
        fair = rows.loc[rows["role"] == "attack", "known"]
        facts = facts._replace(known=int(fair.max()) if len(fair) else 0)
        return judge_frames(sweep, experiment, Frames(rows, trials, facts, every))


BOARDS = (
    *(Board("split", known, malicious) for known in (0, KNOWN) for malicious in (False, True)),
    *(Board("no_split", known, False) for known in (0, KNOWN)),
)
"""The malicious optimizer makes a top model rely on an embedding, so boards without a top model lack it."""
