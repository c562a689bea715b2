"""The rules that every attack of the table keeps, tried on constructed exchanges.

``shapes`` and ``declared`` need no arrays; sweeps check them for every plugin before they attack. If there is a
top model, the embeddings in them are wider than C, so that an attack cannot confuse D with C. The other rules
run the attack on constructed rows with embeddings of width C, mapped over members as in a sweep, so that one
program serves several rules.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import partial_eval
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from vfljax import attacks, metrics, tasks
from vfljax.attacks import Attack
from vfljax.attacks.core import BASELINES, READS
from vfljax.errors import check_call
from vfljax.models import MLP
from vfljax.testing.exchanges import (
    BATCH,
    CUT,
    LEAKS,
    LEAKS_OF_NUMBERS,
    ONE_BOTTOM,
    OWN_COLUMNS,
    Case,
    attacker_of,
    drawn_numbers,
    make_case,
)
from vfljax.testing.rules import MANY, finite, rule, same_bits, shape
from vfljax.types import KINDS, NO_SPLIT, Array, HostArray, Known, Scores, View

Options = Mapping[str, Any]
ROWS, KNOWN = 200, 40
OF_NUMBERS = 4  # D with a top model, of labels that are numbers
READ = 0.9  # the least leak at which planted labels count as read
# likewise of numbers; who knows on which side of the median each label is reaches a concordance of .75
READ_NUMBERS = 0.8
AGREED = 0.95  # least share of rows guessed alike by a mapped member and alone; optimizers amplify rounding


class TestedAttack(NamedTuple):
    """An attack with its options fixed, and the number of classes it is tried with, or 1 for numbers."""

    name: str
    options: Options
    num_classes: int
    values: Mapping[str, float] = MappingProxyType({})  # of knobs, if not the published ones

    @property
    def knobs(self) -> dict[str, float]:
        """Every knob's value."""
        return {**self.attack().knobs, **self.values}

    def attack(self, cut: int = 0) -> Attack:
        """Returns the attack on a bottom with embeddings of width ``cut``, 0 for ``width``."""
        options = tuple(self.options.items())
        return built(self.name, options, self.num_classes, cut or self.width)

    @property
    def width(self) -> int:
        """The width of embeddings: C, or that of numbers."""
        return OF_NUMBERS if self.num_classes == 1 and self.split else self.num_classes

    @property
    def split(self) -> bool:
        """Whether it is tried with a top model: whether the attack's first federation has one."""
        attack = attacks.TABLE[self.name](ONE_BOTTOM, self.num_classes, **self.options)
        return not isinstance(attack, Attack) or attack.federations[:1] != (NO_SPLIT,)

    def case(self, cut: int = 0) -> Case:
        return _case(self.num_classes, self.split, cut or self.width)

    def scores(self, case: Case | None = None) -> Scores:
        """Returns the attack's scores of a case, by default of ``case()``."""
        case = self.case() if case is None else case
        attack = self.attack(case.run.exchange["embeddings"].shape[-1])
        return scores_of(attack, case, self.num_classes, jax.random.key(0), self.knobs, mapped)


@functools.cache
def built(name: str, options: tuple[tuple[str, Any], ...], num_classes: int, cut: int) -> Attack:
    """Returns the attack on one linear bottom. Equal arguments give one object, hence one compiled program.

    Args:
      name: name of the row.
      options: static options of the attack.
      num_classes: C.
      cut: D, the width of the bottom's embeddings.
    """
    return attacks.TABLE[name]((MLP((), cut),), num_classes, **dict(options))


def classes_of(name: str, options: Options) -> tuple[int, ...]:
    """Returns the numbers of classes with which an attack is tried, and 1 if these options are for numbers."""
    row = attacks.TABLE[name]
    with rule(name, SHAPES, row.factory):
        attack = row(ONE_BOTTOM, 2, **options)
    counts = [2] if isinstance(attack, Attack) and attack.binary else [2, MANY]
    if not row.not_for_numbers:
        with contextlib.suppress(ValueError):  # an option of classes
            row(ONE_BOTTOM, 1, **options)
            counts.append(1)
    return tuple(counts)


