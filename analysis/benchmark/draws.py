"""Attacks recorded exchanges with many draws of the known labels, in the code of this or of another checkout.

A figure of one draw moves by some hundredths if the fit of an attack changes, in either direction. Whether an
attack reads less is seen over many draws on the same exchanges:

    python -c "from analysis.benchmark import draws; draws.save('runs/x', 'x.npz')"
    python -m analysis.benchmark.draws --exchanges=x.npz --attack=probe --out=new.csv
    cd OTHER  # a checkout, whose environment is used; as a script the file runs with the attacks that it has
    python THIS/analysis/benchmark/draws.py --exchanges=x.npz --attack=probe --out=old.csv
    python -c "from analysis.benchmark import draws; print(draws.compared('old.csv', 'new.csv'))"

The leak is the AUC of two classes and the balanced accuracy of more, on rows whose label is not known. It is
that of a sweep for attacks that know labels. To others a sweep grants the names of their classes; here scores
stand as they are, so that the leaks of such attacks may be below chance. Attacks that read bottom models are
not for this file, which does not keep them, nor are those whose scores are made on the host (``reader``).
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportAttributeAccessIssue=false, reportReturnType=false

from __future__ import annotations

import functools
import pathlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

import vfljax
from vfljax import attacks
from vfljax.api.arguments import Options, Path, Whole, checked
from vfljax.api.console import start
from vfljax.api.flags import Command
from vfljax.errors import UserError, argument
from vfljax.models import MLP
from vfljax.types import Agreed, HostArray, Known, Scores, Sums, View

ARRAYS = ("embeddings", "gradients", "order", "sent", "epochs")
TRIAL = ["trial", "method", "federation", "seed"]


def save(workdir: str, out: str) -> None:
    """Writes what attackers see of each trial of a sweep, and its labels, to a file of arrays."""
    from analysis.readers import protocol
    from vfljax import store
    from vfljax.store.units import shard_unit

    folder = pathlib.Path(workdir)
    stored = protocol.opened(folder)
    shards = [shard["name"] for shard in stored.begun.header["shards"]]
    done = [name for name in shards if store.finished(folder, shard_unit(name))]
    arrays: dict[str, Any] = {}
    rows = []
    for k, of in enumerate(protocol.seen(stored, store.read_results(folder, done).to_pylist())):
        view, seed = of.view, of.row["seed"]
        arrays |= {f"{k}.{name}": getattr(view, name) for name in ARRAYS}
        arrays |= {f"{k}.sums.{name}": a for name, a in view.sums._asdict().items()}
        arrays |= {f"{k}.features.{p}": x for p, x in enumerate(view.features)}
        arrays[f"{k}.labels"] = stored.arrays["labels"][stored.arrays["train"][seed]]
        rows.append([str(of.row[name]) for name in TRIAL])
    np.savez(out, rows=np.array(rows), **arrays)


def view_of(arrays: Any, k: int) -> View:
    """Returns what the attackers of the k-th trial of a file see of it, without bottom models."""
    names = [name for name in arrays if name.startswith(f"{k}.features.")]
    features = tuple(arrays[name] for name in names)
    sums = Sums(*(arrays[f"{k}.sums.{name}"] for name in Sums._fields))
    of_name = {name: arrays[f"{k}.{name}"] for name in ARRAYS}
    tested = tuple(x[:1] for x in features)
    # the batch size is read by attacks on whole batches alone
    rest: dict[str, Any] = {"bottoms": (), "agreed": Agreed(1), "diagnostics": {}}
    return View(sums=sums, features=features, test_features=tested, **of_name, **rest)


def known_draws(labels: HostArray, known: int, draws: int, seed: int) -> Known:
    """Returns the known rows of a sweep's draws (``sweep.known``), stacked along the first axis."""
    rows = []
    for draw in range(draws):
        named = [seed, 7919, draw] if draw else [seed, 7919]
        queue = np.random.default_rng(named).permutation(len(labels))
        turn = np.zeros(len(labels), int)
        for c in np.unique(labels):
            of_class = queue[labels[queue] == c]
            turn[of_class] = np.arange(len(of_class))
        order = queue[np.argsort(turn[queue], kind="stable")]
        rows.append(np.concatenate([order[:known], np.sort(order[known:])]))
    places = np.array(rows, np.int32)
    called = np.where(np.arange(len(labels)) < known, labels[places], -1)
    on_host: Any = called.astype(np.int32), np.full(draws, known, np.int32)
    return Known(jnp.asarray(places), *on_host)


