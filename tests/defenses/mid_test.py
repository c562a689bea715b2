"""MID: its loss and gradients against the twin, the law of T, what predictions read, and its place."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import harness
from tests.reference import mid as reference
from tests.reference.common import cross_entropy, differences
from tests.sweeps import groups_beside
from vfljax import keys
from vfljax.defenses.mid import mid
from vfljax.errors import UserError
from vfljax.federation import protocol
from vfljax.models.bottleneck import Law
from vfljax.models.parties import AGGREGATIONS, parties
from vfljax.types import DefenseSpec

ROWS, CLASSES = 8, 3
KEY = jax.random.key(0)


def federation(aggregation="concatenate", **options):
    """Two passive parties, each behind a bottleneck, and the label party, behind none; cut 4."""
    chain = (DefenseSpec("mid", tuple(options.items())),)
    return harness.make_spec(CLASSES, chain, aggregation=aggregation)


@functools.cache
def problem():
    """(embeddings of three parties, targets)"""
    rng = np.random.default_rng(0)
    cut = tuple(jnp.asarray(rng.normal(size=(ROWS, 4)), jnp.float32) for _ in range(3))
    return cut, jax.nn.one_hot(rng.integers(CLASSES, size=ROWS), CLASSES)


def layer(params):
    return tuple(np.asarray(params[name], np.float64) for name in ("kernel", "bias"))


def twin_of(params):
    """(parties, top) of the variables of a spec's top model."""
    return [
        {
            "law": layer(params[f"law{p}"]["Dense_0"]),
            "decoder": [layer(params[f"decoder{p}"][f"Dense_{i}"]) for i in range(2)],
        }
        for p in range(2)
    ], layer(params["Dense_0"])


@functools.cache
def reader(spec, train):
    _, top, aggregate = parties(spec)

    def read(params, cut, key):
        logits, (_, layers) = top.apply({"params": params}, aggregate(cut), train, key)
        return logits, layers["bottleneck"]

    return harness.quick_jit(read)


def read(spec, params, cut, train, key=KEY):
    """(logits, T of each party) of the top model."""
    return reader(spec, train)(params, cut, key if train else None)


def noise_of(spec, params, cut, offset, key=KEY):
    """xi of each bottleneck in a training step with that key."""
    twins, _ = twin_of(params)
    _, ts = read(spec, params, cut, True, key)
    laws = [reference.law(np.asarray(z, float), twin["law"], offset) for z, twin in zip(cut, twins)]
    return [(np.asarray(t, float) - mu) / sigma for t, (mu, sigma) in zip(ts, laws)]


def test_logits_are_the_twins_at_mu_in_predictions_and_at_the_noise_in_training():
    spec = federation("mean", offset=0.7, output="identity", expansion=2)
    params = harness.make_weights(spec, 0).active["params"]
    assert params["decoder1"]["Dense_0"]["kernel"].shape == (4, 8)
    cut, _ = problem()
    twins, top = twin_of(params)
    xi = noise_of(spec, params, cut, 0.7)
    assert min(np.abs(x).max() for x in xi) > 1
    for train, noise in ((False, [np.zeros((ROWS, 4))] * 2), (True, xi)):
        logits, _ = read(spec, params, cut, train)
        embeddings = [np.asarray(z, float) for z in cut]
        expected = reference.logits(
            embeddings, twins, top, noise, 0.7, lambda zs: sum(zs) / len(zs), False
        )
        np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-4)


@functools.cache
def gradients(path):
    """((loss, gradients for (the top's params, the cut)) of the loss slot at lambda = .3, params)."""
    spec = federation(path=path)
    params = harness.make_weights(spec, 1).active["params"]
    cut, targets = problem()
    _, top, aggregate = parties(spec)
    context = harness.make_context(ROWS)
    loss_fn = mid(0.3, path=path).loss(protocol.undefended(top, spec))

    def loss(params, cut):
        return loss_fn({"params": params}, aggregate(cut), cut[:2], targets, context, ())[0]

    return harness.quick_jit(jax.value_and_grad(loss, argnums=(0, 1)))(params, cut), params, context