@functools.cache
def _case(num_classes: int, split: bool, cut: int) -> Case:
    """Returns a run whose embeddings, gradients and columns reveal the labels to some degree."""
    rng, labels = np.random.default_rng(5), np.arange(ROWS) % num_classes
    centers = rng.normal(size=(num_classes, OWN_COLUMNS))[labels]
    if num_classes == 1:
        labels = drawn_numbers(rng, ROWS)
        centers = labels[:, None] * centers
    features = centers + 0.3 * rng.normal(size=centers.shape)
    test = rng.normal(size=(10, OWN_COLUMNS))
    if split:
        kernel = np.eye(OWN_COLUMNS, cut)  # the bottom's
        g, z = centers @ kernel / BATCH, features @ kernel
    else:
        z = rng.normal(size=(ROWS, num_classes))
        if num_classes == 1:
            g = 2 * (z - labels[:, None]) / BATCH
        else:
            g = (rng.dirichlet(np.ones(num_classes), ROWS) - np.eye(num_classes)[labels]) / BATCH
    return make_case(
        labels,
        num_classes,
        gradients=[g, 0.9 * g],
        embeddings=[z, z],
        features=features,
        test_features=test,
        inputs=rng.normal(size=(2, ROWS, BATCH + 10)),
        known=KNOWN,
        cut=cut,
    )


def shapes(tested: TestedAttack) -> str:
    """Returns "" if the attack, with traced knobs, gives scores [N, C] and perhaps [M, C], else why not."""
    attack = tested.attack(CUT if tested.split else tested.num_classes)
    if not isinstance(attack, Attack):
        return f"the factory returned {type(attack).__name__} and no Attack"
    for field, values, known in (
        ("federations", attack.federations, KINDS),
        ("baselines", attack.baselines, BASELINES),
        ("reads", attack.reads, tuple(READS)),
    ):
        if not isinstance(values, tuple) or not set(values) <= set(known):
            return f"{field}={values!r} and not some of {', '.join(known)}"
    if not attack.federations:
        return "federations=() names none"
    for knob, value in attack.knobs.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            return f"the knob {knob}={value!r} is no number"
    check_call("run", attack.run, "key", "view", "known", "knobs")
    _, view, scores = _trace_of(tested)
    if not isinstance(scores, Scores):
        return f"run returned {shape(scores)} and no Scores"
    for field, rows in (("train", ROWS), ("test", len(view.test_features[0]))):
        given, expected = getattr(scores, field), f"float32[{rows}, {tested.num_classes}]"
        if given is None and field == "test":
            continue
        if attack.host and isinstance(given, jax.ShapeDtypeStruct):
            expected = f"float32[{rows}, {given.shape[-1]}]"  # features of any width
        if not isinstance(given, jax.ShapeDtypeStruct) or shape(given) != expected:
            return f"{field} is {shape(given)} where {expected} is due"
    return ""


OF_VIEW = {
    "features": "columns",
    "test_features": "columns",
    "inputs": "parameter gradients",
    "parameter_gradients": "parameter gradients",
}
"""What a field of ``View`` is called in ``READS`` where it has another name."""
FREE = ("sent", "epochs", "sums.count")  # what every attack may read


def _trace_of(tested: TestedAttack) -> tuple[Any, View, Any]:
    """Returns the trace of the attack's ``run``, and the shapes of its view and of what it returns."""
    cut = CUT if tested.split else tested.num_classes  # without a top model bottoms give logits
    attack = tested.attack(cut)
    return _traced(attack.run, tuple(attack.knobs), tested.num_classes, tested.split, cut)


@functools.lru_cache(maxsize=4)  # one rule after the other reads the same traces
def _traced(
    run: Callable[..., Any], knobs: tuple[str, ...], num_classes: int, split: bool, cut: int
) -> tuple[Any, View, Any]:
    view, known = jax.eval_shape(attacker_of, *_case(num_classes, split, cut))
    values = {knob: jax.ShapeDtypeStruct((), jnp.float32) for knob in knobs}
    trace = jax.make_jaxpr(lambda view, key, *rest: run(key, view, *rest), return_shape=True)
    closed, returned = trace(view, jax.random.key(0), known, values)
    return closed.jaxpr, view, returned


