"""The rules that every defense of the table keeps, tried on small federations.

``slots`` needs no arrays and takes milliseconds; sweeps check it for every plugin before they train. The other
rules run a few steps.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import attacks, defenses
from vfljax.contract.exchanges import BOTTOMS
from vfljax.contract.federations import (
    make_batch,
    make_context,
    make_hparams,
    make_labels,
    make_spec,
    make_weights,
)
from vfljax.contract.keeping import broken, finite, numbers, rule, same_bits, same_shape
from vfljax.defenses import DefenseRow, TrainingData
from vfljax.errors import unknown_row
from vfljax.federation import protocol
from vfljax.types import NO_SPLIT, SPLIT, Array, Batch, DefenseSpec, HParams, PyTree, Spec, State

Options = Mapping[str, Any]
BATCH, STEPS = 8, 4
CLOSE = 1e-4  # between members mapped together and each alone, relative and absolute


def slots(
    name: str,
    options: Options,
    num_classes: int,
    split: bool,
    changes: Options = MappingProxyType({}),
) -> None:
    """Checks that every slot takes traced knobs and returns what it received in shape and type.

    Args:
      name: of the defense.
      options: its static options.
      num_classes: C.
      split: whether there is a top model.
      changes: of the federation.

    Raises:
      ContractError: for the first slot that does not.
    """
    row, promise = defenses.TABLE[name], "slots return what they received, and knobs may be traced"
    knobs = {knob: jax.ShapeDtypeStruct((), jnp.float32) for knob in row.knobs}
    spec = _spec(name, options, num_classes, split, changes)
    data = _training_data(spec)
    context = make_context(BATCH)._replace(
        scores=jnp.full((BATCH, num_classes), 1 / num_classes), cut_layer=spec.cut_layer
    )
    key, width = jax.random.key(0), spec.bottoms[0].out
    targets = jnp.full((BATCH, num_classes), 1 / num_classes)
    cut = (jnp.zeros((BATCH, width)),) * spec.passive

    def tried(slot: str, use: Callable[..., Any], *arguments: Any) -> Any:
        def run(values: Any, *arrays: Any) -> Any:
            return use(row(**values, **dict(options)), *arrays)

        with rule(name, f"{promise} ({slot})", row.factory):
            return jax.eval_shape(run, knobs, *arguments)

    def same(slot: str, before: Any, after: Any) -> None:
        same_shape(name, f"{promise} ({slot})", f"what {slot} returns", before, after)

    tried("factory", lambda d: jnp.zeros(()))
    state = tried("init", lambda d: d.init(key, data))
    taught = tried("teach", lambda d: d.teach(key, data.labels, num_classes))
    same("teach", (data.labels, jnp.ones(data.labels.shape)), taught)
    same("labels", data.labels, tried("labels", lambda d, s: d.labels(s, data.labels), state))
    softened = tried("targets", lambda d, s: _targets(d, targets, context, s), state)
    same("targets", (targets, state), softened)

    def gradient(d: Any) -> Any:
        transform = optax.with_extra_args_support(d.gradient)
        before = transform.init(cut)
        sent, after = transform.update(cut, before, context=context)
        return before, sent, after

    before, sent, after = tried("gradient", gradient)
    same("gradient", (cut, before), (tuple(sent), after))
    same("read", targets, tried("read", lambda d, s: d.read(s, targets), state))
    with rule(name, f"{promise} (loss, or a whole step)", row.factory):
        hparams = make_hparams(spec)._replace(defenses={name: knobs})
        batch = make_batch(spec, 0)
        start = jax.eval_shape(lambda numbers: _start(spec, numbers), hparams)
        ended, _, _ = jax.eval_shape(protocol.make_step(spec), start, batch, hparams)
    same("a whole step", start, ended)


def _targets(defense: Any, targets: Array, context: Any, state: PyTree) -> Any:
    out, _, changed = defense.targets(targets, context, state)
    return out, changed


def _spec(name: str, options: Options, num_classes: int, split: bool, changes: Options) -> Spec:
    member = DefenseSpec(name, tuple(sorted(options.items())))
    values = {"passive": 1, "split": split, "batch_size": BATCH, **changes}
    return make_spec(num_classes, (member,), **values)


def _training_data(spec: Spec) -> TrainingData:
    scores = jnp.full((spec.num_rows, spec.num_classes), 1 / spec.num_classes)
    return TrainingData(make_labels(spec), scores, spec.num_classes, spec.cut_layer)


def _start(spec: Spec, hparams: HParams, seed: Any = 0, rows: int = BATCH) -> State:
    """The protocol's initial state with random weights."""
    networks = dataclasses.replace(spec, defenses=(), optimizers=(), scope="all")
    cut = tuple(jnp.zeros((rows, bottom.out)) for bottom in spec.bottoms)
    weights, data = make_weights(networks, 0), _training_data(spec)
    return protocol.make_init(spec)(jax.random.key(seed), weights, hparams, data, cut)


