"""The rules that every defense of the table keeps, tried on small federations.

``slots`` needs no arrays and takes milliseconds; sweeps check it for every plugin before they train. The other
rules run a few steps.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import attacks, defenses
from vfljax.attacks import Attack
from vfljax.defenses import Defense, DefenseRow
from vfljax.errors import check_call, unknown_row
from vfljax.federation import protocol
from vfljax.testing.exchanges import ONE_BOTTOM
from vfljax.testing.federations import (
    make_batch,
    make_context,
    make_hparams,
    make_spec,
    make_state,
    training_data,
)
from vfljax.testing.rules import broken, finite, numbers, rule, same_bits, shape
from vfljax.types import NO_SPLIT, SPLIT, Array, Batch, DefenseSpec, HostArray, HParams, Spec, State

Options = Mapping[str, Any]
BATCH, STEPS = 8, 4
MEMBERS = 8  # of every run: one program of a federation serves all rules
CLOSE = 1e-4  # relative and absolute tolerance between a member among others and alone
LOSS = ("active", "f", "embeddings", "targets", "context", "state")  # arguments of a ``LossFn``
SLOTS = "slots return what they received, and knobs may be traced"


class TestedDefense(NamedTuple):
    """A defense with its options fixed, and the federation it is tried in; one class stands for numbers."""

    name: str
    options: Options
    num_classes: int
    changes: Options = MappingProxyType({})  # of the federation

    @property
    def row(self) -> DefenseRow:
        return defenses.TABLE[self.name]

    def spec(self, split: bool = True, defended: bool = True) -> Spec:
        member = DefenseSpec(self.name, tuple(sorted(self.options.items())))
        values = {"passive": 1, "split": split, "batch_size": BATCH, **self.changes}
        return make_spec(self.num_classes, (member,) if defended else (), **values)

    def run(self, knobs: Sequence[Options] | None, batches: Sequence[Batch] = ()) -> Any:
        """Returns the final states, exchanges and metrics of some steps of members that are mapped together.

        Args:
          knobs: values of the defense's knobs, of each member or one for all; None for no defense, without
            the networks that it adds.
          batches: the batches of the steps, of each member or one for all; () for random batches.
        """
        spec = self.spec(defended=knobs is not None)
        named = [{}] if knobs is None else [{self.name: dict(values)} for values in knobs]
        return run_members(spec, [make_hparams(spec, values) for values in named], batches)


def run_members(spec: Spec, hparams: Sequence[HParams], batches: Sequence[Batch] = ()) -> Any:
    """Returns the final states, exchanges and metrics of some steps of members that are mapped together.

    Args:
      spec: the federation.
      hparams: the numbers of each member, at most ``MEMBERS``, or of all.
      batches: the batches of the steps, of each member or one for all; () for random batches.
    """
    batches = batches or [random_batches(spec)]
    program = _program(spec, batches[0].labels.shape[1])
    return program(_members(hparams), jnp.int32(0), _members(batches))


def member(run: Any, place: int) -> list[HostArray]:
    """Returns the numbers of one member of a run, or of a part of it."""
    return [leaf[place] for leaf in numbers(run)]


def random_batches(spec: Spec, rows: int = BATCH) -> Batch:
    """Returns the batches of ``STEPS`` steps, stacked."""
    return _stack([make_batch(spec, i, rows) for i in range(STEPS)])


def slots(tested: TestedDefense, split: bool, step: bool = True) -> None:
    """Checks that every slot takes traced knobs and returns what it received in shape and type.

    Args:
      tested: the defense.
      split: whether there is a top model.
      step: whether a whole step is tried too.

    Raises:
      ContractError: for the first slot that does not.
    """
    name, num_classes, row = tested.name, tested.num_classes, tested.row
    knobs = {knob: jax.ShapeDtypeStruct((), jnp.float32) for knob in row.knobs}
    spec = tested.spec(split)
    data = training_data(spec)
    context = make_context(BATCH)._replace(
        scores=jnp.full((BATCH, num_classes), 1 / num_classes), cut_layer=spec.cut_layer
    )
    context = context._replace(labels=context.labels.astype(data.labels.dtype))
    key, width = jax.random.key(0), spec.bottoms[0].out
    targets = jnp.full((BATCH, num_classes), 1 / num_classes)
    cut = (jnp.zeros((BATCH, width)),) * spec.passive

    def tried(slot: str, use: Callable[..., Any], *arguments: Any) -> Any:
        def run(values: Any, *arrays: Any) -> Any:
            return use(row(**values, **dict(tested.options)), *arrays)

        with rule(name, f"{SLOTS} ({slot})", row.factory):
            return jax.eval_shape(run, knobs, *arguments)

    def same(slot: str, before: Any, after: Any) -> None:
        if jax.tree.structure(before) != jax.tree.structure(after) or shape(before) != shape(after):
            why = f"what {slot} returns is {shape(after)} where {shape(before)} is due"
            raise broken(name, f"{SLOTS} ({slot})", why)

    tried("factory", _check_calls)
    state = tried("init", lambda d: d.init(key, data))
    taught = tried("teach", lambda d: d.teach(key, data.labels, num_classes))
    same("teach", (data.labels, jnp.ones(data.labels.shape)), taught)
    same("labels", data.labels, tried("labels", lambda d, s: d.labels(s, data.labels), state))
    three = "targets, which returns (targets, context, state)"
    softened = tried(three, lambda d, s: targets_returned(*d.targets(targets, context, s)), state)
    wide = jnp.zeros((BATCH, sum(spec.heads) or num_classes))
    same("targets", (wide, state), softened)

    def gradient(d: Any) -> Any:
        transform = optax.with_extra_args_support(d.gradient)
        before = transform.init(cut)
        sent, after = transform.update(cut, before, context=context)
        return before, sent, after

    before, sent, after = tried("gradient; rule(key, g, context) -> g [B, D]", gradient)
    same("gradient", (cut, before), (tuple(sent), after))
    same("read", targets, tried("read", lambda d, s: d.read(s, wide), state))
    if not step:
        return
    with rule(name, f"{SLOTS} (a step; loss -> (loss, (logits, variables, state)))", row.factory):
        hparams = make_hparams(spec)._replace(defenses={name: knobs})
        batch = make_batch(spec, 0)
        start = jax.eval_shape(lambda values: make_state(spec, values), hparams)
        ended, _, _ = jax.eval_shape(protocol.make_step(spec), start, batch, hparams)
    same("a whole step", start, ended)


def targets_returned(targets: Any, context: Any, state: Any) -> Any:
    return targets, state


def _check_calls(defense: Any) -> None:
    """Raises TypeError if it is no ``Defense``, or if a slot cannot be called as the protocol calls it."""
    if not isinstance(defense, Defense):
        raise TypeError(f"the factory returned {type(defense).__name__} and no Defense")
    given = defense._asdict()
    for slot, idle in Defense()._asdict().items():
        if callable(idle):
            check_call(slot, given[slot], *inspect.signature(idle).parameters)
    check_call("loss_fn", given["loss"](lambda *arguments: None), *LOSS)
    if not isinstance(defense.gradient, optax.GradientTransformation):
        raise TypeError(f"gradient={defense.gradient!r:.40} is not made by core.per_party or optax")


@functools.cache
def _program(spec: Spec, rows: int) -> Callable[..., Any]:
    """Returns the compiled ``run(hparams, seed, batches) -> (final state, (exchanges, metrics))`` of
    ``MEMBERS`` members of one seed."""
    step = protocol.make_step(spec)

    def run(hparams: HParams, seed: Array, batches: Batch) -> Any:
        def advance(state: State, batch: Batch) -> Any:
            state, exchange, metrics = step(state, batch, hparams)
            return state, (exchange, metrics)

        key = jax.random.key(seed)
        state, seen = jax.lax.scan(advance, make_state(spec, hparams, key, rows=rows), batches)
        return state, seen

    return jax.jit(jax.vmap(run, in_axes=(0, None, 0)))


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def _members(trees: Sequence[Any]) -> Any:
    """Returns ``MEMBERS`` trees in one; the last one fills the places that are left."""
    return _stack([*trees, *[trees[-1]] * (MEMBERS - len(trees))])


def _shared(run: Any) -> Any:
    """Returns the part of a run's result that an undefended run has too."""
    state, seen = run
    return state.weights, state.optimizer, seen