def fields_read(tested: TestedAttack) -> set[str]:
    """Returns what of ``View`` the scores of training rows depend on: names in ``READS``, or the names of
    diagnostics. It traces the attack, and removes from the trace what no score needs."""
    jaxpr, view, scores = _trace_of(tested)
    of_training = len(jax.tree.leaves(scores.train))
    needed = [place < of_training for place in range(len(jaxpr.outvars))]
    _, used = partial_eval.dce_jaxpr(jaxpr, needed)
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(view)]
    read = set()
    for path in itertools.compress(paths, used):
        name, *parts = (str(getattr(k, "name", getattr(k, "key", ""))) for k in path)
        if name == "diagnostics":
            read.add(parts[0])
        elif ".".join([name, *parts]) not in FREE:
            read.add("gradients" if name == "sums" else OF_VIEW.get(name, name))
    return read


def declared(tested: TestedAttack) -> str:
    """Returns "" if the attack declares all that it reads, else what is left out."""
    attack = tested.attack()
    hidden = sorted(fields_read(tested) - {*attack.reads, attack.diagnostic})
    named = ", ".join(map(repr, hidden))
    return f"it reads {named}, which reads={attack.reads!r} leaves out" if hidden else ""


@functools.cache
def jitted(run: Callable[..., Scores]) -> Callable[..., Scores]:
    """Returns ``Attack.run`` compiled: one function for each ``run``."""
    return jax.jit(run)


