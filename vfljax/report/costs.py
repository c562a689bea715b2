"""What a defense costs in utility, and which operating points qualify.

Let U be the utility of a configuration on test rows, U_0 that of undefended, and A that of the label party
alone (its own columns and all labels), all of one seed. The federation gains U_0 - A. Two contrasts decide:

    U - A - keep_gain (U_0 - A)    and, if max_cost is below 1,    U - U_0 + max_cost,

with ``keep_gain`` and ``max_cost`` of the sweep's goal. Without any figure of the label party alone only the
second counts, with .02 if max_cost is 1.

| cost            | when, the first that holds                                    |
|-----------------|---------------------------------------------------------------|
| cost not known  | fewer than 3 seeds have every utility                         |
| no gain to keep | the federation gains nothing, or loses, on average            |
| costs too much  | the upper limit of a contrast is below 0                      |
| kept            | the lower limits of all contrasts are 0 or above              |
| cost unclear    | all else                                                      |

Limits are Student's over seeds, one-sided at 95 %, without a least spread. A seed counts only if it has every
utility that the contrasts read.

An operating point *qualifies* if its loss on validation rows, U_0 - U, is small: on average at most what may be
lost, and at most twice that at its upper limit of 90 %. What may be lost is (1 - keep_gain) of the mean gain on
validation rows, at most max_cost. There a federation that diverged has the utility of a guess.
"""

from __future__ import annotations

import enum

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vfljax.report.frames import Facts
from vfljax.report.limits import (
    FEWEST_SEEDS,
    LEVEL,
    MOST_SEEDS,
    SHOWN_LEVEL,
    Floats,
    deciding_seeds,
    limits,
    projected,
)

MEAN_LOSS = 0.02
"""The utility that may be lost if the label party alone has no figures, and the goal gives no max_cost."""
LOSS_LEVEL = 0.90
"""The level of the upper limit of the loss on validation rows."""
SHOWN_GAIN = 0.01
"""The share of the gain that is kept is shown only if the gain's lower limit exceeds this."""


class Cost(enum.StrEnum):
    """What the limits allow to say of the cost of a configuration."""

    UNKNOWN = "cost not known"
    NO_GAIN = "no gain to keep"
    TOO_MUCH = "costs too much"
    KEPT = "kept"
    UNCLEAR = "cost unclear"


def by_seed(trials: pd.DataFrame, column: str, order: pd.Index, seeds: NDArray) -> Floats:
    """Returns a column of trials as an array [configurations, seeds], NaN where there is no trial.

    Args:
      trials: at most one for each configuration and seed.
      column: its name.
      order: the configurations.
      seeds: in ascending order.
    """
    out = np.full((len(order), len(seeds)), np.nan)
    at = order.get_indexer(trials["configuration"]), np.searchsorted(seeds, trials["seed"])
    out[at] = trials[column]
    return out


