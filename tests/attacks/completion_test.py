"""Model completion: whole training runs against the NumPy twin, and what it reads."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import completion as reference
from vfljax import keys
from vfljax.attacks import completion
from vfljax.attacks.completion import active, complete, passive
from vfljax.models import MLP
from vfljax.models.parties import Party, from_module, together
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT

CLASSES = 3


def as_arrays(knobs):
    return {name: jnp.float32(value) for name, value in knobs.items()}


# Whole training runs. With one known and one unknown row every draw of rows is the same, and
# alpha near 0 makes lam = 1: no randomness is left, so the twin needs no copy of the draws.

NO_MIXING = {"alpha": 1e-6}


def linear(layers):
    """A linear Party with these weights, and its variables."""
    kernel, bias = (jnp.asarray(a, jnp.float32) for a in layers)
    variables = {"params": {"kernel": kernel, "bias": bias}}

    def apply(variables, x, train, key):
        params = variables["params"]
        return x @ params["kernel"] + params["bias"][None], (variables, {})

    return Party(lambda key, x: variables, apply), variables


def completed(bottom, head, classes, steps, batch_size, finetune_bottom):
    """The attack of these networks as a jitted function of view, known rows and knobs."""
    sizes = {"num_classes": classes, "steps": steps, "batch_size": batch_size}
    sizes |= {"bottom": together([bottom]), "head": head, "finetune_bottom": finetune_bottom}

    def run(view, known, knobs):
        return complete(keys.run_key(0), view, known, knobs, **sizes)

    return harness.quick_jit(run)


@functools.cache
def two_row_problem():
    rng = np.random.default_rng(5)
    state = {
        "V": rng.normal(size=(4, 3)),
        "c": rng.normal(size=3),
        "W": rng.normal(size=(3, CLASSES)),
        "b": rng.normal(size=CLASSES),
    }
    return state, rng.normal(size=(2, 4)), rng.normal(size=(5, 4))


@functools.cache
def two_row_run(finetune_bottom, steps):
    """The attack on that problem as a jitted function of its knobs; steps of 4 + 4 rows."""
    state, rows, test_rows = two_row_problem()
    bottom, bottom_variables = linear((state["V"], state["c"]))
    head, _ = linear((state["W"], state["b"]))
    view, known = cases.seen_of(cases.make_case([2, 0], CLASSES, known=1))
    view = view._replace(
        features=(jnp.float32(rows),),
        test_features=(jnp.float32(test_rows),),
        bottoms=(bottom_variables,),
    )

    run = completed(bottom, head, CLASSES, steps, 4, finetune_bottom)
    return functools.partial(run, view, known), int(known.rows[0]), int(known.labels[0])


def agrees_with_the_twin(finetune_bottom, steps, changes, rtol, atol):
    state, rows, test_rows = two_row_problem()
    run, first, label = two_row_run(finetune_bottom, steps)
    knobs = {**passive(cases.BOTTOMS, CLASSES).knobs, **NO_MIXING, **changes, "learning_rate": 0.02}
    scores = run(as_arrays(knobs))
    labeled, unlabeled = (np.tile(rows[i], (4, 1)) for i in (first, 1 - first))
    targets = np.tile(np.eye(CLASSES)[label], (4, 1))
    trained = reference.train(state, labeled, unlabeled, targets, knobs, steps, finetune_bottom)
    for x, ours in ((rows, scores.train), (test_rows, scores.test)):
        logits = (x @ trained["V"] + trained["c"]) @ trained["W"] + trained["b"]
        np.testing.assert_allclose(ours, reference.softmax(logits), rtol, atol)


@pytest.mark.parametrize("finetune_bottom", [False, True])
@pytest.mark.parametrize(
    "changes",
    [{}, {"weight_decay": 20.0}, {"ema": 0.5, "lambda_u": 5.0, "temperature": 0.5}],
    ids=["published", "visible decay", "short average"],
)
def test_a_whole_training_run_agrees_with_the_numpy_twin(finetune_bottom, changes):
    agrees_with_the_twin(finetune_bottom, 12, changes, rtol=1e-3, atol=1e-4)


THE_STEP_ITSELF = {"ema": 0.0}  # what is evaluated is no average


@pytest.mark.parametrize("finetune_bottom", [False, True])
def test_two_steps_agree_with_the_numpy_twin_to_the_fifth_digit(finetune_bottom):
    """The unlabeled rows' weight is 0 in the first."""
    agrees_with_the_twin(finetune_bottom, 2, THE_STEP_ITSELF, rtol=0, atol=1e-5)