@pytest.mark.parametrize("path", ["full", "released"])
def test_the_loss_and_its_gradients_are_the_twins(path):
    (value, (by_params, by_cut)), params, context = gradients(path)
    cut, targets = problem()
    twins, top = twin_of(params)
    xi = noise_of(federation(), params, cut, 0.5, keys.fold(context.key, "top"))
    embeddings = [np.asarray(z, float) for z in cut]

    def twin(z=None, kernel=None, weight=0.3):
        zs = embeddings if z is None else [embeddings[0], z, embeddings[2]]
        party = twins[1] if kernel is None else {**twins[1], "law": (kernel, twins[1]["law"][1])}
        changed = [twins[0], party]
        logits = reference.logits(zs, changed, top, xi, 0.5, np.hstack)
        entropy = cross_entropy(logits, np.asarray(targets))
        return entropy + weight * reference.information(zs, changed, 0.5)

    np.testing.assert_allclose(value, twin(), rtol=1e-4)
    expected = differences(lambda z: twin(z), embeddings[1], 1e-5)
    np.testing.assert_allclose(by_cut[1], expected, atol=1e-4)
    # as released, the divergence does not train MID's weights
    weight = 0.3 if path == "full" else 0.0
    kernel = twins[1]["law"][0]
    expected = differences(lambda kernel: twin(kernel=kernel, weight=weight), kernel, 1e-5)
    np.testing.assert_allclose(by_params["law1"]["Dense_0"]["kernel"], expected, atol=1e-4)
    other = differences(lambda kernel: twin(kernel=kernel, weight=0.3 - weight), kernel, 1e-5)
    assert np.abs(expected - other).max() > 1e-2


def test_the_log_of_sigma_is_exact_also_where_sigma_underflows():
    variables = {"params": {"Dense_0": {"kernel": jnp.zeros((1, 2)), "bias": jnp.zeros(2)}}}
    for offset in (14.9, 15.1, 200.0):
        law: Any = Law(offset).apply(variables, jnp.zeros((1, 1)))
        np.testing.assert_allclose(law[2], -offset, atol=1e-5)


def test_t_is_gaussian_around_mu_with_noise_of_every_party_row_and_step():
    spec = federation()
    params = harness.make_weights(spec, 0).active["params"]
    cut = tuple(jnp.tile(z[:1], (4000, 1)) for z in problem()[0])
    xi = noise_of(spec, params, cut, 0.5)
    assert scipy.stats.kstest(np.ravel(xi), "norm").pvalue > 1e-3
    assert scipy.stats.kstest(np.ravel(xi) * 1.1, "norm").pvalue < 1e-6
    columns = np.concatenate(xi, axis=1)
    assert np.abs(np.corrcoef(columns.T) - np.eye(8)).max() < 0.07
    _, ts = read(spec, params, cut, True, jax.random.key(1))
    _, before = read(spec, params, cut, True)
    assert np.all(np.asarray(ts[0] != before[0]))


def test_the_top_model_s_own_weights_start_as_they_do_without_mid():
    """So that a seed's settings are paired."""
    cut, _ = problem()
    defended, bare = (
        harness.quick_jit(top.init)(KEY, aggregate(cut))["params"]
        for _, top, aggregate in map(parties, (federation(), harness.make_spec(CLASSES)))
    )
    harness.assert_same_bits(defended["Dense_0"], bare["Dense_0"])
    assert set(defended) == {"Dense_0", "law0", "law1", "decoder0", "decoder1"}


def test_a_sweep_trains_it_before_any_top_model_and_with_model_splitting_only():
    groups = groups_beside({"mid": {"lambda_kl": (0.1, 1.0)}}, **{"model.aggregation": "mean"})
    specs = {g.name: g.spec for g in groups}
    assert {g.name for g in groups if "mid" in g.name} == {"mid"}
    wrapped, plain = specs["mid"].top, specs["undefended"].top
    assert (wrapped.top, wrapped.aggregate) == (plain, AGGREGATIONS["mean"])
    assert wrapped.passive == 1
    assert specs["undefended"].aggregation == "mean"


def test_gafm_which_reads_one_embedding_is_refused_beside_it():
    chain = {"gafm": {"delta": 0.1}, "mid": {"lambda_kl": 1.0}}
    with pytest.raises(UserError, match="gafm reads one embedding"):
        groups_beside(chain, **{"model.aggregation": "mean"})