def leak(scores: HostArray, labels: HostArray) -> float:
    """Returns the leak of scores [n, C]."""
    if scores.shape[1] == 2:
        return float(roc_auc_score(labels, scores[:, 1] - scores[:, 0]))
    return float(balanced_accuracy_score(labels, scores.argmax(1)))


@checked
def measure(
    exchanges: Path,
    attack: str,
    out: Path,
    *,
    options: Options | None = None,
    known: Whole = 40,
    draws: Whole = 20,
) -> None:
    """Attack each exchange of a file with many draws of the known labels, and write a leak for each.

        python -m analysis.benchmark.draws --exchanges=x.npz --attack=probe --out=leaks.csv

    Args:
      exchanges: a file that ``save`` wrote.
      attack: a name in ``attacks.TABLE``, which reads no bottom model and does not score on the host.
      out: the table of comma-separated values to write.
      options: of the attack, static ones and knobs, such as epoch=mean.
      known: the number of known labels.
      draws: how often they are drawn.

    Raises:
      UserError: if the attack scores on the host.
    """
    arrays, rows = np.load(exchanges), []
    wanted = dict(options or {})
    static = {name: wanted.pop(name) for name in attacks.TABLE[attack].options if name in wanted}

    @functools.cache
    def built(width: int, classes: int) -> Any:
        of = attacks.TABLE[attack]((MLP((), width),), classes, **static)
        if getattr(of, "host", None) is not None:  # an older checkout may have no such field
            what, remedy = "makes its scores on the host", "name one whose program makes them"
            raise UserError(what, field=argument("attack"), value=attack, remedy=remedy)
        values = {**of.knobs, "known": known, **wanted}
        knobs = {name: jnp.float32(float(value)) for name, value in values.items()}

        def of_draw(view: View, drawn: Known) -> Scores:
            return of.run(jax.random.key(0), view, drawn, knobs)

        return jax.jit(jax.vmap(of_draw, in_axes=(None, 0)))

    for k, row in enumerate(arrays["rows"]):
        view, labels = view_of(arrays, k), arrays[f"{k}.labels"]
        drawn = known_draws(labels, known, draws, int(row[-1]))
        run = built(view.embeddings.shape[2], int(labels.max()) + 1)
        for draw, scores in enumerate(np.asarray(run(view, drawn).train)):
            counted = np.isfinite(scores).all(1)
            counted[drawn.rows[draw][:known]] = False
            rows.append((*row, draw, leak(scores[counted], labels[counted])))
    pd.DataFrame(rows, columns=[*TRIAL, "draw", "leak"]).to_csv(out, index=False)


def compared(old: str, new: str) -> pd.DataFrame:
    """Returns, by method, the mean leaks of two tables of ``measure``, their difference with its standard error
    over draws, and the most that a single draw falls and rises."""
    pair = pd.read_csv(old).merge(pd.read_csv(new), on=[*TRIAL, "draw"], suffixes=("_old", "_new"))
    pair["moves"] = pair["leak_new"] - pair["leak_old"]
    by = pair.groupby("method")
    table = by.agg(old=("leak_old", "mean"), new=("leak_new", "mean"), moves=("moves", "mean"))
    table["error"] = by["moves"].sem()
    table["falls"], table["rises"] = by["moves"].min(), by["moves"].max()
    return table.sort_values("moves").round(4)


COMMAND = Command(measure)

if __name__ == "__main__":
    vfljax.use_this_machine()
    start(COMMAND, sys.argv[1:], "python -m analysis.benchmark.draws")