def _known(tested: TestedDefense) -> str:
    row = tested.row
    due = {SPLIT} if row.needs_top else {SPLIT, NO_SPLIT}
    if set(row.known_by) != due:
        return f"known_by names {sorted(row.known_by)} and not {sorted(due)}"
    for kind, knowers in row.known_by.items():
        if not knowers:
            return f"known_by has no attack for {kind!r}"
        for attack, option in knowers:
            if attack not in attacks.TABLE:
                return str(unknown_row("attack", attack, attacks.TABLE))
            forms = list(_forms(attack, option))
            if not forms:
                return f"the attack {attack} has no option with the value {option!r}"
            if not any(kind in form.federations for form in forms):
                return f"the attack {attack} is not defined on {kind!r}"
    return ""


def _forms(attack: str, option: str) -> Iterator[Attack]:
    """Yields the attack, of 2 and of 5 classes, with the value ``option`` for each option that takes it."""
    row = attacks.TABLE[attack]
    for named in [{name: option} for name in row.options] if option else [{}]:
        for classes in (2, 5):
            with contextlib.suppress(ValueError, TypeError):
                yield row(ONE_BOTTOM, classes, **named)


def _slots(tested: TestedDefense) -> str:
    for kind in tested.row.known_by:
        # the other rules take steps with splitting
        slots(tested, kind == SPLIT, step=kind == NO_SPLIT)
    return ""


def _acts(tested: TestedDefense) -> str:
    knobs = tested.row.example
    defended, undefended = (tested.run(given)[0].weights.bottoms for given in ([knobs], None))
    same = same_bits(defended, undefended)
    return f"{STEPS} steps at {dict(knobs)} are those without it" if same else ""


