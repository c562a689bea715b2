"""What every attack of the table promises, tried on constructed exchanges.

``shapes`` needs no arrays: sweeps ask it of every plugin before they attack. The other rules run the
attack on a few dozen rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import attacks
from vfljax.attacks import Attack, AttackRow
from vfljax.attacks.core import BASELINES
from vfljax.contract.exchanges import BATCH, BOTTOMS, CUT, Case, make_case, seen_of
from vfljax.contract.keeping import broken, finite, numbers, rule, shape
from vfljax.models import MLP
from vfljax.types import KINDS, NO_SPLIT, Scores, View

Options = Mapping[str, Any]
ROWS, KNOWN = 60, 20
AGREED = 0.95  # guesses of lanes that are mapped together and of one alone; optimizers multiply roundings


class Trial(NamedTuple):
    """An attack with its options fixed, and the number of classes it is tried with."""

    name: str
    options: Options
    num_classes: int

    @property
    def row(self) -> AttackRow:
        return attacks.TABLE[self.name]

    def attack(self) -> Attack:
        return _built(self.name, tuple(self.options.items()), self.num_classes, self.split)

    @property
    def split(self) -> bool:
        """Whether it is tried with a top model: where the attack is defined first."""
        some = attacks.TABLE[self.name](BOTTOMS, self.num_classes, **self.options)
        return not isinstance(some, Attack) or some.federations[:1] != (NO_SPLIT,)

    def case(self) -> Case:
        return _case(self.num_classes, self.split)


@functools.cache
def _built(
    name: str, options: tuple[tuple[str, Any], ...], num_classes: int, split: bool
) -> Attack:
    bottom = MLP((), CUT if split else num_classes)
    return attacks.TABLE[name]((bottom,), num_classes, **dict(options))


@functools.cache
def _case(num_classes: int, split: bool) -> Case:
    """A run whose embeddings, gradients and columns tell of the labels, somewhat."""
    rng, labels = np.random.default_rng(5), np.arange(ROWS) % num_classes
    centers = rng.normal(size=(num_classes, 6))[labels]
    features = centers + 0.3 * rng.normal(size=centers.shape)
    test = rng.normal(size=(10, 6))
    if split:
        g, z = centers / BATCH, features
    else:
        g = (rng.dirichlet(np.ones(num_classes), ROWS) - np.eye(num_classes)[labels]) / BATCH
        z = rng.normal(size=(ROWS, num_classes))
    return make_case(
        labels,
        num_classes,
        gradients=[g, 0.9 * g],
        embeddings=[z, z],
        features=features,
        test_features=test,
        inputs=rng.normal(size=(2, ROWS, BATCH + 10)),
        known=KNOWN,
        cut=z.shape[1],
    )


def shapes(trial: Trial, says: str) -> None:
    """It gives scores [N, C], and perhaps [M, C] of test rows, and its knobs may be traced."""
    name, factory, classes = trial.name, trial.row.factory, trial.num_classes
    with rule(name, says, factory):
        attack = trial.attack()
    if not isinstance(attack, Attack):
        raise broken(name, says, f"the factory returned {type(attack).__name__} and no Attack")
    for field, values, known in (
        ("federations", attack.federations, KINDS),
        ("baselines", attack.baselines, BASELINES),
    ):
        if not isinstance(values, tuple) or not set(values) <= set(known):
            raise broken(name, says, f"{field}={values!r} and not some of {', '.join(known)}")
    if not attack.federations:
        raise broken(name, says, "federations=() names none")
    for knob, value in attack.knobs.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise broken(name, says, f"the knob {knob}={value!r} is no number")
    knobs = {knob: jax.ShapeDtypeStruct((), jnp.float32) for knob in attack.knobs}
    view, known = jax.eval_shape(seen_of, *trial.case())
    with rule(name, says, factory):
        scores = jax.eval_shape(attack.run, jax.random.key(0), view, known, knobs)
    if not isinstance(scores, Scores):
        raise broken(name, says, f"run returned {type(scores).__name__} and no Scores")
    due = (("train", ROWS), ("test", len(view.test_features[0])))
    for field, rows in due:
        one = getattr(scores, field)
        if one is None and field == "test":
            continue
        if not isinstance(one, jax.ShapeDtypeStruct) or shape(one) != f"float32[{rows}, {classes}]":
            raise broken(
                name, says, f"{field} is {shape(one)} where float32[{rows}, {classes}] is due"
            )


@functools.cache
def _jitted(run: Callable[..., Scores]) -> Callable[..., Scores]:
    return jax.jit(run)


def _scores(trial: Trial) -> Scores:
    attack = trial.attack()
    view, known = jax.jit(seen_of)(*trial.case())
    knobs = {knob: jnp.float32(value) for knob, value in attack.knobs.items()}
    return jax.device_get(_jitted(attack.run)(jax.random.key(0), view, known, knobs))


def _pure(trial: Trial, says: str) -> None:
    with rule(trial.name, says, trial.row.factory):
        first, again = _scores(trial), _scores(trial)
    if not all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(numbers(first), numbers(again))
    ):
        raise broken(trial.name, says, "the same attack twice gives other scores: draw from key")


def _numbers(trial: Trial, says: str) -> None:
    with rule(trial.name, says, trial.row.factory):
        scores = _scores(trial)
    if not finite(scores.train):
        raise broken(trial.name, says, "some scores of rows that were sent are infinite or NaN")


def _lanes(trial: Trial, says: str) -> None:
    attack = trial.attack()
    with rule(trial.name, says, trial.row.factory):
        view, known = jax.jit(seen_of)(*trial.case())
        knobs = {knob: jnp.full(2, value, jnp.float32) for knob, value in attack.knobs.items()}
        key = jnp.stack([jax.random.key(0)] * 2)
        views: View = jax.tree.map(lambda a: jnp.stack([a, a]), view)
        several = jax.jit(jax.vmap(attack.run, in_axes=(0, 0, None, 0)))(key, views, known, knobs)
        alone = _scores(trial)
    together, one = (np.argmax(scores, axis=-1) for scores in (several.train[0], alone.train))
    agreed = np.mean(together == one)
    if agreed < AGREED:
        raise broken(trial.name, says, f"a lane guesses {1 - agreed:.0%} of the rows otherwise")


RULES: dict[str, Callable[[Trial, str], None]] = {
    "it gives scores [N, C], and knobs may be traced": shapes,
    "the same key gives the same scores": _pure,
    "every row that was sent has a finite score": _numbers,
    "settings mapped together equal each alone": _lanes,
}
"""What every attack promises, in the order in which it is tried."""
