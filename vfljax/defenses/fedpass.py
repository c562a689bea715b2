"""FedPass: the top model reads the parties through a layer that secret passports modulate (Gu et al. 2023).

In front of the top model the label party puts

    gamma * (W2 W1 x) + beta,   gamma = tanh(F leaky_relu(E mean(W2 W1 s))),  beta likewise of b

with secret passports s and b (``vfljax.models.passports``). All rows share one gamma, so that rows of a class
still receive like gradients.

    draw   "run"   (default) passports are drawn once, before training
           "step"  (one released version) they are drawn anew at each step; predictions take their mean

Reference: Gu, Luo, Kang, Fan, Yang. "FedPass: Privacy-Preserving Vertical Federated Deep Learning with
Adaptive Obfuscation", IJCAI 2023, after the released code of FATE and SecretFlow. There as here the layer is
in front of the top model. FATE's linear block has a hidden width of D / 4 between E and F and of 128 between
W1 and W2, biases of W1 and W2, loc = -1 and, as its uniform law, U(low, high). Here all matrices are D x D
without biases, and the uniform law is loc + U(0, 1).

Guarantee: none.

Scale: passports are of the order of ``loc``, and W2 W1 x of that of the embeddings. No knob sets a strength.

Edge cases
    gamma -> 0       little reaches the top model, and training starts slowly. This happens with few seeds,
                     where all entries of E mean(W2 W1 s) are negative and the leaky ReLU divides them by 100,
                     and with law="normal", loc = 0 and many passports, whose mean is near 0

It is not trained without model splitting. It is not for use beside MID and GAFM, which read the parties'
embeddings themselves.
"""

from __future__ import annotations

import dataclasses

from vfljax import errors
from vfljax.defenses import core
from vfljax.defenses.rows import DefenseRow, Knower
from vfljax.models.passports import LAWS, Passports
from vfljax.types import Spec


def fedpass(
    *, loc: float = 1.0, law: str = "normal", passports: int = 1, draw: str = "run"
) -> core.Defense:
    """FedPass, with model splitting.

    ``passports`` rows are drawn for each of gamma and beta: ``loc`` plus N(0, 1), or with the ``law``
    "uniform" plus U(0, 1). All options are static.

    Raises ``ValueError`` for an option out of range; ``init`` does without a top model.
    """
    errors.check("loc", loc, -100.0, 100.0)
    errors.check_choice("law", law, tuple(LAWS))
    errors.check("passports", passports, 1, 1000, whole=True)
    errors.check_choice("draw", draw, ("run", "step"))
    init = core.stateless(
        lambda data: core.require_top_model("fedpass", "layer stands before", data)
    )
    return core.Defense(init=init)


def network(
    spec: Spec, *, loc: float = 1.0, law: str = "normal", passports: int = 1, draw: str = "run"
) -> Spec:
    """The ``spec`` with a passport layer before its top model; without a top model it stays as it is."""
    if spec.top is None:
        return spec
    top = Passports(
        top=spec.top,
        count=int(passports),
        loc=float(loc),
        law=law,
        once=draw == "run",
        weights=getattr(spec.top, "weights", "default"),
    )
    return dataclasses.replace(spec, top=top)


ROW = DefenseRow(
    factory=fedpass,
    example={},
    not_for_numbers="",
    known_by={
        # all rows share gamma, so that rows of one class still receive like gradients
        "split": (Knower("similarity"), Knower("mean"), Knower("probe"), Knower("joint"))
    },
    needs_top=True,
    network=network,
)
