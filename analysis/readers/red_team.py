"""Readers of five kinds that a red team wrote against the suite: an example of a file of several readers.

    python -m analysis.readers --readers=analysis/readers/red_team.py --workdir=runs/cells/spambase

``mixture`` fits Gaussians with one covariance, ``directions_self_trained`` and ``twice_trees`` learn from their
own surest guesses, ``cosine_neighbors`` compares rows with the known ones, and ``kernel_machine`` is a support
vector machine. A row is the ranks of its columns, its embeddings, the directions of its gradients of all
recorded epochs and of their mean, and the ranks of the mean gradient's entries, each standardized.

Nothing of vfljax is used, so that these readers check its own attacks.
"""

import warnings

import numpy as np
from scipy.special import log_softmax, softmax
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

_memo = {}  # what all readers of a view share


def _standardized(x):
    deviation = x.std(0)
    return (x - x.mean(0)) / np.where(deviation > 1e-9, deviation, np.inf)


def _unit(x):
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1)


def _blocks(view):
    """What a row is, by name; made once for all readers and draws of a view."""
    if _memo.get("view") is not view:
        columns = [np.asarray(part, float).reshape(len(part), -1) for part in view.features]
        columns = np.concatenate(columns, axis=1)
        mean = view.sums.gradient / np.maximum(view.sums.count, 1)[:, None]
        gradients = (*view.gradients, mean)
        lengths = np.stack([np.linalg.norm(g, axis=1) + 1e-12 for g in gradients], axis=1)
        _memo.clear()
        _memo.update(
            view=view,
            columns=columns,
            ranks=_standardized(rankdata(columns, axis=0)),
            embeddings=np.concatenate([_standardized(z) for z in view.embeddings], axis=1),
            last=_standardized(view.embeddings[-1]),
            directions=np.concatenate([_standardized(_unit(g)) for g in gradients], axis=1),
            lengths=_standardized(np.log(lengths)),
            mean=_standardized(rankdata(mean, axis=0)),
        )
    return _memo


def _joined(*parts):
    """Parts [N, ...] side by side, each divided by the root of its width."""
    return np.concatenate([part / np.sqrt(max(part.shape[1], 1)) for part in parts], axis=1)


def _known(known):
    """The rows whose labels are known, and these labels."""
    return known.rows[: known.count], known.labels[: known.count]


def _of_all_classes(scores, present, classes):
    """Scores of the classes ``present`` among the known labels; the others read less than any."""
    scores = np.stack([-scores, scores], 1) if scores.ndim == 1 else scores
    out = np.tile(scores.min(1, keepdims=True) - 1, classes)
    out[:, present] = scores
    return out


def _components(x, most):
    """The first principal components of x."""
    if "components" not in _memo:
        x = x - x.mean(0)
        u, s, _ = np.linalg.svd(x, full_matrices=False)
        _memo["components"] = (u * s)[:, :most]
    return _memo["components"]


def _surest(p, share, rows):
    """The rows of the surest guesses, a share of each class, without the known ``rows``; and the guesses."""
    guess, sure = p.argmax(1), p.max(1)
    taken = np.zeros(len(p), bool)
    for c in range(p.shape[1]):
        of = np.flatnonzero(guess == c)
        taken[of[np.argsort(-sure[of])[: max(1, int(share * len(of)))]]] = True
    taken[rows] = False
    new = np.flatnonzero(taken)
    return new, guess[new]


def mixture(view, known, num_classes):
    """EM of Gaussians with one covariance, whose responsibilities of known rows are fixed."""
    blocks = _blocks(view)
    x = _components(
        _joined(blocks["ranks"], blocks["last"], blocks["mean"], blocks["directions"]), 16
    )
    x = x / x[:, :1].std()
    rows, labels = _known(known)
    present = np.unique(labels)
    hot = np.eye(num_classes)[:, present]
    r = np.zeros((len(x), len(present)))
    r[rows] = hot[labels]
    total = np.cov(x.T, bias=True)
    cov = total + 0.2 * np.trace(total) / len(total) * np.eye(len(total))
    w = np.zeros(len(x))
    w[rows] = 1
    for step in range(12):
        mu = (r * w[:, None]).T @ x / np.maximum((r * w[:, None]).sum(0), 1e-9)[:, None]
        if step:
            apart = [x - center for center in mu]
            within = sum((r[:, [c]] * of).T @ of for c, of in enumerate(apart)) / len(x)
            cov = within + 0.05 * np.trace(total) / len(total) * np.eye(len(total))
        inv = np.linalg.inv(cov)
        s = x @ inv @ mu.T - 0.5 * np.einsum("cd,de,ce->c", mu, inv, mu)
        r = softmax(s, 1)
        r[rows] = hot[labels]
        w[:] = 0.1
        w[rows] = 1
    return _of_all_classes(s, present, num_classes)