@functools.cache
def _program(spec: Spec, rows: int) -> Callable[..., Any]:
    """``run(hparams, seed, batches) -> (final state, exchanges, metrics)`` of some steps, compiled."""
    step = protocol.make_step(spec)

    def run(hparams: HParams, seed: Array, batches: Batch) -> Any:
        def advance(state: State, batch: Batch) -> Any:
            state, exchange, metrics = step(state, batch, hparams)
            return state, (exchange, metrics)

        state, seen = jax.lax.scan(advance, _start(spec, hparams, seed, rows), batches)
        return state, seen

    return jax.jit(run)


def _batches(spec: Spec, rows: int = BATCH) -> Batch:
    several = [make_batch(spec, i, rows) for i in range(STEPS)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)


def _ran(spec: Spec, name: str, knobs: Mapping[str, float], batches: Batch, seed: int = 0) -> Any:
    hparams = make_hparams(spec, {name: dict(knobs)} if spec.defenses else {})
    program = _program(spec, batches.labels.shape[1])
    return jax.device_get(_without_keys(program(hparams, jnp.int32(seed), batches)))


def _without_keys(tree: PyTree) -> PyTree:
    return jax.tree.map(
        lambda a: jax.random.key_data(a) if jnp.issubdtype(a.dtype, jax.dtypes.prng_key) else a,
        tree,
    )


def _shared(run: Any) -> Any:
    """The part of a run's result that exists without defenses too."""
    state, seen = run
    return state.weights, state.optimizer, seen


class TestedDefense(NamedTuple):
    """A defense with its options fixed, and the federation it is tried in."""

    name: str
    options: Options
    num_classes: int
    changes: Options

    @property
    def row(self) -> DefenseRow:
        return defenses.TABLE[self.name]

    def spec(self, split: bool = True) -> Spec:
        return _spec(self.name, self.options, self.num_classes, split, self.changes)


def _known(tested: TestedDefense, promise: str) -> None:
    row, name = tested.row, tested.name
    due = {SPLIT} if row.needs_top else {SPLIT, NO_SPLIT}
    if set(row.known_by) != due:
        raise broken(name, promise, f"known_by names {sorted(row.known_by)} and not {sorted(due)}")
    for kind, knowers in row.known_by.items():
        if not knowers:
            raise broken(name, promise, f"known_by has no attack for {kind!r}")
        for attack, option in knowers:
            if attack not in attacks.TABLE:
                raise broken(name, promise, str(unknown_row("attack", attack, attacks.TABLE)))
            if kind not in attacks.TABLE[attack](BOTTOMS, 2).federations:
                raise broken(name, promise, f"the attack {attack} is not defined on {kind!r}")
            if option and not any(
                _accepts(attack, k, option) for k in attacks.TABLE[attack].options
            ):
                raise broken(
                    name, promise, f"the attack {attack} has no option with the value {option!r}"
                )


def _accepts(attack: str, option: str, value: str) -> bool:
    try:
        attacks.TABLE[attack](BOTTOMS, 2, **{option: value})
    except (ValueError, TypeError):
        return False
    return True


def _slots(tested: TestedDefense, promise: str) -> None:
    del promise  # ``slots`` names the slot
    for kind in tested.row.known_by:
        slots(tested.name, tested.options, tested.num_classes, kind == SPLIT, tested.changes)


def _acts(tested: TestedDefense, promise: str) -> None:
    spec = tested.spec()
    undefended = dataclasses.replace(spec, defenses=())
    batches = _batches(spec)
    defended = _ran(spec, tested.name, tested.row.example, batches)
    if same_bits(defended[0].weights, _ran(undefended, tested.name, {}, batches)[0].weights):
        raise broken(
            tested.name,
            promise,
            f"{STEPS} steps at {dict(tested.row.example)} are those without it",
        )