def costs(
    trials: pd.DataFrame, order: pd.Index, facts: Facts, level: float = LEVEL
) -> pd.DataFrame:
    """Returns utility and cost of each configuration of a panel, indexed by ``order``. The columns:

        utility             mean on test rows, with _lower and _upper (at 97.5 % each)
        utility_change      mean of U - U_0, with _lower and _upper
        alone, gain         means of A and of U_0 - A, the latter with _lower and _upper
        share_kept          (U - A) / (U_0 - A), of the means; NaN if the gain may be below .01
        cost                a value of ``Cost``
        cost_seeds          of an unclear cost, the seeds that would decide it if means and spreads stay; NaN:
                            none of ``MOST_SEEDS``
        validation_loss     mean of U_0 - U on validation rows
        allowed_loss        the most that it may be
        qualifies           whether the loss is small enough

    Args:
      trials: of the panel's honest federation, ``frames.Frames.trials``.
      order: the configurations, undefended first.
      facts: of the sweep.
      level: of each limit of gain and cost.
    """
    seeds, goal = np.sort(trials["seed"].unique()), facts.goal
    first = trials[trials["configuration"] == order[0]]
    table = {
        name: by_seed(trials, name, order, seeds) for name in ("test_utility", "validation_utility")
    }
    utility, undefended = table["test_utility"], table["test_utility"][:1]
    alone, alone_validation = (
        by_seed(first, name, order[:1], seeds) for name in ("alone_test", "alone_validation")
    )
    alone_known = bool(np.isfinite(alone).any())
    gain = limits(undefended - alone, level=level)
    whole = np.isfinite(utility) & np.isfinite(undefended)
    if alone_known:
        whole &= np.isfinite(alone)
    contrasts = []
    if alone_known:
        contrasts.append(utility - alone - goal.keep_gain * (undefended - alone))
    if goal.max_cost < 1 or not alone_known:
        contrasts.append(utility - undefended + _max_cost(facts))
    found = [limits(np.where(whole, x, np.nan), level=level) for x in contrasts]
    lower, upper = (np.stack([getattr(x, side) for x in found]) for side in ("lower", "upper"))
    holds = {
        Cost.UNKNOWN: np.isnan(lower).any(0),
        Cost.NO_GAIN: np.broadcast_to(gain.mean <= 0, lower.shape[1:]),
        Cost.TOO_MUCH: (upper < 0).any(0),
        Cost.KEPT: (lower >= 0).all(0),
    }
    more = np.arange(FEWEST_SEEDS, MOST_SEEDS + 1)
    then = [projected(x, more, level) for x in found]
    decided = np.any([x[1] < 0 for x in then], axis=0) | np.all([x[0] >= 0 for x in then], axis=0)
    decided &= more > whole.sum(-1, keepdims=True)
    cost = np.select(list(holds.values()), [x.value for x in holds], Cost.UNCLEAR.value)
    kept, of_gain = (limits(np.where(whole, x - alone, np.nan)).mean for x in (utility, undefended))
    trained = by_seed(trials.assign(trained=1.0), "trained", order, seeds) == 1
    loss = table["validation_utility"]
    loss = np.where(np.isfinite(loss), loss, facts.guess)
    loss = np.where(trained & trained[:1], loss[:1] - loss, np.nan)
    gained = limits(table["validation_utility"][:1] - alone_validation).mean
    allowed = np.clip((1 - goal.keep_gain) * gained, 0, goal.max_cost)
    allowed = np.where(np.isnan(gained), _max_cost(facts), allowed)
    columns = {
        **limits(utility, level=SHOWN_LEVEL).columns("utility"),
        **limits(np.where(whole, utility - undefended, np.nan)).columns("utility_change"),
        "alone": limits(alone).mean,
        **gain.columns("gain"),
        "share_kept": kept / np.where(gain.lower > SHOWN_GAIN, of_gain, np.nan),
        "cost": cost,
        "cost_seeds": np.where(cost == Cost.UNCLEAR, deciding_seeds(decided, more), np.nan),
        "validation_loss": limits(loss).mean,
        "allowed_loss": allowed,
        "qualifies": _qualifies(loss, allowed),
    }
    return pd.DataFrame({k: np.broadcast_to(v, len(order)) for k, v in columns.items()}, order)


def _max_cost(facts: Facts) -> float:
    """Returns the utility that may be lost if the label party alone has no figures."""
    return facts.goal.max_cost if facts.goal.max_cost < 1 else MEAN_LOSS


def _qualifies(loss: Floats, allowed: Floats) -> NDArray[np.bool_]:
    """Returns which losses [configurations, seeds] are small enough; one seed has no limit."""
    most = allowed + 1e-12  # in floats .90 - .88 is above .02
    found = limits(loss, level=LOSS_LEVEL, fewest=2)
    return (found.mean <= most) & ((found.count == 1) | (found.upper <= 2 * most))
