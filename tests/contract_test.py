"""The contract as functions: each way to break it is one line. Our rows keep it by their own tests."""

import functools
import pathlib

import jax.numpy as jnp
import optax
import pytest

from tests.refusals import refused
from vfljax import attacks, defenses, testing
from vfljax.attacks import Attack, AttackRow
from vfljax.defenses import Defense, DefenseRow, Knower, core
from vfljax.errors import UserError
from vfljax.types import SPLIT, Origin, Scores

KNOWN = {"split": (Knower("probe", "mean"),), "no_split": (Knower("probe", "mean"),)}


def test_names_and_rules_that_do_not_exist_are_refused():
    with pytest.raises(UserError, match="unknown defense or attack 'nois': did you mean 'noise'"):
        testing.rules("nois")
    with pytest.raises(UserError, match="unknown rule 'x'"):
        testing.check("noise", rule="x")


def gradient(rule):
    return lambda scale: Defense(gradient=core.per_party(rule(scale)))


def branching(scale):
    return Defense() if scale == 0 else Defense(gradient=optax.scale(scale))


def slot(**slots):
    return lambda scale: Defense(**slots)


FACTORIES = {
    "short_rule": (
        gradient(lambda scale: lambda key, g: g),
        "(gradient; rule(key, g, context) -> g [B, D])': ",
    ),
    "bare_rule": (slot(gradient=lambda key, g, context: g), "is not made by core.per_party"),
    "short_targets": (
        slot(targets=lambda t, context: (t, context)),
        "targets(t, context) is given where targets(targets, context, state) is expected",
    ),
    "lonely_targets": (
        slot(targets=lambda t, context, state: t),
        "which returns (targets, context, state)",
    ),
    "short_loss": (slot(loss=lambda loss_fn: lambda active, f: 0), "loss_fn(active, f) is given"),
    "no_slot": (slot(read=3), "read=3 is given where read(state, logits) is expected"),
    "no_defense": (lambda scale: None, "the factory returned NoneType and no Defense"),
    "branches": (branching, f"{pathlib.Path(__file__).name}, line "),
    "narrow": (gradient(lambda scale: lambda key, g, context: g[:, :-1]), "where float32[8, 4]"),
    "raises": (gradient(lambda scale: lambda key, g, context: 1 // 0), "ZeroDivisionError"),
    "idle": (lambda scale: Defense(), "are those without it"),
    "never_neutral": (
        gradient(lambda scale: lambda key, g, context: g * (1 + 1e-6)),
        "differ from those without it",
    ),
    "no_number": (
        gradient(lambda scale: lambda key, g, context: g * jnp.nan),
        "the same run twice gives other numbers",
    ),
    "divides": (
        gradient(lambda scale: lambda key, g, context: g / (scale * jnp.linalg.norm(g))),
        "NaN of gradients that are all 0",
    ),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_each_way_to_break_a_defense_is_said_in_one_line(name, monkeypatch):
    factory, why = FACTORIES[name]
    neutral = {"scale": 0.0} if name == "never_neutral" else None
    row = DefenseRow(factory, {"scale": 0.5}, KNOWN, neutral)
    monkeypatch.setitem(defenses.TABLE, name, row)
    with refused(f"{name} breaks a rule of the contract", why, kind=testing.ContractError):
        testing.check(name, classes=(2,))


@pytest.mark.parametrize(
    ("known_by", "why"),
    [
        ({}, "known_by names [] and not ['no_split', 'split']"),
        ({**KNOWN, "split": ()}, "known_by has no attack for 'split'"),
        ({**KNOWN, "split": (Knower("prob"),)}, "unknown attack 'prob': did you mean 'probe'"),
        ({**KNOWN, "split": (Knower("direct"),)}, "the attack direct is not defined on 'split'"),
        (
            {**KNOWN, "split": (Knower("norm", "x"),)},
            "the attack norm has no option with the value",
        ),
    ],
)
def test_attacks_that_cannot_know_of_a_defense_are_said(known_by, why, monkeypatch):
    monkeypatch.setitem(defenses.TABLE, "toy", DefenseRow(Defense, {}, known_by))
    with refused(why, kind=testing.ContractError):
        testing.check("toy")


def attack(run, **fields):
    values = {"federations": (SPLIT,), **fields}
    return lambda bottoms, num_classes: Attack(run, **values)


def zeros(rows=200, classes=5):
    return lambda key, view, known, knobs: Scores(jnp.zeros((rows, classes)))


def branching_run(key, view, known, knobs):
    return Scores(jnp.zeros((200, 5)) if knobs["scale"] > 0 else jnp.ones((200, 5)))


ATTACKS = {
    "short_run": (
        attack(lambda view, known: Scores(view.gradients[-1])),
        "run(view, known) is given where run(key, view, known, knobs) is expected",
    ),
    "short": (attack(zeros(rows=199)), "train is float32[199, 5] where float32[200, 5]"),
    "no_scores": (
        attack(lambda *a: jnp.zeros((200, 5))),
        "run returned float32[200, 5] and no Scores",
    ),
    "no_attack": (lambda bottoms, num_classes: None, "returned NoneType and no Attack"),
    "elsewhere": (attack(zeros(), federations=("splitt",)), "federations=('splitt',) and not some"),
    "branches": (attack(branching_run, knobs={"scale": 1.0}), "a knob or an array is traced"),
    "unknown_read": (
        attack(zeros(), reads=("labels",)),
        "reads=('labels',) and not some of columns",
    ),
    "undeclared": (
        attack(lambda key, view, *rest: Scores(view.sums.sign[:, :5]), reads=("order",)),
        "it reads 'gradients', which reads=('order',) leaves out",
    ),
    "text": (attack(zeros(), knobs={"scale": "x"}), "the knob scale='x' is no number"),
    "nan": (
        attack(lambda *a: Scores(jnp.full((200, 5), jnp.nan))),
        "every row that was sent has a finite score",
    ),
    "blind": (
        attack(lambda key, view, known, knobs: Scores(jnp.zeros((view.gradients.shape[1], 5)))),
        "it reads 0.20 at most (balanced top-1)",
    ),
}


def moved_since(key, view, known, knobs, bottoms):
    """Scores from how far the embeddings of the last epoch are from those of the trained bottom."""
    moved = view.embeddings[-1] - bottoms[0].apply(view.bottoms[0], view.features[0])
    return Scores(jnp.tile(jnp.sum(moved, axis=1)[:, None], 5))


def test_a_plugin_may_compare_embeddings_with_what_the_bottom_gives(monkeypatch):
    def factory(bottoms, num_classes):
        return attack(functools.partial(moved_since, bottoms=bottoms))(bottoms, num_classes)

    here = Origin("own", "0.1", "0" * 64)
    monkeypatch.setitem(attacks.TABLE, "moved", AttackRow(factory, origin=here))
    testing.check_plugins({}, {"moved": [{}]})


@pytest.mark.parametrize("name", ATTACKS)
def test_each_way_to_break_an_attack_is_said_in_one_line(name, monkeypatch):
    factory, why = ATTACKS[name]
    monkeypatch.setitem(attacks.TABLE, name, AttackRow(factory))
    with refused(why, kind=testing.ContractError):
        testing.check(name, classes=(5,))


def test_a_defense_is_tried_with_two_classes_and_with_many(monkeypatch):
    tried = []

    def keep_all(*given):
        tried.extend(case.num_classes for case in given[-1])

    monkeypatch.setattr(testing, "_keep_all", keep_all)
    testing.check_defense("noise")
    testing.check_defense("marvell")  # of two classes alone
    assert tried == [2, testing.MANY, 1, 2]
