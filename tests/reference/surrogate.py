"""The surrogate top's loss (Kariyappa and Qureshi, arXiv 2112.01299), in NumPy and a row at a time.

h(z) = V tanh(W z + b) + c with parameters W [H, D], b [H], V [C, H], c [C], and q_i = softmax(u_i), or the
label of a known row. The gradient of CE(q_i, h(z_i)) by z_i is a Jacobian's transpose times softmax(h) - q.
"""

import numpy as np

from tests.reference.common import softmax


def row_terms(parameters, u, z, g, label):
    """A row's ||B g - gradient||, its CE(q, p) and its p; ``g`` is already B g, ``label`` -1 or known."""
    w, b, v, c = parameters
    a = np.tanh(w @ z + b)
    p = softmax(v @ a + c)
    q = softmax(u) if label < 0 else np.eye(len(p))[label]
    jacobian = v @ np.diag(1 - a**2) @ w  # [C, D]
    return np.linalg.norm(jacobian.T @ (p - q) - g), -np.sum(q * np.log(p)), p


def loss(parameters, u, z, g, sent, labels, cross_entropy, balance, anchor):
    """Of standardized z [N, D], B g [N, D] with respect to them, sent [N] and labels [N], -1 if unknown."""
    classes = len(parameters[3])
    rows = np.flatnonzero(sent)
    terms = [row_terms(parameters, u[i], z[i], g[i], labels[i]) for i in rows]
    unit = np.mean([np.linalg.norm(g[i]) for i in rows])
    each = np.array([m / unit + cross_entropy * e / np.log(classes) for m, e, _ in terms])
    known = labels[rows] >= 0
    mean_p = np.mean([p for *_, p in terms], axis=0)
    divergence = np.sum(np.log(1 / classes / mean_p)) / classes
    return each.mean() + anchor * (each[known].mean() if known.any() else 0) + balance * divergence