def test_the_unlabeled_rows_weight_grows_over_all_steps_and_not_over_those_drawn_at_once(
    monkeypatch,
):
    """Drawn one at a time, all steps but the first would otherwise have the whole weight."""
    monkeypatch.setattr(completion, "DRAWN", 1)
    # a run of 3 steps, which no other test has traced
    agrees_with_the_twin(False, 3, THE_STEP_ITSELF, rtol=0, atol=1e-5)


def recording(passes):
    """A bottom that embeds nothing and records the mean of each batch it reads in training mode."""

    def apply(variables, x, train, key):
        means, count = variables["batch_stats"]
        place = count.astype(jnp.int32)
        after = (means.at[place].set(jnp.mean(x)), count + 1) if train else (means, count)
        z = jnp.broadcast_to(means[None, :], (len(x), passes))
        return z, ({**variables, "batch_stats": after}, {})

    start = {"params": {}, "batch_stats": (jnp.zeros(passes), jnp.float32(0))}
    return Party(lambda key, x: start, apply), start


@functools.cache
def recording_run(steps, batch_size, finetune_bottom=True):
    """The attack on that bottom as a jitted function of view, known rows and knobs."""
    bottom, _ = recording(8)
    scale = {"params": {"scale": jnp.float32(1)}}
    head = Party(lambda key, x: scale, lambda v, z, train, key: (z * v["params"]["scale"], (v, {})))
    return completed(bottom, head, 8, steps, batch_size, finetune_bottom)


def recorded_batches(features, known, steps, batch_size, finetune_bottom=True):
    """Mean of the batch of every step, as that bottom records it; its places beyond are 0."""
    case = cases.make_case(np.arange(40) % 8, 8, features=features, known=known)
    view, known = cases.seen_of(case)
    view = view._replace(bottoms=(recording(8)[1],))
    knobs = {**passive(cases.BOTTOMS, 8).knobs, **NO_MIXING, "learning_rate": 0.0, "ema": 0.0}
    scores = recording_run(steps, batch_size, finetune_bottom)(view, known, as_arrays(knobs))
    logits = np.log(np.asarray(scores.train[0]))
    return logits - logits[-1]


def test_batch_statistics_of_a_bottom_that_trains_move_once_a_step_on_fresh_draws(monkeypatch):
    """Not by the guess, not never, not past the last step, and with new rows in every chunk of
    draws: 6 steps drawn 4 at a time."""
    monkeypatch.setattr(completion, "DRAWN", 4)
    batches = recorded_batches(None, 16, steps=6, batch_size=2)
    assert np.all(np.abs(batches[:6]) > 1e-4)
    np.testing.assert_allclose(batches[6:], 0, atol=1e-5)
    assert len(np.unique(np.round(batches[:6], 4))) == 6


def test_a_frozen_bottom_is_evaluated_as_it_was():
    """Its batch statistics do not move either; that nothing of it decays or is averaged, the twin says."""
    batches = recorded_batches(None, 16, steps=6, batch_size=2, finetune_bottom=False)
    np.testing.assert_allclose(batches, 0, atol=1e-6)


def test_with_every_row_labeled_the_unlabeled_rows_count_for_nothing():
    """What "all labels" bounds is then no loss on guesses; with one row less it is again."""
    one = passive(cases.BOTTOMS, CLASSES, steps=8, batch_size=4)
    labels = np.arange(60) % CLASSES

    def scores(known, lambda_u):
        case = cases.make_case(labels, CLASSES, known=known)
        return np.asarray(cases.attack(one, case, known=known, lambda_u=lambda_u).train)

    np.testing.assert_array_equal(scores(60, 50.0), scores(60, 0.0))
    assert np.any(scores(59, 50.0) != scores(59, 0.0))
    # nor is it the other loss that is lost: the labels are learned
    case = cases.make_case(labels, CLASSES, known=60)
    view, known = cases.seen_of(case)
    knobs = as_arrays({**one.knobs, "lambda_u": 50.0})
    other = known._replace(labels=(known.labels + 1) % CLASSES)
    run = cases.jitted(one.run)
    both = (run(keys.run_key(0), view, k, knobs).train for k in (known, other))
    assert np.any(np.asarray(next(both)) != np.asarray(next(both)))


