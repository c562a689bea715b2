"""MID, Zou et al. 2023, in float64: h = ReLU(Az + a), mu = h1, sigma = softplus(h2 - s), T = mu +
sigma xi, read through ReLU(A3 ReLU(A2 T + a2) + a3), and lambda KL(N(mu, sigma^2) || N(0, I)).

A layer is (kernel [in, out], bias [out]); a party is {"law": layer, "decoder": [layer, layer]}.
"""

import numpy as np

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)


def relu(x):
    return np.maximum(x, 0.0)


def law(z, layer, offset):
    """(mu, sigma) of embeddings [B, D]."""
    kernel, bias = layer
    h = relu(z @ kernel + bias)
    width = z.shape[1]
    return h[:, :width], np.log1p(np.exp(h[:, width:] - offset))


def divergence(mu, sigma):
    """KL(N(mu, sigma^2) || N(0, 1)), summed over entries, its mean over rows, by quadrature of
    E[ln p(T) - ln q(T)] over T ~ p; Gauss-Hermite is exact for it."""
    total = 0.0
    for node, weight in zip(NODES, WEIGHTS / np.sqrt(2 * np.pi)):
        t = mu + sigma * node
        log_p = -0.5 * ((t - mu) / sigma) ** 2 - np.log(sigma)
        total += weight * np.sum(log_p + 0.5 * t**2, axis=1)
    return float(np.mean(total))


def decode(t, layers, final_relu=True):
    (k1, b1), (k2, b2) = layers
    out = relu(t @ k1 + b1) @ k2 + b2
    return relu(out) if final_relu else out


def logits(embeddings, parties, top, xi, offset, aggregate, final_relu=True):
    """Of a linear top; ``xi`` holds one [B, D] a bottleneck, zeros for T = mu. Embeddings behind the
    last bottleneck (the label party's) pass as they are."""
    out = list(embeddings)
    for p, (party, noise) in enumerate(zip(parties, xi)):
        mu, sigma = law(embeddings[p], party["law"], offset)
        out[p] = decode(mu + sigma * noise, party["decoder"], final_relu)
    kernel, bias = top
    return aggregate(out) @ kernel + bias


def information(embeddings, parties, offset):
    """The divergence summed over the parties that have a bottleneck."""
    return sum(divergence(*law(z, party["law"], offset)) for z, party in zip(embeddings, parties))
