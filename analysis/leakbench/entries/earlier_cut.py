"""An earlier cut: hidden layers are moved from the bottoms to the top model (Liu et al. 2026).

    whole       bottoms of two hidden layers, then the cut; the federation's own top model
    layers=1    bottoms of one hidden layer; one more at the front of the top model
    layers=2    linear bottoms; two more at the front of the top model

Each hidden layer that moves is as wide as the federation's last one in the bottoms, or as the cut if they have
none. The number of layers in total stays, and so does the width of the cut: as many numbers cross the wire. In
the top model a layer that moved has the top's own form (of a "head" batch norm and ReLU), and there is one for
all parties together in place of one for each. On LeakBench's boards bottoms have one hidden layer of 32 and the
top model has one of 16. Undefended thus has four layers in total and an earlier cut five; its bottoms with
layers=1 are the board's own. layers=0 is the whole with nothing moved.

Reference: Liu, Xu, Guo, Cao, Wang. "Revisiting Label Inference Attacks in Vertical Federated Learning: Why They
Are Vulnerable and How to Defend", arXiv 2603.18680, 2026. What was reachable are its abstract and a summary by
others: the mutual information between a layer's output and the labels grows with depth, so that a cut at an
earlier layer resists label inference at no cost; three layers earlier, the accuracy of attacks falls to chance.
Networks, widths and tables were not reachable. What moves on these boards is decided here.

Guarantee: none. No number is hidden, so that every attack on embeddings and gradients applies as it is.
"""

import dataclasses

from vfljax import errors
from vfljax.defenses import Defense, DefenseRow, Knower, core
from vfljax.models import MLP, Generator, Head

WHOLE = 2  # hidden layers of the bottoms before any is moved


def earlier_cut(*, layers: int = 1) -> Defense:
    """An earlier cut by some ``layers``, 0 to 2; no knob. ``init`` raises ValueError without a top model."""
    errors.check("layers", layers, 0, WHOLE, whole=True)
    return Defense(
        init=core.stateless(
            lambda data: core.require_top_model("earlier_cut", "layers move to", data)
        )
    )


def network(spec, *, layers=1):
    """The ``spec`` with its cut at an earlier layer; without a top model it stays as it is.

    Raises ValueError for networks without hidden layers that could move.
    """
    if spec.top is None:
        return spec
    served = all(isinstance(bottom, MLP) for bottom in spec.bottoms)
    if not served or not isinstance(spec.top, (MLP, Head, Generator)):
        raise ValueError(
            "earlier_cut moves hidden layers of bottoms 'mlp' to a top model 'mlp', 'head' or 'generator': "
            "choose these networks, and list earlier_cut before defenses that extend them."
        )
    width = (spec.bottoms[0].hidden or (spec.bottoms[0].out,))[-1]
    kept = (width,) * (WHOLE - layers)
    bottoms = tuple(dataclasses.replace(bottom, hidden=kept) for bottom in spec.bottoms)
    top = dataclasses.replace(spec.top, hidden=(width,) * layers + spec.top.hidden)
    return dataclasses.replace(spec, bottoms=bottoms, top=top)


earlier = DefenseRow(
    earlier_cut,
    example={},
    # nothing is hidden from who reads what crosses the wire
    known_by={
        "split": (
            *(Knower("passive"), Knower("similarity"), Knower("mean"), Knower("spectral")),
            *(Knower("probe"), Knower("joint"), Knower("ranks"), Knower("reader")),
        )
    },
    needs_top=True,
    network=network,
)