def test_the_known_share_of_rows_is_called_positive_and_ranks_stay():
    rng = np.random.default_rng(2)
    logits = np.float32(rng.normal(size=(101, 2)) + [0, 5])  # all but called positive
    test = np.float32(rng.normal(size=(30, 2)) + [0, 5])
    for share in (0.2, 0.5):
        train, held = (
            np.asarray(completion.at_known_share(part, logits, jnp.float32(share)))
            for part in (logits, test)
        )
        odds = logits[:, 1] - logits[:, 0]
        cut = np.quantile(odds.astype(np.float64), 1 - share)
        np.testing.assert_allclose(train[:, 1] - train[:, 0], odds - cut, atol=1e-5)
        np.testing.assert_allclose(
            held[:, 1] - held[:, 0], test[:, 1] - test[:, 0] - cut, atol=1e-5
        )
        assert abs(np.mean(train[:, 1] > train[:, 0]) - share) < 0.01
        np.testing.assert_array_equal(np.argsort(train[:, 1]), np.argsort(odds))


def test_the_threshold_of_an_attack_is_that_of_its_known_rows():
    labels = (np.arange(60) % 4 == 0).astype(int)
    plain, shared = (
        passive(cases.BOTTOMS, 2, steps=5, batch_size=4, threshold=threshold)
        for threshold in ("plain", "known_share")
    )
    case = cases.make_case(labels, 2, known=20)
    one, other = (cases.attack(attack, case, known=20) for attack in (plain, shared))
    for a, b in zip(one, other, strict=True):  # the same model
        odds = np.log(a[:, 1]) - np.log(a[:, 0])
        difference = (b[:, 1] - b[:, 0]) - odds
        np.testing.assert_allclose(difference, difference[0], atol=1e-4)
    assert np.sum(other.train[:, 1] > other.train[:, 0]) == 30  # known rows are balanced
    with pytest.raises(
        ValueError, match=r"threshold='known_share' is for two classes and there are 3"
    ):
        passive(cases.BOTTOMS, 3, threshold="known_share")


@pytest.mark.parametrize("known", [16, 40])
def test_half_of_a_batch_is_unlabeled_rows_or_any_rows_where_all_are_labeled(known):
    """With 16 known, rows 0..15 have labels; a column growing with the row tells who was drawn."""
    value = np.linspace(0, 1, 40)
    features = np.tile(value[:, None], (1, cases.WIDTH))
    batches = recorded_batches(features, known, steps=7, batch_size=64)[:7]
    expected = (value[:known].mean() + (value[known:] if known < 40 else value).mean()) / 2
    np.testing.assert_allclose(batches.mean(), expected, atol=0.03)


# Options of the attack.


def test_only_heads_started_at_ones_start_with_equal_scores():
    """Ones for one layer (released), flax's default for deeper heads."""
    forms = ({}, {"head_init": "default"}, {"layers": 2}, {"layers": 2, "head_init": "ones"})
    heads = [passive(cases.BOTTOMS, CLASSES, **form).run.keywords["head"] for form in forms]
    z = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)), jnp.float32)
    logits = harness.quick_jit(
        lambda z: [h.apply(h.init(jax.random.key(0), z), z, True, None)[0] for h in heads]
    )(z)
    equal = [np.allclose(one, one[:, :1], atol=1e-6) for one in logits]
    assert equal == [True, False, False, True]


@pytest.mark.parametrize("known", [0, 1, 60])
def test_none_one_or_all_labels_known_leave_finite_scores(known):
    case = cases.make_case(np.arange(60) % CLASSES, CLASSES, known=known)
    one = passive(cases.BOTTOMS, CLASSES, steps=5, batch_size=4)
    scores = cases.attack(one, case)
    for part in scores:
        assert np.all(np.isfinite(part))
        np.testing.assert_allclose(np.sum(part, axis=1), 1, rtol=1e-5)
    assert scores.train.shape == (60, CLASSES)
    assert scores.test.shape == (10, CLASSES)


