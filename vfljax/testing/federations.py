"""Small federations on which defenses are tried: their ``Spec``, numbers, batches and weights."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.defenses import TrainingData, with_networks
from vfljax.federation import protocol
from vfljax.machine import on_device
from vfljax.models import MLP
from vfljax.types import Batch, Context, DefenseSpec, HParams, Spec, State, Weights

COLUMNS = 6  # of every party
ROWS = 24  # training rows
RANGE = (-4.0, 4.0)  # of labels that are numbers


def make_spec(num_classes: int = 5, defenses: Any = (), **changes: Any) -> Spec:
    """Returns a federation of two passive parties and a label party with columns, all with linear models.

    Args:
      num_classes: C.
      defenses: names or ``DefenseSpec``s.
      changes: fields of ``Spec``, or ``label_features``, ``split``, ``cut``, ``hidden``, ``top_hidden``.
    """
    passive = changes.pop("passive", 2)
    count = passive + int(changes.pop("label_features", True))
    split = changes.pop("split", True)
    cut = changes.pop("cut", 4) if split else num_classes
    top = MLP(changes.pop("top_hidden", ()), num_classes) if split else None
    bottom = MLP(changes.pop("hidden", ()), cut)
    values = {
        "bottoms": (bottom,) * count,
        "top": top,
        "passive": passive,
        "num_classes": num_classes,
        "num_rows": ROWS,
        "batch_size": 8,
        "epochs": 3,
        "optimizers": ("sgd",) * (count + 1),
        "defenses": tuple(d if isinstance(d, DefenseSpec) else DefenseSpec(d) for d in defenses),
    }
    return with_networks(Spec(**{**values, **changes}))


def make_hparams(
    spec: Spec,
    defenses: Any = None,
    gamma: Any = None,
    strength: Any = None,
    absent: Any = None,
    **changes: Any,
) -> HParams:
    """Returns the numbers of a trial.

    Args:
      spec: the federation.
      defenses: knobs by defense; None for no defense.
      gamma: one number per bottom; None for honest parties.
      strength: strength of the uploads, one number per bottom; None for honest parties.
      absent: 1 or 0 per bottom; None if all take part.
      changes: other fields of ``HParams``.
    """
    values = {
        "learning_rate": 0.1,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "milestones": (),
        "decay": 0.1,
        "gamma": [0.0] * len(spec.bottoms) if gamma is None else gamma,
        "strength": [0.0] * len(spec.bottoms) if strength is None else strength,
        "absent": [0.0] * len(spec.bottoms) if absent is None else absent,
        **changes,
    }
    return HParams(
        **{name: jnp.asarray(value, jnp.float32) for name, value in values.items()},
        defenses=jax.tree.map(jnp.float32, defenses or {}),
    )


@functools.lru_cache(maxsize=512)
def make_batch(spec: Spec, seed: int, rows: int | None = None) -> Batch:
    """Returns a batch of Gaussian columns, uniform labels and a random teacher.

    Args:
      spec: the federation.
      seed: of the draws.
      rows: B; None for the federation's batch size.
    """
    rows = spec.batch_size if rows is None else rows
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(spec.num_classes), rows)
    index = rng.permutation(spec.num_rows)[:rows]
    with jax.ensure_compile_time_eval():  # concrete arrays, even if a traced function asks first
        return Batch(
            features=tuple(
                on_device(rng.normal(size=(rows, COLUMNS)), np.float32) for _ in spec.bottoms
            ),
            anchor=tuple(
                on_device(rng.normal(size=(1, COLUMNS)), np.float32) for _ in spec.bottoms
            ),
            labels=on_device(np.asarray(make_labels(spec))[index]),
            index=on_device(index, np.int32),
            scores=on_device(scores, np.float32),
        )


def make_context(rows: int, step: int = 0) -> Context:
    """Returns the context of a batch of two-class rows, as the gradient slot sees it.

    Args:
      rows: B.
      step: number of the training step, which decides the key.
    """
    return Context(
        index=jnp.arange(rows),
        labels=jnp.arange(rows) % 2,
        scores=jnp.full((rows, 2), 0.5),
        step=jnp.int32(step),
        epoch=jnp.int32(1),
        steps_per_epoch=jnp.int32(3),
        key=jax.random.key(step),
        run_key=jax.random.key(99),
        train=True,
    )


def make_labels(spec: Spec) -> jax.Array:
    """Returns the labels [N] of all training rows, drawn uniformly from the classes, or normal numbers."""
    rng = np.random.default_rng(spec.num_classes)
    if spec.num_classes == 1:
        return on_device(rng.normal(size=spec.num_rows), np.float32)
    return on_device(rng.integers(spec.num_classes, size=spec.num_rows), np.int32)


@functools.cache
def make_weights(spec: Spec, seed: int) -> Weights:
    """Returns Gaussian kernels and biases; batch norms start at mean 0, variance 1.

    Args:
      spec: the federation.
      seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    examples = (jax.ShapeDtypeStruct((2, COLUMNS), np.float32),) * len(spec.bottoms)
    shapes = jax.eval_shape(protocol.make_weights(spec), jax.random.key(0), examples)

    def fill(path: Any, leaf: Any) -> Any:
        if path[-1].key in ("scale", "var", "mean"):
            return on_device(np.full(leaf.shape, path[-1].key != "mean"), np.float32)
        spread = 1 / np.sqrt(leaf.shape[0]) if path[-1].key == "kernel" else 0.1
        return on_device(rng.normal(size=leaf.shape) * spread, np.float32)

    with jax.ensure_compile_time_eval():  # cached, so concrete even if a traced function asks first
        return jax.tree_util.tree_map_with_path(fill, shapes)


def training_data(spec: Spec) -> TrainingData:
    """Returns what a defense's ``init`` sees: the labels of all training rows and a teacher that knows nothing.

    Args:
      spec: the federation.
    """
    scores = jnp.full((spec.num_rows, spec.num_classes), 1 / spec.num_classes)
    data = TrainingData(make_labels(spec), scores, spec.num_classes, spec.cut_layer)
    if spec.num_classes > 1:
        return data
    low, high = RANGE
    shares = (jnp.clip(data.labels, low, high) - low) / (high - low)
    return data._replace(label_range=jnp.float32(RANGE), shares_of_range=shares)


def make_state(
    spec: Spec,
    hparams: HParams,
    key: Any = None,
    weights: Weights | None = None,
    rows: int | None = None,
) -> State:
    """Returns the protocol's initial state.

    Args:
      spec: the federation.
      hparams: the numbers of the trial.
      key: of the run; None: a fixed one.
      weights: None: fixed random ones (those of flax take long to compile).
      rows: B; None for the federation's batch size.
    """
    rows = spec.batch_size if rows is None else rows
    if weights is None:
        plain = dataclasses.replace(spec, defenses=(), optimizers=(), scope="all")
        weights = make_weights(plain, 0)
    cut = tuple(jnp.zeros((rows, bottom.out)) for bottom in spec.bottoms)
    key = jax.random.key(0) if key is None else key
    return protocol.make_init(spec)(key, weights, hparams, training_data(spec), cut)
