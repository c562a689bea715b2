"""XGBoost: what its federated mode tells. Run with 3.2.0 by ``python -m analysis.recipes.drills xgboost``."""

# pyright: reportMissingImports=false
import numpy as np
import xgboost

import vfljax


def recorder_of(booster, columns, parties):
    """Returns a recorder of the rows of every node: in the federated mode, also the secure one, all workers
    apply every split, and each of ``parties`` is told all nodes of all trees. It is not told gradients, and
    none is recorded. ``columns`` [N, F] are those of all parties, on which the trees were grown."""
    wire = vfljax.Recorder()
    leaves = booster.predict(xgboost.DMatrix(columns), pred_leaf=True).reshape(len(columns), -1)
    for tree, nodes in booster.trees_to_dataframe().groupby("Tree"):
        rows = {node: np.flatnonzero(leaves[:, tree] == node) for node in nodes["Node"]}
        for split in nodes[nodes["Feature"] != "Leaf"][::-1].itertuples():  # from the deepest on
            below = (int(child.split("-")[1]) for child in (split.Yes, split.No))
            rows[split.Node] = np.concatenate([rows[child] for child in below])
        for node in sorted(rows):
            for party in parties:
                wire.told(party, tree, node, rows[node])
    return wire
