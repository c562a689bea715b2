"""Model completion: whole training runs against the NumPy twin, and what it reads."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import completion as reference
from tests.reference.common import softmax
from vfljax import keys
from vfljax.attacks import completion
from vfljax.attacks.completion import Completion, active, complete, passive
from vfljax.models import MLP
from vfljax.models.parties import Party, from_module, together
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT

CLASSES, STEPS = 3, 12


@pytest.fixture(autouse=True)
def _few_drawn_at_once(monkeypatch):
    """Every run draws its random numbers in several chunks. A power of uniform numbers stands for the beta law,
    which takes long to compile: it too is near 1 for alpha near 0. The contract runs the published law."""

    def power(key, a, b, shape):
        return jax.random.uniform(key, shape) ** jnp.minimum(a, b)

    monkeypatch.setattr(jax.random, "beta", power)
    monkeypatch.setattr(completion, "DRAWN", 4)
    monkeypatch.setattr(completion, "CHUNK", 36)  # steps of 4 + 4 rows are prepared by 3 and 1


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
        return complete(keys.run_key(0), view, known, knobs, Completion(**sizes))

    return harness.quick_jit(run)


@functools.cache
def two_row_problem():
    rng = np.random.default_rng(6)  # probabilities are far from 0 and 1
    state = {
        "V": rng.normal(size=(4, 3)),
        "c": rng.normal(size=3),
        "W": rng.normal(size=(3, CLASSES)),
        "b": rng.normal(size=CLASSES),
    }
    return state, rng.normal(size=(2, 4)), rng.normal(size=(5, 4))


@functools.cache
def two_row_run(finetune_bottom):
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

    run = completed(bottom, head, CLASSES, STEPS, 4, finetune_bottom)
    return functools.partial(run, view, known), int(known.rows[0]), int(known.labels[0])


@pytest.mark.parametrize("finetune_bottom", [False, True])
@pytest.mark.parametrize(
    "changes",
    [{}, {"weight_decay": 20.0}, {"ema": 0.5, "lambda_u": 5.0, "temperature": 0.5}],
    ids=["published", "visible decay", "short average"],
)
def test_a_whole_training_run_agrees_with_the_numpy_twin(finetune_bottom, changes):
    """The unlabeled rows' weight grows over all steps, and not over the 4 that are drawn at once."""
    state, rows, test_rows = two_row_problem()
    run, first, label = two_row_run(finetune_bottom)
    knobs = {
        **passive(cases.ONE_BOTTOM, CLASSES).knobs,
        **NO_MIXING,
        **changes,
        "learning_rate": 0.02,
    }
    scores = run(as_arrays(knobs))
    labeled, unlabeled = (np.tile(rows[i], (4, 1)) for i in (first, 1 - first))
    targets = np.tile(np.eye(CLASSES)[label], (4, 1))
    trained = reference.train(state, labeled, unlabeled, targets, knobs, STEPS, finetune_bottom)
    for x, ours in ((rows, scores.train), (test_rows, scores.test)):
        logits = (x @ trained["V"] + trained["c"]) @ trained["W"] + trained["b"]
        np.testing.assert_allclose(ours, softmax(logits), rtol=1e-3, atol=1e-4)


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
def recording_run():
    """The attack on that bottom as a jitted function of view, known rows and knobs."""
    bottom, _ = recording(8)
    scale = {"params": {"scale": jnp.float32(1)}}
    head = Party(lambda key, x: scale, lambda v, z, train, key: (z * v["params"]["scale"], (v, {})))
    return completed(bottom, head, 8, steps=6, batch_size=64, finetune_bottom=True)


@pytest.mark.parametrize("known", [16, 40])
def test_half_of_a_batch_is_unlabeled_rows_or_any_rows_where_all_are_labeled(known):
    """Batch statistics of a bottom that trains move once a step, on rows drawn anew: not by the guess, not past
    the last step, and with new rows in every chunk of draws. With 16 known, rows 0..15 have labels."""
    value = np.linspace(0, 1, 40)  # a column growing with the row tells who was drawn
    features = np.tile(value[:, None], (1, cases.OWN_COLUMNS))
    case = cases.make_case(np.arange(40) % 8, 8, features=features, known=known)
    view, known_rows = cases.seen_of(case)
    view = view._replace(bottoms=(recording(8)[1],))
    knobs = {**passive(cases.ONE_BOTTOM, 8).knobs, **NO_MIXING, "learning_rate": 0.0, "ema": 0.0}
    scores = recording_run()(view, known_rows, as_arrays(knobs))
    logits = np.log(np.asarray(scores.train[0]))
    batches = logits - logits[-1]
    assert np.all(np.abs(batches[:6]) > 1e-4)
    np.testing.assert_allclose(batches[6:], 0, atol=1e-5)
    assert len(np.unique(np.round(batches[:6], 5))) == 6
    expected = (value[:known].mean() + (value[known:] if known < 40 else value).mean()) / 2
    np.testing.assert_allclose(batches[:6].mean(), expected, atol=0.03)


