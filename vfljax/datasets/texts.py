"""From labeled texts to a ``Dataset``: a table of frequent words, or token ids, which parties share.

What enters: texts, classes, the published test part. What leaves: a ``Dataset`` of kind "table"
(``form="words"``) or "text" (``form="wordpiece"``). Words are chosen and vocabularies learned on the
published training part alone, where there is one: test texts choose nothing.

GAFM one-hot encodes "the top 500 words" of a preprocessed IMDB, by its description Keras' copy. The token
rule is that of ``keras.preprocessing.text.Tokenizer`` (lower case; the signs in ``SEPARATORS`` part
words, apostrophes do not): it finds its 88,582 words in the 25,000 training reviews. Words rank by all
their occurrences in the training set, as Keras documents; ties are alphabetical here, undocumented
there. All 500 columns are words here; Keras' ``load_data(num_words=500)`` leaves 496, for 0 to 3 are
padding, beginning, other words and unused. Which of the two GAFM had is not said.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from vfljax.datasets import wordpiece
from vfljax.datasets.core import Column, Dataset, Ragged
from vfljax.errors import UserError

SEPARATORS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n '
WORD = f"[^{re.escape(SEPARATORS)}]+"
ROWS = 65_536  # texts cut at once: bounds the memory of their indices
LIMITS = {
    "form": ("words", "wordpiece"),
    "split": ("published", "redrawn"),
    "words": (1, 1_000_000),
    "length": (3, 4096),  # tokens a party reads: one at least between the special ones
    "vocabulary_size": (1, 1_000_000),
}


class TextForm(NamedTuple):
    """What texts become: the options that all loaders of texts have."""

    form: str
    words: int
    length: int
    vocabulary: str
    vocabulary_size: int
    lowercase: bool


def at_least_one_a_class(num_classes: int, **counts: int) -> None:
    """Raise UserError for an option of so few balanced rows that a class has none; 0 is all rows."""
    for option, count in counts.items():
        if 0 < count < num_classes:
            raise UserError(
                "leaves a class without a row",
                field=f"data.options.{option}",
                value=count,
                remedy=f"give 0 for all rows, or {num_classes} or more",
            )


def balanced(
    rows: Iterable[tuple[int, Any]], most: int, classes: Sequence[str], where: str
) -> Iterator[tuple[int, Any]]:
    """(label, anything) of all rows where ``most`` is 0, else of the first of each class that make
    ``most``: equally many, of the first classes one more. Nothing is read past the last one."""
    quotas = [most // len(classes) + (c < most % len(classes)) for c in range(len(classes))]
    left = list(quotas)
    for label, row in rows:
        if most and not left[label]:
            continue
        left[label] -= 1
        yield label, row
        if most and not any(left):
            return
    for c, name in enumerate(classes if most else ()):
        if left[c]:
            raise UserError(
                f"{where} has {quotas[c] - left[c]} rows of class {name!r}, and {most} balanced rows "
                f"need {quotas[c]}: ask for fewer rows."
            )


def to_dataset(
    name: str,
    texts: list[str],
    labels: np.ndarray,
    test: np.ndarray | None,
    classes: Sequence[str],
    form: TextForm,
) -> Dataset:
    """The data set of these rows [R]; raises UserError for a part without a row of some class, too few
    different words, or any fault of the vocabulary file."""
    train = np.ones(len(labels), bool) if test is None else ~test
    parts = {"training part": train, "test part": test} if test is not None else {"data set": train}
    for part, rows in parts.items():
        if lacking := set(range(len(classes))) - set(labels[rows].tolist()):
            raise UserError(f"{name}: the {part} has no row of class {classes[min(lacking)]!r}.")
    rows = np.flatnonzero(train)
    data = Dataset(name, None, labels, len(classes), classes=tuple(classes), test=test)
    if form.form == "words":
        matrix, words = top_words(texts, form.words, rows)
        note = f"{len(words)} words, the most frequent of {len(rows):,} rows"
        return data._replace(features=matrix, columns=tuple(map(Column, words)), notes=(note,))
    if form.vocabulary:
        tokenizer = wordpiece.from_file(form.vocabulary, form.lowercase)
        source = f"of {form.vocabulary}"
    else:
        learned_from = [texts[row] for row in rows.tolist()]
        tokenizer = wordpiece.learned(learned_from, form.vocabulary_size, form.lowercase)
        source = f"learned from {len(rows):,} rows: no pretrained BERT fits it"
    known = wordpiece.vocabulary(tokenizer)
    return data._replace(
        features=wordpiece.encode(tokenizer, texts),
        kind="text",
        tokens=known,
        length=form.length,
        notes=(f"vocabulary of {known.size:,} tokens {source}",),
    )


def top_words(
    texts: Sequence[str], most: int = 500, rows: Iterable[int] | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """([R, most] uint8, 1 where the text has the word; the words by falling frequency).

    Frequency is counted over ``rows`` (all by default). Raises UserError where those have fewer
    than ``most`` different words.
    """
    tokens = CountVectorizer(token_pattern=WORD).build_analyzer()
    counts: Counter[str] = Counter()
    for row in range(len(texts)) if rows is None else rows:
        counts.update(tokens(texts[row]))
    if most < 1 or len(counts) < most:
        raise UserError(
            field="data.options.words",
            value=most,
            remedy=f"the texts have {len(counts)} different words; choose a number from 1 to that",
        )
    # not max_features: how that breaks ties is not defined
    words = sorted(counts, key=lambda word: (-counts[word], word))[:most]
    has = CountVectorizer(token_pattern=WORD, vocabulary=words, binary=True)
    return has.transform(texts).astype(np.uint8).toarray(), tuple(words)


def spans(
    ragged: Ragged, parts: int | Sequence[float], length: int, cls: int, sep: int, pad: int
) -> tuple[np.ndarray, ...]:
    """Each party's contiguous part of every row as [CLS] part [SEP]: one [R, length] int32 a party.

    ``parts`` is their number, or their shares of a row's n tokens, in proportion. Party p of P equal
    ones has tokens p n // P to (p + 1) n // P (Fu et al., Label Inference Attacks Against Vertical
    Federated Learning, USENIX Security 2022: the attacker has the first half of the text). This
    deviates from their released code, which halves the text by characters before it is tokenized (a word
    may be cut in two) and adds no [CLS] and [SEP]: here tokens are divided, and both are added. A part
    longer than ``length - 2`` loses its end, not [SEP]; a shorter one is filled up with ``pad``; a
    part without tokens is [CLS] [SEP]. Raises UserError for parts or lengths that cannot be.
    """
    shares = np.ones(max(parts, 0)) if isinstance(parts, int) else np.asarray(parts, np.float64)
    if shares.ndim != 1 or not len(shares) or not (np.isfinite(shares) & (shares > 0)).all():
        raise UserError(
            f"a text cannot be divided into {parts!r}: give a number of parts or positive shares."
        )
    if length < 3:
        raise UserError(f"length={length} leaves no room beside [CLS] and [SEP]: give 3 or more.")
    counts = np.diff(ragged.offsets)
    if ragged.offsets[0] != 0 or ragged.offsets[-1] != len(ragged.values) or (counts < 0).any():
        raise UserError("the offsets of a Ragged must rise from 0 to the number of its values.")
    reached = np.cumsum(shares)
    reached = (counts[:, None] * reached[:-1] / reached[-1]).T  # [P - 1, R]
    # shares such as .7, .2, .1 have no exact binary sum: what is whole but for rounding counts as whole
    inner = np.floor(reached + 1e-9).astype(np.int64)
    bounds = [np.zeros_like(counts), *inner, counts]
    return tuple(
        _wrapped(ragged, low, high, length, cls, sep, pad)
        for low, high in itertools.pairwise(bounds)
    )


def _wrapped(
    ragged: Ragged, low: np.ndarray, high: np.ndarray, length: int, cls: int, sep: int, pad: int
) -> np.ndarray:
    """[R, length]: [CLS], the tokens ``low`` to ``high`` of each row as far as they fit, [SEP], pads."""
    kept = np.minimum(high - low, length - 2)
    out = np.full((len(kept), length), pad, np.int32)
    out[:, 0] = cls
    places = np.arange(length - 2)
    for first in range(0, len(kept), ROWS):
        rows = slice(first, first + ROWS)
        inside = places < kept[rows, None]
        starts = (ragged.offsets[:-1] + low)[rows, None]
        out[rows, 1:-1][inside] = ragged.values[(starts + places)[inside]]
    out[np.arange(len(kept)), kept + 1] = sep
    return out