@functools.cache
def mapped(run: Callable[..., Scores]) -> Callable[..., Scores]:
    """Returns ``Attack.run`` compiled as sweeps compile it, for several members at once: one function for each
    ``run``, which all rules share. It is given one member, of which it runs two copies."""

    def run_twice(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        member = key, view, knobs
        twice = jax.tree.map(lambda a: jnp.stack([a, a]), member)
        both = jax.vmap(lambda member: run(member[0], member[1], known, member[2]))(twice)
        return jax.tree.map(lambda a: a[0], both)

    return jax.jit(run_twice)


def scores_of(
    attack: Attack,
    case: Case,
    classes: int,
    key: Array,
    knobs: Mapping[str, float],
    compiled: Callable[[Callable[..., Scores]], Callable[..., Scores]] = jitted,
) -> Scores:
    """Returns the scores of an attack on a stored run.

    Args:
      attack: the attack.
      case: the stored run.
      classes: C.
      key: of the attack's draws.
      knobs: every knob's value.
      compiled: ``jitted`` or ``mapped``.
    """
    view, known = attacker_of(*case)
    numbers = {knob: jnp.float32(value) for knob, value in knobs.items()}
    scores = jax.device_get(compiled(attack.run)(key, view, known, numbers))
    if attack.host is None:
        return scores
    rows = np.asarray(case.common.known_order)[0, : int(case.run.knobs["known"])]
    labels = np.asarray(case.common.labels)
    return Scores(
        attack.host(np.asarray(scores.train), rows[None], labels[rows][None], classes, 0)[0]
    )


def _pure(tested: TestedAttack) -> str:
    same = same_bits(tested.scores(), tested.scores(), equal_nan=True)  # NaN: rows not sent
    return "" if same else "the same attack twice gives other scores: draw from key"


def _numbers(tested: TestedAttack) -> str:
    sound = finite(tested.scores().train)
    return "" if sound else "some scores of rows that were sent are infinite or NaN"


def _members(tested: TestedAttack) -> str:
    attack, case = tested.attack(), tested.case()
    alone = scores_of(attack, case, tested.num_classes, jax.random.key(0), tested.knobs)
    mapped = tested.scores()
    if tested.num_classes == 1:
        agreed = np.mean(np.isclose(mapped.train, alone.train, 1e-2, 1e-2))
    else:
        agreed = np.mean(np.argmax(mapped.train, axis=-1) == np.argmax(alone.train, axis=-1))
    return "" if agreed >= AGREED else f"a member guesses {1 - agreed:.0%} of the rows otherwise"


def _planted(tested: TestedAttack) -> str:
    best, classes = 0.0, tested.num_classes
    enough = READ if classes > 1 else READ_NUMBERS
    drawn = _giveaways(classes, tested.split) if classes > 1 else _given_numbers(tested.width)
    for labels, arrays in drawn:
        case = make_case(labels, classes, known=KNOWN, cut=arrays["gradients"].shape[-1], **arrays)
        scores = tested.scores(case)
        rows = np.setdiff1d(np.arange(len(labels)), np.asarray(case.common.known_order)[0, :KNOWN])
        best = max(best, _leak(np.nan_to_num(scores.train[rows]), labels[rows]))
        if best >= enough:
            return ""
    scale = tasks.of(classes).scale(classes).removeprefix("leak ")
    ways = len(LEAKS if classes > 1 else LEAKS_OF_NUMBERS)
    return f"of labels given away in {ways} ways it reads {best:.2f} at most ({scale})"


_concordance = jax.jit(metrics.concordance)


def _leak(scores: HostArray, labels: HostArray) -> float:
    if scores.shape[1] == 1:
        found = float(_concordance(np.float32(scores[:, 0]), np.float32(labels)))
        return max(found, 1 - found)
    if scores.shape[1] > 2:
        return balanced_accuracy_score(labels, scores.argmax(axis=1))
    auc = roc_auc_score(labels, scores[:, 1] - scores[:, 0])
    return max(auc, 1 - auc)


def _giveaways(classes: int, split: bool) -> Iterator[tuple[HostArray, dict[str, Any]]]:
    """Yields labels [N] and arrays that give them away, for each of ``LEAKS`` and either sign of gradients.
    Classes have equal sizes. If there are two, labels with a rare second class follow."""
    places = np.arange(ROWS)
    balanced, rare = places % classes, (places % 5 == 0).astype(places.dtype)
    for labels in (balanced, rare)[: 2 if classes == 2 else 1]:
        for sign, draw in itertools.product((1, -1), LEAKS.values()):
            rng = np.random.default_rng(7)
            arrays = draw(rng, labels, classes)
            gradients = sign * np.asarray(arrays.get("gradients", np.zeros((2, ROWS, classes))))
            # without a top model, gradients have one column per class
            if not split and gradients.shape[-1] != classes:
                continue
            if sign < 0 and not gradients.any():
                continue
            inputs = rng.normal(size=(len(gradients), ROWS, BATCH + 10))
            yield labels, {"inputs": inputs, **arrays, "gradients": gradients}


def _given_numbers(width: int) -> Iterator[tuple[HostArray, dict[str, Any]]]:
    """Yields labels [N] that are numbers and arrays that give them away, for each of ``LEAKS_OF_NUMBERS``."""
    for draw in LEAKS_OF_NUMBERS.values():
        rng = np.random.default_rng(7)
        labels = drawn_numbers(rng, ROWS)
        inputs, arrays = rng.normal(size=(2, ROWS, BATCH + 10)), draw(rng, labels, width)
        gradients = np.asarray(arrays.get("gradients", np.zeros((2, ROWS, width))))
        yield labels, {"inputs": inputs, **arrays, "gradients": gradients}


DECLARED = "it declares what it reads"
MEMBERS = "members mapped together equal each alone"
SHAPES = "it gives scores [N, C], and knobs may be traced"
RULES: dict[str, Callable[[TestedAttack], str]] = {
    SHAPES: shapes,
    DECLARED: declared,
    "the same key gives the same scores": _pure,
    "every row that was sent has a finite score": _numbers,
    MEMBERS: _members,
    "it reads labels that are given away": _planted,
}
"""The rules of every attack, in the order in which they are tried; each returns why it is broken, or ""."""
