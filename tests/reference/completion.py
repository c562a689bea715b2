"""Model completion: Fu et al. 2022, section 4.1, by MixMatch (Berthelot et al. 2019, algorithm 1)
with one guess and no augmentation.

    q = p^(1/T) / sum p^(1/T)
    x~ = lam x + (1 - lam) x[perm],   t~ = lam t + (1 - lam) t[perm]
    L = CE(labeled part, t~) + weight * mean over rows and classes of (p - t~)^2 (unlabeled part)

Every step: Adam, then the running average (EMA), then every state tensor times 1 - wd lr. All three are of
the head, and of the bottom where it is trained too; a frozen bottom stays as it is.
"""

import numpy as np

from tests.reference.common import adam, softmax


def sharpen(p, temperature):
    out = np.zeros_like(p)
    for i, row in enumerate(p):
        powered = [value ** (1.0 / temperature) for value in row]
        out[i] = np.array(powered) / sum(powered)
    return out


def mixup(x, targets, lam, permutation):
    mixed_x, mixed_t = np.zeros_like(x), np.zeros_like(targets)
    for i, j in enumerate(permutation):
        mixed_x[i] = lam * x[i] + (1 - lam) * x[j]
        mixed_t[i] = lam * targets[i] + (1 - lam) * targets[j]
    return mixed_x, mixed_t


def mixmatch_loss(logits, targets, labeled, weight):
    p = softmax(logits)
    ce = np.mean([-np.sum(targets[i] * np.log(p[i])) for i in range(labeled)])
    rest = [
        (p[i, c] - targets[i, c]) ** 2 for i in range(labeled, len(p)) for c in range(p.shape[1])
    ]
    return ce + weight * np.mean(rest)


def logits_gradient(logits, targets, labeled, weight):
    """d mixmatch_loss / d logits."""
    p, out = softmax(logits), np.zeros_like(logits)
    unlabeled, classes = len(p) - labeled, p.shape[1]
    for i in range(len(p)):
        if i < labeled:
            out[i] = (p[i] * targets[i].sum() - targets[i]) / labeled
        else:
            d = weight * 2 * (p[i] - targets[i]) / (unlabeled * classes)
            out[i] = p[i] * (d - np.sum(d * p[i]))
    return out


def train(state, labeled, unlabeled, targets, knobs, steps, finetune_bottom):
    """Train a linear head ``W, b`` on a linear bottom ``V, c`` on the same rows at every step,
    with lam = 1 (nothing is mixed). Returns the averaged state."""
    averaged, count, moments = dict(state), len(labeled), None
    for t in range(steps):

        def logits(x, s=state):
            return (x @ s["V"] + s["c"]) @ s["W"] + s["b"]

        q = sharpen(softmax(logits(unlabeled)), knobs["temperature"])
        x, goal = np.concatenate([labeled, unlabeled]), np.concatenate([targets, q])
        weight = knobs["lambda_u"] * min(1.0, t / steps)
        g = logits_gradient(logits(x), goal, count, weight)
        z = x @ state["V"] + state["c"]
        gradients = {"W": z.T @ g, "b": g.sum(0)}
        if finetune_bottom:
            back = g @ state["W"].T
            gradients |= {"V": x.T @ back, "c": back.sum(0)}
        before = [state[k] for k in gradients]
        moved, moments = adam(before, [*gradients.values()], moments, knobs["learning_rate"])
        state = {**state, **dict(zip(gradients, moved))}
        ema = knobs["ema"]
        shrink = 1 - knobs["weight_decay"] * knobs["learning_rate"]
        for k in gradients:
            averaged[k] = ema * averaged[k] + (1 - ema) * state[k]
            state[k] = state[k] * shrink
    return averaged