def directions_self_trained(view, known, num_classes):
    """Logistic regression of directions, embeddings and ranks, refitted to its surest guesses of each class."""
    blocks = _blocks(view)
    x = _joined(blocks["ranks"], blocks["embeddings"], blocks["directions"], blocks["mean"]) * 4
    rows, labels = _known(known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=1.0, max_iter=200).fit(x[rows], labels)
        for share in (0.1, 0.3, 0.6):
            new, guessed = _surest(model.predict_proba(x), share, rows)
            model = LogisticRegression(C=1.0, max_iter=200).fit(
                np.concatenate([x[rows], x[new]]),
                np.concatenate([labels, model.classes_[guessed]]),
                sample_weight=np.r_[np.ones(len(rows)), np.full(len(new), 0.3)],
            )
    return _of_all_classes(model.decision_function(x), model.classes_, num_classes)


def twice_trees(view, known, num_classes):
    """Extra trees on columns, embeddings, directions and lengths; more of them learn the surest guesses too."""
    blocks = _blocks(view)
    x = np.concatenate(
        [
            blocks["columns"],
            blocks["embeddings"],
            blocks["directions"],
            blocks["lengths"],
            blocks["mean"],
        ],
        1,
    )
    rows, labels = _known(known)
    first = ExtraTreesClassifier(100, random_state=0, n_jobs=1).fit(x[rows], labels)
    p = first.predict_proba(x)
    new, guessed = _surest(p, 0.4, rows)
    second = ExtraTreesClassifier(100, random_state=1, n_jobs=1, min_samples_leaf=2).fit(
        np.concatenate([x[rows], x[new]]),
        np.concatenate([labels, first.classes_[guessed]]),
        sample_weight=np.r_[np.ones(len(rows)), np.full(len(new), 0.3)],
    )
    return _of_all_classes(p + second.predict_proba(x), first.classes_, num_classes)


def cosine_neighbors(view, known, num_classes):
    """The mean cosine of a row's directions and embeddings to known rows of a class, sharpened, then smoothed
    over each row's 15 most similar rows."""
    blocks = _blocks(view)
    x = _joined(blocks["directions"], blocks["last"], 0.7 * blocks["ranks"])
    x = _unit(x)
    rows, labels = _known(known)
    hot = np.eye(num_classes)[labels]
    near = np.exp(6 * (x @ x[rows].T)) @ hot / hot.sum(0).clip(1)
    near = np.log(near + 1e-9)
    if "near" not in blocks:
        cos = x @ x.T
        np.fill_diagonal(cos, -1)
        blocks["near"] = np.argpartition(-cos, 15, axis=1)[:, :15]
    p = log_softmax(near, 1)
    for _ in range(3):
        p = 0.5 * log_softmax(near, 1) + 0.5 * p[blocks["near"]].mean(1)
    absent = hot.sum(0) == 0
    p[:, absent] = p.min() - 1
    return p


def kernel_machine(view, known, num_classes):
    """A support vector machine of columns' ranks, embeddings of all epochs, directions and mean gradients."""
    blocks = _blocks(view)
    x = _joined(blocks["ranks"], blocks["embeddings"], blocks["directions"], blocks["mean"])
    rows, labels = _known(known)
    model = SVC(
        C=10,
        gamma=0.25,  # pyright: ignore[reportArgumentType]
        decision_function_shape="ovr",
    ).fit(x[rows], labels)
    return _of_all_classes(model.decision_function(x), model.classes_, num_classes)
