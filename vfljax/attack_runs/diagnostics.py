"""Computes what no attacker sees: the layers of all parties, and the gradients of the undefended loss.

They serve diagnostics (which layer gives the labels away: Sun et al. 2022, figures 2, 4, 7) and published
oracle forms (the clean gradient of a known row). They are computed from the trained model, in evaluation
mode, so that nothing has to be recorded for every row and layer of every trial.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from vfljax.attack_runs.view import AttackInput
from vfljax.attacks.core import CLEAN
from vfljax.federation.protocol import make_embed
from vfljax.federation.training import Table, rows_of
from vfljax.models.parties import parties
from vfljax.models.reading import over_chunks
from vfljax.types import Array, PyTree, Spec, Weights

Diagnostic = Callable[[Weights, tuple[Array, ...], Array], Array]


def make_layers(spec: Spec) -> Callable[[Weights, tuple[Array, ...]], dict[str, Array]]:
    """Returns ``layers(weights, features) -> {name: [B, W]}``. It gives the layers that flax modules sow
    ("party0.hidden.0", ..., "top.hidden.0"), the embedding of each party ("party0.cut"; the label party's
    own bottom is the last) and the logits ("top.logits")."""
    bottoms, top, aggregate = parties(spec)

    def layers(weights: Weights, features: tuple[Array, ...]) -> dict[str, Array]:
        out, cut = {}, []
        parts = zip(bottoms, weights.bottoms, features, strict=True)
        for p, (party, variables, x) in enumerate(parts):
            z, (_, hidden) = party.apply(variables, x, False, None)
            cut.append(z)
            out |= _named(f"party{p}", hidden) | {f"party{p}.cut": z}
        logits, (_, hidden) = top.apply(weights.active, aggregate(cut), False, None)
        out |= _named("top", hidden) | {"top.logits": logits}
        return {name: a.reshape(len(a), -1) for name, a in out.items()}

    return layers


def _named(owner: str, layers: PyTree) -> dict[str, Array]:
    return {
        f"{owner}." + jax.tree_util.keystr(path, simple=True, separator="."): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(layers)
    }


def _make_diagnostic(spec: Spec, name: str, attackers: tuple[int, ...]) -> Diagnostic:
    """Returns ``diagnostic(weights, features, labels) -> [B, W]``. It computes the layer ``name``, or for
    CLEAN the gradients of the undefended batch-mean loss with respect to the attackers' embeddings."""
    if name != CLEAN:
        layers = make_layers(spec)
        return lambda weights, features, labels: layers(weights, features)[name]
    embed, (_, top, aggregate) = make_embed(spec), parties(spec)

    def clean(weights: Weights, features: tuple[Array, ...], labels: Array) -> Array:
        def loss(cut: tuple[Array, ...]) -> Array:
            logits, _ = top.apply(weights.active, aggregate(cut), False, None)
            log_likelihood = jnp.take_along_axis(
                jax.nn.log_softmax(logits), labels[:, None], axis=1
            )
            return -jnp.sum(log_likelihood) / spec.batch_size

        gradients = jax.grad(loss)(embed(weights, features))
        return jnp.concatenate([gradients[p] for p in attackers], axis=-1)

    return clean


def diagnosis(
    spec: Spec | None, name: str, attackers: tuple[int, ...]
) -> Callable[[AttackInput, Table], dict[str, Array]]:
    """Returns ``diagnose(input, common) -> {name: [N, W]}``, the diagnostic of every training row.

    ``common`` has the columns of all parties.

    Args:
      spec: of the models; for None, ``diagnose`` returns {}.
      name: CLEAN, or a layer.
      attackers: parties whose gradients CLEAN gives.
    """
    if spec is None:
        return lambda run, common: {}
    diagnostic, chunk = _make_diagnostic(spec, name, attackers), spec.chunk

    def diagnose(run: AttackInput, common: Table) -> dict[str, Array]:
        weights = run.weights
        assert weights is not None

        def of(rows: Array) -> Array:
            return diagnostic(weights, rows_of(common, run.seed, rows), common.labels[rows])

        return {name: over_chunks(of, common.train[run.seed], chunk)}

    return diagnose


def belongs_to(name: str, attackers: tuple[int, ...]) -> bool:
    """Returns whether a layer is one of the attackers' own.

    Args:
      name: of the layer.
      attackers: numbers of parties.
    """
    return any(name.startswith(f"party{p}.") for p in attackers)