def test_the_active_attack_is_the_passive_one_on_a_malicious_run():
    one, other = passive(cases.BOTTOMS, CLASSES), active(cases.BOTTOMS, CLASSES)
    assert (one.federations, other.federations) == ((SPLIT, NO_SPLIT), (MALICIOUS,))
    assert one._replace(federations=other.federations) == other  # the very same program


def test_the_published_numbers_are_the_defaults():
    one = passive(cases.BOTTOMS, CLASSES)
    assert one.steps == 25 * 1024
    assert one.knobs == {
        "known": 40,
        "learning_rate": 2e-3,
        "temperature": 0.8,
        "alpha": 0.75,
        "lambda_u": 50,
        "ema": 0.999,
        "weight_decay": 0.02,
    }


@functools.cache
def mixed_run(bottom, mixable):
    """The attack with published mixing on 40 rows of whole numbers, as a jitted function of the
    bottom's variables."""
    rows = np.random.default_rng(5).integers(0, 9, (40, cases.WIDTH))
    view, known = cases.seen_of(
        cases.make_case(np.arange(40) % CLASSES, CLASSES, features=rows, known=12)
    )
    knobs = as_arrays(passive(cases.BOTTOMS, CLASSES).knobs)

    def run(start):
        return complete(
            keys.run_key(0),
            view._replace(bottoms=(start,)),
            known,
            knobs,
            bottom=together([bottom._replace(mixable=mixable)]),
            head=from_module(MLP((), CLASSES)),
            num_classes=CLASSES,
            steps=6,
            batch_size=4,
            finetune_bottom=False,
        ).train

    return harness.quick_jit(run)


def _affine_or_fractions(variables, x, train, key):
    """``gains`` [2] weigh an affine map of the inputs, and how far they are from whole numbers in training."""
    gains, fraction = variables["batch_stats"]
    off = jnp.max(jnp.abs(x - jnp.round(x)))
    fraction = jnp.maximum(fraction, off) if train else fraction
    kernel = jnp.eye(cases.WIDTH, 3) + 0.1
    affine = x @ kernel + jnp.arange(3.0)[None]
    z = jnp.concatenate(
        [gains[0] * affine, gains[1] * jnp.full((len(x), 1), fraction), jnp.zeros((len(x), 1))],
        axis=1,
    )
    return z, ({**variables, "batch_stats": (gains, fraction)}, {})


AFFINE_OR_FRACTIONS = Party(lambda key, x: {}, _affine_or_fractions)


def both_mixtures(gains):
    """Scores of a bottom whose inputs are mixed, and of one whose embeddings are."""
    start = {"params": {}, "batch_stats": (jnp.float32(gains), jnp.float32(0))}
    return [np.asarray(mixed_run(AFFINE_OR_FRACTIONS, mixable)(start)) for mixable in (True, False)]


def test_mixing_at_the_cut_equals_mixing_inputs_for_an_affine_bottom():
    """A convex combination passes through an affine map: the two rules differ for others only."""
    at_inputs, at_cut = both_mixtures([1, 0])
    assert np.ptp(at_cut, axis=0).max() > 0
    np.testing.assert_allclose(at_inputs, at_cut, rtol=1e-5, atol=1e-6)


def test_a_bottom_that_reads_codes_never_reads_a_mixture_of_them():
    """Its embeddings are 0 until it has read a fraction in training."""
    mixture, whole = both_mixtures([0, 1])
    assert np.ptp(whole, axis=0).max() == 0
    assert np.any(mixture != whole)


def test_dropout_in_a_bottom_draws_anew_each_step_and_never_when_scoring():
    bottom = from_module(MLP((16,), cases.CUT, dropout=0.5))
    start = harness.quick_jit(bottom.init)(jax.random.key(0), jnp.zeros((2, cases.WIDTH)))
    first, again = (np.asarray(mixed_run(bottom, True)(start)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    without = mixed_run(from_module(MLP((16,), cases.CUT)), True)(start)
    assert np.any(first != np.asarray(without))