def _neutral(tested: TestedDefense, promise: str) -> None:
    knobs = tested.row.neutral
    if knobs is None or tested.options:
        return  # another option may be another rule
    spec = tested.spec()
    undefended = dataclasses.replace(spec, defenses=())
    batches = _batches(spec)
    defended = _ran(spec, tested.name, knobs, batches)
    if not same_bits(_shared(defended), _shared(_ran(undefended, tested.name, {}, batches))):
        raise broken(
            tested.name, promise, f"{STEPS} steps at {dict(knobs)} differ from those without it"
        )


def _pure(tested: TestedDefense, promise: str) -> None:
    spec = tested.spec()
    first, again = (_ran(spec, tested.name, tested.row.example, _batches(spec)) for _ in range(2))
    if not same_bits(first, again):
        raise broken(
            tested.name, promise, "the same run twice gives other numbers: draw from context.key"
        )


def _members(tested: TestedDefense, promise: str) -> None:
    spec, row = tested.spec(), tested.row
    values = [dict(row.example), dict(row.neutral or row.example)]
    hparams = [make_hparams(spec, {tested.name: knobs}) for knobs in values]
    batches, seeds = _batches(spec), jnp.zeros(2, jnp.int32)
    together = jax.vmap(_program(spec, BATCH), in_axes=(0, 0, None))(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *hparams), seeds, batches
    )
    for i, knobs in enumerate(values):
        alone = numbers(_ran(spec, tested.name, knobs, batches))
        member = [leaf[i] for leaf in numbers(_without_keys(together))]
        for a, b in zip(member, alone, strict=True):
            if not np.allclose(a, b, CLOSE, CLOSE):
                largest = np.max(np.abs(np.asarray(a, float) - b))
                raise broken(tested.name, promise, f"at {knobs} a member differs by {largest:.2g}")


def _finite(tested: TestedDefense, promise: str) -> None:
    spec, classes = tested.spec(), tested.num_classes
    given = _batches(spec)
    x = given.features
    cases = {
        "on random batches": given,
        "where all columns are 0": given._replace(features=tuple(0 * a for a in x)),
        "where all rows are equal": given._replace(features=tuple(map(jnp.ones_like, x))),
        "where all rows have one class": given._replace(
            labels=jnp.full_like(given.labels, classes - 1)
        ),
        "where columns are huge": given._replace(features=tuple(1e15 * a for a in x)),
        "where columns are small": given._replace(features=tuple(1e-8 * a for a in x)),
        "where columns are tiny": given._replace(features=tuple(1e-30 * a for a in x)),
    }
    undefended = dataclasses.replace(spec, defenses=())
    for what, batches in cases.items():
        if not finite(_ran(undefended, tested.name, {}, batches)):
            continue  # nor is it without a defense
        if not finite(_ran(spec, tested.name, tested.row.example, batches)):
            raise broken(tested.name, promise, f"there are infinite numbers or NaN {what}")
    if not finite(_ran(spec, tested.name, tested.row.example, _batches(spec, rows=1))):
        raise broken(
            tested.name, promise, "there are infinite numbers or NaN in batches of one row"
        )
    treated = _treated(tested)
    for exponent in (-math.inf, *range(-38, 31, 4)):
        gradients = np.random.default_rng(0).normal(size=(BATCH, 4)).astype(np.float32)
        gradients[:2] = 0
        if not finite(treated(jnp.asarray(np.float32(10.0**exponent) * gradients))):
            size = "all 0" if math.isinf(exponent) else f"about 1e{exponent}, some of them 0"
            raise broken(
                tested.name, promise, f"the gradient slot makes NaN of gradients that are {size}"
            )


def _treated(tested: TestedDefense) -> Callable[[Array], Any]:
    """The gradient slot, compiled, as a function of one party's gradients [BATCH, 4]."""
    defense = tested.row(**tested.row.example, **dict(tested.options))
    transform = optax.with_extra_args_support(defense.gradient)
    context = make_context(BATCH)

    def treated(gradients: Array) -> Any:
        return transform.update(
            (gradients,), transform.init((gradients,)), embeddings=(gradients,), context=context
        )[0]

    return jax.jit(treated)


RULES: dict[str, Callable[[TestedDefense, str], None]] = {
    "attacks that know of it exist wherever it can be trained": _known,
    "slots return what they received, and knobs may be traced": _slots,
    "at its example it changes something": _acts,
    "at its neutral knobs it changes no bit": _neutral,
    "the same keys give the same run": _pure,
    "members mapped together equal each alone": _members,
    "whatever the batch, everything stays finite": _finite,
}
"""The rules of every defense, in the order in which they are tried."""