def _neutral(tested: TestedDefense) -> str:
    knobs = tested.row.neutral
    if knobs is None or tested.options.keys() - tested.row.options_for_numbers.keys():
        return ""  # with other options the defense may follow another rule
    cases = _columns(tested)
    defended, undefended = (
        _shared(tested.run(given, list(cases.values()))) for given in ([knobs], None)
    )
    for i, what in enumerate(cases):
        without = member(undefended, i)
        if finite(without) and not same_bits(member(defended, i), without):
            return f"{STEPS} steps at {dict(knobs)} differ from those without it {what}"
    return ""


def _pure(tested: TestedDefense) -> str:
    first, again = (tested.run([tested.row.example]) for _ in range(2))
    same = same_bits(first, again)
    return "" if same else "the same run twice gives other numbers: draw from context.key"


def _independent(tested: TestedDefense) -> str:
    values = [dict(tested.row.example), dict(tested.row.neutral or tested.row.example)]
    together = tested.run(values)
    for i, knobs in enumerate(values):
        # among others, and among copies of itself: no number may come from a member beside it
        for members, alone in zip(member(together, i), member(tested.run([knobs]), i), strict=True):
            if not np.allclose(members, alone, CLOSE, CLOSE):
                largest = np.max(np.abs(np.asarray(members, float) - alone))
                return f"at {knobs} a member differs by {largest:.2g}"
    return ""


COLUMNS: dict[str, Callable[[HostArray], HostArray]] = {
    "on random batches": lambda x: x,
    "where all columns are 0": lambda x: 0 * x,
    "where all rows are equal": np.ones_like,
    "where columns are huge": lambda x: np.float32(1e15) * x,
    "where columns are small": lambda x: np.float32(1e-8) * x,
    "where columns are tiny": lambda x: np.float32(1e-30) * x,
}


def _columns(tested: TestedDefense) -> dict[str, Batch]:
    """Returns batches with columns of every kind, by what they are."""
    given = random_batches(tested.spec())
    return {
        what: given._replace(features=tuple(map(change, given.features)))
        for what, change in COLUMNS.items()
    }


def _finite(tested: TestedDefense) -> str:
    knobs, cases = tested.row.example, _columns(tested)
    given = random_batches(tested.spec())
    one_class = np.full_like(given.labels, tested.num_classes - 1)
    cases["where all rows have one class"] = given._replace(labels=one_class)
    defended, undefended = (tested.run(given, list(cases.values())) for given in ([knobs], None))
    for i, what in enumerate(cases):
        # a batch that is not finite without the defense need not be finite with it
        if finite(member(undefended, i)) and not finite(member(defended, i)):
            return f"there are infinite numbers or NaN {what}"
    treated, elsewhere = _treated(tested), _acts_elsewhere(tested)
    one_row = random_batches(tested.spec(), rows=1)
    alone = tested.run([knobs], [one_row]) if elsewhere else treated(np.ones((1, 4), np.float32))
    if not finite(alone):
        return "there are infinite numbers or NaN in batches of one row"
    for exponent in (-math.inf, *range(-38, 31, 4)):
        gradients = np.random.default_rng(0).normal(size=(BATCH, 4)).astype(np.float32)
        gradients[:2] = 0
        if not finite(treated(np.float32(10.0**exponent) * gradients)):
            size = "all 0" if math.isinf(exponent) else f"about 1e{exponent}, some of them 0"
            return f"the gradient slot makes NaN of gradients that are {size}"
    return ""


def _acts_elsewhere(tested: TestedDefense) -> bool:
    """Returns whether the defense has another slot than that of gradients, or other networks."""
    defense, idle = tested.row(**tested.row.example, **dict(tested.options)), Defense()
    plain = tested.spec(defended=False)
    alone = defense._replace(gradient=idle.gradient) == idle
    return not alone or tested.row.network(plain) != plain


def _treated(tested: TestedDefense) -> Callable[[HostArray], Any]:
    """Returns the gradient slot, compiled, as a function of one party's gradients [B, 4]."""
    defense = tested.row(**tested.row.example, **dict(tested.options))
    if defense.gradient is Defense().gradient:
        return lambda gradients: gradients  # it leaves them as they are
    transform = optax.with_extra_args_support(defense.gradient)

    def treated(gradients: Array) -> Any:
        context = make_context(len(gradients))
        return transform.update(
            (gradients,), transform.init((gradients,)), embeddings=(gradients,), context=context
        )[0]

    return jax.jit(treated)


RULES: dict[str, Callable[[TestedDefense], str]] = {
    "attacks that know of it exist wherever it can be trained": _known,
    SLOTS: _slots,
    "at its example it changes something": _acts,
    "at its neutral knobs it changes no bit": _neutral,
    "the same keys give the same run": _pure,
    "members mapped together equal each alone": _independent,
    "whatever the batch, everything stays finite": _finite,
}
"""The rules of every defense, in the order in which they are tried; each returns why it is broken, or ""."""
