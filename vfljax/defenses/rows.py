"""What the table holds of a defense: its factory, and everything the rest of the library asks about it.

A defense is added by one file that ends in ``ROW = DefenseRow(...)`` and one line of
``vfljax.defenses.TABLE``. Sweeps, reports, benchmarks and contract tests read the row; none of them
knows a defense by its name.

In this file *knobs* are a defense's numbers and *options* its static choices, both by name and of
that defense alone: ``{"epsilon": 0.45, "k": 3.0}``, ``{"anchor": "label"}``. An option that is left at
its default may be absent.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from vfljax.defenses.core import Defense
from vfljax.errors import not_in_use
from vfljax.types import AttackIdentity, HostArray, Origin, Spec


def prior_of(balance: Iterable[int]) -> HostArray:
    """The classes' shares [C], which ``Remarks.bound`` takes, from their numbers of rows ``balance`` [C]."""
    counts = np.asarray(list(balance), float)
    return np.asarray(counts / counts.sum(), np.float32)


def plain_option(value: Any) -> Any:
    """Returns an option's value as a JSON value, or its ``repr`` if JSON has no such type."""
    if isinstance(value, tuple):
        return [plain_option(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


class Knower(NamedTuple):
    """The attack variants that take a defense into account."""

    attack: str  # its name in ``vfljax.attacks.TABLE``
    option: str = ""  # what the variant's label must name; "": any variant of the attack


AVERAGING = (
    Knower("norm", "mean"),
    Knower("mean", "mean"),
    Knower("median", "mean"),
    Knower("median", "votes"),
    Knower("probe", "mean"),
    Knower("probe", "votes"),
    *(Knower("joint"), Knower("spreading")),
)
"""Attacks on averages of a row's gradients, or of their signs, over epochs. Noise of mean zero
averages out, and entries that are sent only now and then add up. (Averaging is as old as additive
noise. No paper cited here uses it against these defenses.)"""

READING = (
    Knower("direct", "mean"),
    Knower("direct", "votes"),
    Knower("two_stage", "mean"),
    Knower("two_stage", "votes"),
    Knower("fusion"),
    *AVERAGING,
)
"""Attacks without model splitting, where the entries of a gradient name the classes: a row's average gradient
can then be read directly too, alone or beside the attacker's own logits."""


class Remarks(NamedTuple):
    """What a report remarks on a defense at some knobs and options, beyond its figures. By default that is
    nothing."""

    bound: Callable[[HostArray], tuple[str, str]] | None = None
    """``bound(prior)`` is what the defense guarantees, as the texts of two table cells, for the classes' shares
    ``prior`` [C], which sum to 1; None for a defense without a formal guarantee. The first is the factor by
    which an attacker's posterior odds of two labels may exceed its prior odds. The second is the probability
    that the best guess from what the defense reveals of a label is right. It is called where the texts are
    printed or stored, because the best guess may take long to find."""

    epsilon: float | None = None
    """The ε of the label differential privacy that a whole run keeps; None without that guarantee."""

    approximate: tuple[float, float] | None = None
    """(ε, δ) of the approximate label differential privacy that a whole run keeps, with δ above 0; None without
    it. Canaries and accuracies are compared with ``epsilon`` alone, because their limits are those of δ = 0."""

    bound_sentence: str = ""
    """How ``bound`` is to be read; "" where nothing is guaranteed. A report prints it once, whatever the number
    of points."""

    knob_labels: Mapping[str, str] = MappingProxyType({})
    """What the label of a point calls a knob, by the knob's name, where that name would promise something that
    the options do not keep. Other knobs are called by their names."""


Remark = Callable[[Mapping[str, float], Mapping[str, Any]], Remarks]
"""``(knobs, options) -> remarks`` of a defense. It is pure, and runs on the host, with concrete knobs and
options, several times for each point of a sweep."""


def no_remarks(knobs: Mapping[str, float], options: Mapping[str, Any]) -> Remarks:
    """Returns no remarks."""
    del knobs, options
    return Remarks()


LEARNS = (
    "bounds how much an attacker learns, not how often it is right: its posterior odds of two labels are at "
    "most e^epsilon times its prior odds, and the prior includes whatever it knows from features."
)
"""How epsilon is to be read, the end of a sentence whose subject is the defense."""


def private_remarks(
    promised: Callable[[Mapping[str, Any]], bool],
    guess: Callable[[float, Mapping[str, Any], Any], str],
    sentence: str,
    unbound: str = "",
) -> Remark:
    """Returns the function of remarks of a defense whose knob epsilon is that of label differential privacy.

    If ``promised(options)`` is False, nothing is guaranteed: both cells of ``Remarks.bound`` are ``unbound``,
    if any, and the label of a point calls the knob "strength". Otherwise the cells are e^epsilon and
    ``guess(epsilon, options, prior)``, and ``sentence`` says how to read them.
    """

    def remarks(knobs: Mapping[str, float], options: Mapping[str, Any]) -> Remarks:
        if not promised(options):
            bound = (lambda prior: (unbound, unbound)) if unbound else None
            return Remarks(bound, knob_labels={"epsilon": "strength"})
        epsilon = float(knobs["epsilon"])
        odds = f"{math.exp(epsilon):.3g}" if epsilon < 700 else "no bound"
        return Remarks(
            lambda prior: (odds, guess(epsilon, options, prior)), epsilon, bound_sentence=sentence
        )

    return remarks


class Strengths(NamedTuple):
    """Values of one knob of a defense, from weak to strong.

    A search for the strength that a data set needs begins with them. They are no recommendation: what a
    value does depends on the data, the batch and the networks.
    """

    knob: str
    values: tuple[float, ...]
    fixed: Mapping[str, float] = {}
    """Values of other knobs. Knobs that are neither here nor ``knob`` are as in ``DefenseRow.example``."""
    whole: bool = False
    """Whether the knob counts something, so that no value lies between two whole ones."""
    faint: tuple[float, ...] = ()
    """Those of the values at which attacks that know the defense read little of the labels, which undefended
    gradients of 256 rows over forty epochs would give away (``tests/defenses/knowers_test.py``)."""


@dataclasses.dataclass(frozen=True)
class DefenseRow:
    """One row of ``vfljax.defenses.TABLE``. Calling the row calls its factory."""

    factory: Callable[..., Defense] | None
    """``factory(*knobs, **options) -> Defense``. Its positional parameters are the knobs, numbers
    that may be traced, and its keyword-only parameters are the options, static. None: the row is the stored
    description of a plugin that is not in use, with which nothing can be trained."""

    example: Mapping[str, float]
    """Knob values at which the defense does something; benchmarks and contract tests use them."""

    known_by: Mapping[str, tuple[Knower, ...]]
    """The attack variants that take the defense into account, by the federation they attack: "split"
    (with model splitting) or "no_split". A federation that cannot be trained with the defense is
    absent."""

    neutral: Mapping[str, float] | None = None
    """Knob values at which the defense, at default options, changes nothing, bit for bit; None if
    it always changes something. Another option may be another rule: KDk anchored at its teacher
    changes labels at epsilon = 0 too."""

    needs_top: bool = False
    """Whether the top model is part of the defense, so that it is not trained without model
    splitting."""

    not_for_numbers: str = "it is defined for classes"
    """Why it is not defined for labels that are numbers (``num_classes`` = 1); "" if it is."""

    options_for_numbers: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Static options without which it is not defined for labels that are numbers: audits and the contract give
    them. Numbers may have others."""

    two_classes: bool = False
    """Whether it is defined for two classes only."""

    network: Callable[..., Spec] = lambda spec, **options: spec
    """``network(spec, **options) -> Spec``: the ``spec`` with the networks that the defense adds to the label
    party's, whose weights are trained and stored with the top model's, and with bottoms of another width or
    depth if the defense needs them. By default nothing is added."""

    strengths: Strengths | None = None
    """Where a search for a strength begins; None for a defense that has no strength."""

    remarks: Remark = no_remarks
    """What a report remarks on the defense; of a plugin that is not in use, what a sweep has stored."""

    origin: Origin | None = None
    """The plugin that the row is from (``vfljax.plugins`` sets it); None for a row of this library."""

    parameters: tuple[inspect.Parameter, ...] | None = None
    """The knobs and options of a row without a factory that names them: of a plugin that is not in use, and of
    a recorded defense. None: those of the factory."""

    def __call__(self, *args: Any, **kwargs: Any) -> Defense:
        if self.factory is None:
            raise not_in_use(self.origin.plugin if self.origin else "")
        return self.factory(*args, **kwargs)

    @property
    def knobs(self) -> dict[str, inspect.Parameter]:
        """The factory's knobs (positional parameters), in order; a parameter whose default is
        ``inspect.Parameter.empty`` must be given a value."""
        return {n: p for n, p in self._parameters() if p.kind is not p.KEYWORD_ONLY}

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The factory's static options (keyword-only parameters), in order."""
        return {n: p for n, p in self._parameters() if p.kind is p.KEYWORD_ONLY}

    @property
    def required(self) -> tuple[str, ...]:
        """The knobs without a default."""
        return tuple(n for n, p in self.knobs.items() if p.default is p.empty)

    def faint(self, values: Mapping[str, Any]) -> bool:
        """Whether these knobs and options have a strength of ``Strengths.faint``, or a stronger one."""
        strengths = self.strengths
        if strengths is None or not strengths.faint or strengths.knob not in values:
            return False
        value, first = values[strengths.knob], strengths.faint[0]
        return value >= first if strengths.values[0] < strengths.values[-1] else value <= first

    def _parameters(self) -> Iterable[tuple[str, inspect.Parameter]]:
        if self.parameters is not None:
            return ((p.name, p) for p in self.parameters)
        assert self.factory is not None
        return inspect.signature(self.factory).parameters.items()

    def knobs_and_options(
        self, values: Mapping[str, Any]
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """``(knobs, options)`` of a mapping that holds both, as a config and a stored sweep do;
        names that are neither are left out."""
        knobs, options = self.knobs, self.options
        return (
            {name: value for name, value in values.items() if name in knobs},
            {name: value for name, value in values.items() if name in options},
        )

    def known_to(self, federation: str, attacks: Iterable[AttackIdentity]) -> bool:
        """Whether one of these ``attacks``, which were run on the ``federation``, "split" or "no_split",
        takes the defense into account. False where none is listed for the federation."""
        run = list(attacks)
        return any(
            attack.attack == knower.attack and (not knower.option or knower.option in attack.words)
            for knower in self.known_by.get(federation, ())
            for attack in run
        )

    def advice(self, federation: str) -> str:
        """The variants of ``known_by`` in a config's words: "direct most_negative, probe"; "" where
        none is listed for the ``federation``."""
        knowers = self.known_by.get(federation, ())
        return ", ".join(f"{knower.attack} {knower.option}".strip() for knower in knowers)