@pytest.mark.parametrize("known", [0, 1, 20, 59, 60])
def test_of_60_rows_any_number_may_be_labeled_and_unlabeled_ones_count_while_there_are_some(known):
    """What "all labels" bounds is no loss on guesses. The share of positives is that of the known rows."""
    one = passive(cases.ONE_BOTTOM, 2, steps=8, batch_size=4, threshold="known_share")
    case = cases.make_case((np.arange(60) % 4 == 0).astype(int), 2, known=known)
    plain, without = (cases.attack(one, case, known=known, lambda_u=w) for w in (50.0, 0.0))
    for part, rows in zip(plain, (60, 10), strict=True):
        assert part.shape == (rows, 2)
        assert np.all(np.isfinite(part))
    assert np.array_equal(plain.train, without.train) == (known in (0, 60))
    positive = np.sum(plain.train[:, 1] > plain.train[:, 0])
    assert known != 20 or positive == 30  # known rows are balanced


def test_the_known_share_of_rows_is_called_positive_and_ranks_stay():
    rng = np.random.default_rng(2)
    logits = np.float32(rng.normal(size=(101, 2)) + [0, 5])  # all but called positive
    test = np.float32(rng.normal(size=(30, 2)) + [0, 5])
    share, odds = 0.2, logits[:, 1] - logits[:, 0]
    cut = np.quantile(odds.astype(np.float64), 1 - share)
    for part in (logits, test):
        found = np.asarray(completion.at_known_share(part, logits, jnp.float32(share)))
        expected = part[:, 1] - part[:, 0] - cut
        np.testing.assert_allclose(found, np.stack([-expected, expected], 1) / 2, atol=1e-5)


def test_the_known_share_is_for_two_classes():
    with pytest.raises(
        ValueError, match=r"threshold='known_share' is for two classes and there are 3"
    ):
        passive(cases.ONE_BOTTOM, 3, threshold="known_share")


# Options of the attack.


def test_a_head_of_one_layer_starts_at_ones_as_released_and_a_deeper_one_does_not():
    forms = ({}, {"layers": 2})
    heads = [passive(cases.ONE_BOTTOM, CLASSES, **form).run.keywords["of"].head for form in forms]
    z = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)), jnp.float32)
    logits = harness.quick_jit(
        lambda z: [h.apply(h.init(jax.random.key(0), z), z, True, None)[0] for h in heads]
    )(z)
    equal = [np.allclose(one, one[:, :1], atol=1e-6) for one in logits]
    assert equal == [True, False]


def test_the_active_attack_is_the_passive_one_on_a_malicious_run_and_the_defaults_are_published():
    one, other = passive(cases.ONE_BOTTOM, CLASSES), active(cases.ONE_BOTTOM, CLASSES)
    assert (one.federations, other.federations) == ((SPLIT, NO_SPLIT), (MALICIOUS,))
    assert one._replace(federations=other.federations) == other  # the very same program
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


def _affine_or_fractions(variables, x, train, key):
    """``gains`` [2] weigh an affine map of the inputs, and a column of them times the largest distance from
    whole numbers that was read in training."""
    gains, fraction = variables["batch_stats"]
    off = jnp.max(jnp.abs(x - jnp.round(x)))
    fraction = jnp.maximum(fraction, off) if train else fraction
    kernel = jnp.eye(cases.OWN_COLUMNS, 3) + 0.1
    affine = x @ kernel + jnp.arange(3.0)[None]
    z = jnp.concatenate(
        [gains[0] * affine, gains[1] * fraction * x[:, :1], jnp.zeros((len(x), 1))], axis=1
    )
    return z, ({**variables, "batch_stats": (gains, fraction)}, {})


@functools.cache
def mixing_run(mixable):
    """The attack with published mixing on 40 rows of whole numbers, as a jitted function of its view."""
    bottom = Party(lambda key, x: {}, _affine_or_fractions)._replace(mixable=mixable)
    return completed(bottom, from_module(MLP((), CLASSES)), CLASSES, 6, 4, False)


def both_mixtures(gains):
    """Scores of a bottom whose inputs are mixed, and of one whose embeddings are."""
    rows = np.random.default_rng(5).integers(0, 9, (40, cases.OWN_COLUMNS))
    case = cases.make_case(np.arange(40) % CLASSES, CLASSES, features=rows, known=12)
    view, known = cases.seen_of(case)
    start = {"params": {}, "batch_stats": (jnp.float32(gains), jnp.float32(0))}
    knobs = as_arrays(passive(cases.ONE_BOTTOM, CLASSES).knobs)
    view = view._replace(bottoms=(start,))
    return [np.asarray(mixing_run(mixable)(view, known, knobs).train) for mixable in (True, False)]


def test_mixing_at_the_cut_equals_mixing_inputs_for_an_affine_bottom():
    """A convex combination passes through an affine map: the two rules differ for others only."""
    at_inputs, at_cut = both_mixtures([1, 0])
    assert np.ptp(at_cut, axis=0).max() > 0
    np.testing.assert_allclose(at_inputs, at_cut, rtol=1e-5, atol=1e-6)


def test_a_bottom_that_reads_codes_never_reads_a_mixture_of_them():
    """Its embeddings are 0 until it has read a fraction in training. A frozen bottom is evaluated as it was, so
    that rows score alike; that nothing of it decays or is averaged, the twin says."""
    mixture, whole = both_mixtures([0, 1])
    assert np.ptp(whole, axis=0).max() == np.ptp(mixture, axis=0).max() == 0
    assert np.any(mixture != whole)
