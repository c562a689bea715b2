"""GAFM's figures that no stored column holds (Han and Guan 2023).

``parts`` are the gradients of the GAN loss and of the cross entropy in the last recorded epoch (figures 2,
C.1 to C.3), and ``averages`` their averages (Table D.3).

The label party sends gamma a / |a| + b / |b|, with norms over the batch, of the gradients a of the GAN
loss and b of the cross entropy with respect to f. The second term is computed from what is stored: f is the
mean of the embeddings that were sent, and the randomized response is drawn again with the step's own key.
The first term is the stored gradient less the second.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.defenses.gafm import draws_of, label_loss
from vfljax.errors import UserError
from vfljax.store import StoredSweep
from vfljax.sweep.grid import experiment_of
from vfljax.types import HostArray


class Parts(NamedTuple):
    """One epoch of one trial, in the order of its training rows; rows that were not sent are left out."""

    f: HostArray  # [N, D] the mean of the parties' embeddings
    gan: HostArray  # [N, D] gamma a / |a|: sums of squares over a batch are gamma^2
    ce: HostArray  # [N, D] b / |b|: sums of squares over a batch are 1
    batch: HostArray  # [N] int, which batch of the epoch a row was in
    labels: HostArray  # [N] int


_ce = jax.jit(jax.grad(label_loss), static_argnums=2)


def parts(sweep: StoredSweep, trial: int) -> Parts:
    """Returns the two parts of the gradients that a trial's parties received in its last recorded epoch.

    Args:
      sweep: the stored sweep.
      trial: its id.

    Raises:
      UserError: if the trial has other defenses than gafm, the label party owns columns, or the sweep
        recorded fewer rows than it trained on (``config.training.record_rows``).
    """
    stored = sweep.trial(trial)
    row, exchange, splits = stored.row, stored.exchange(), sweep.splits()
    if row["defenses"] != "gafm":
        raise UserError(
            f"trial {row['trial']} has the defenses {row['defenses']!r}: only the gradients of gafm "
            "alone are its two parts."
        )
    knobs = {"gafm.terms": "both", "gafm.ce_input": "released"}
    knobs |= {k: v for k, v in row.items() if k.startswith("gafm.") and v is not None}
    experiment = experiment_of(sweep)
    model, training = experiment.model, experiment.training
    if experiment.parties.label_features:
        raise UserError(
            f"{sweep.workdir} has a label party with columns, whose embeddings are not stored: GAFM's "
            "parts need those of all parties, config.parties.label_features=False."
        )
    train = splits["train"][row["seed"]]
    order, sent = exchange["order"][-1], exchange["sent"][-1]
    if len(order) < len(train):
        raise UserError(
            f"{sweep.workdir} recorded {len(order)} of {len(train)} training rows: GAFM's parts need "
            "whole batches, config.training.record_rows=0."
        )
    parties = sum(name.endswith("_gradients") for name in exchange)
    f, g = (
        np.asarray(sum(np.float64(exchange[f"party{p}_{name}"][-1]) for p in range(parties)))
        for name in ("embeddings", "gradients")
    )
    if model.aggregation == "mean":
        f = f / parties
    else:  # under a sum every party receives the whole gradient
        g = g / parties
    size = training.batch_size
    whole, rest = divmod(len(train), size)
    steps = whole + (rest > 0 and not training.drop_last)
    batch, labels = order // size, splits["labels"][train]
    ce = np.zeros_like(f)
    for number in range(steps if knobs["gafm.terms"] != "gan" else 0):
        members = np.flatnonzero((batch == number) & sent)
        members = members[np.argsort(order[members])]  # the order of the draws
        step = int(exchange["epochs"][-1]) * steps + number
        delta, sigma = (jnp.float32(knobs[f"gafm.{name}"]) for name in ("delta", "sigma"))
        response = draws_of(row["seed"], step, jnp.asarray(labels[members]), delta, sigma)[1]
        as_it_is = model.output == "sigmoid" and knobs["gafm.ce_input"] == "released"
        slopes = np.asarray(_ce(jnp.float32(f[members]), response, as_it_is), np.float64)
        norm = np.sqrt((slopes**2).sum())
        ce[members] = slopes / (norm if norm > 0 else 1.0)
    return Parts(*(array[sent] for array in (f, g - ce, ce, batch, labels)))


def averages(
    sweep: StoredSweep, trial: int, over: str = "last_batch", oriented: bool = True
) -> tuple[float, float]:
    """Returns the average gradient of the GAN loss and of the cross entropy (Table D.3).

    A row's gradient is summed over its D entries, and then averaged over rows. Both parts are as sent:
    each is divided by its norm, and the GAN's is multiplied by gamma. The average over a batch of B
    rows is therefore at most gamma / sqrt(B) (times sqrt(D)). On Spambase .054 is printed. The average
    over an epoch's 3,220 rows is at most .034, that over the last batch's 136 rows at most .086.

    Args:
      sweep: the stored sweep.
      trial: its id.
      over: "last_batch" for the last batch of the last recorded epoch, often a short one, which is all
        that the released code keeps; "epoch" for all rows of that epoch. The paper does not say which.
      oriented: whether both signs are flipped if the trial learned the labels inverted, as is done with
        its predictions. Otherwise averages over seeds are near 0, because both signs are equally likely.
    """
    both = parts(sweep, trial)
    rows = both.batch == both.batch.max() if over == "last_batch" else slice(None)
    sign = -1.0 if oriented and sweep.trial(trial).row["inverted"] else 1.0
    gan, ce = (sign * float(part[rows].sum(axis=1).mean()) for part in (both.gan, both.ce))
    return gan, ce
