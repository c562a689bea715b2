"""From labeled texts to a ``Dataset``: a table of frequent words, or token ids.

What enters: texts, classes, the published test part. What leaves: a ``Dataset`` of kind "table"
(``form="words"``) or "text" (``form="wordpiece"``). Words are chosen and vocabularies learned on the
published training part alone, where there is one: test texts choose nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vfljax.datasets import wordpiece
from vfljax.datasets.columns import Column
from vfljax.datasets.core import Dataset, Vocabulary
from vfljax.datasets.words import top_words
from vfljax.errors import UserError, unknown

FORMS = ("words", "wordpiece")
BOUNDS = {  # least and most of an option
    "words": (1, 1_000_000),
    "length": (3, 4096),  # tokens a party reads: one at least between the special ones
    "vocabulary_size": (1, 1_000_000),
}
MOST_ROWS = 1_000_000_000


class Form(NamedTuple):
    """What texts become; a loader's options."""

    form: str  # one of FORMS
    words: int  # columns of "words"
    length: int  # tokens each party reads of "wordpiece", special ones included
    vocabulary: str  # a vocab.txt; "" learns one
    vocabulary_size: int  # of a learned one
    lowercase: bool


class Texts(NamedTuple):
    """Rows as read."""

    texts: list[str]
    labels: np.ndarray  # [R] int32
    test: np.ndarray | None  # [R] bool, the published test part; None where there is none


def check(form: Form, num_classes: int, **counts: int) -> None:
    """Raises UserError for an option no text can be read by; before a large file is read. ``counts``
    are options of balanced rows: 0, or one a class and more."""
    if form.form not in FORMS:
        raise unknown("config.data.options.form", str(form.form), FORMS)
    given = {"words": form.words, "length": form.length, "vocabulary_size": form.vocabulary_size}
    for name, value in (given | counts).items():
        least, most = BOUNDS.get(name, (0, MOST_ROWS))
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            raise UserError(
                f"config.data.options.{name}={value!r} must be an integer from {least} to {most:,}."
            )
        if name in counts and 0 < value < num_classes:
            raise UserError(
                f"config.data.options.{name}={value} leaves a class without a row: give 0 for all "
                f"rows, or {num_classes} or more."
            )
    if not isinstance(form.vocabulary, str):
        raise UserError(f"config.data.options.vocabulary={form.vocabulary!r} must be a path.")
    if not isinstance(form.lowercase, bool):
        raise UserError(f"config.data.options.lowercase={form.lowercase!r} must be True or False.")


def quotas(rows: int, num_classes: int) -> np.ndarray:
    """[C] rows of each class that ``rows`` are made of: equal, the first classes one more."""
    return rows // num_classes + (np.arange(num_classes) < rows % num_classes)


def first_rows(labels: np.ndarray, rows: int, classes: Sequence[str], name: str) -> np.ndarray:
    """Numbers of the first ``rows`` rows, classes balanced (``quotas``), in order; 0 takes all."""
    if rows == 0:
        return np.arange(len(labels))
    kept = []
    for c, wanted in enumerate(quotas(rows, len(classes))):
        own = np.flatnonzero(labels == c)
        if len(own) < wanted:
            raise too_few(name, len(own), classes[c], int(wanted), rows)
        kept.append(own[:wanted])
    return np.sort(np.concatenate(kept))


def too_few(name: str, has: int, of: str, wanted: int, rows: int) -> UserError:
    """The error for a class with fewer rows than a balanced choice needs."""
    return UserError(
        f"{name} has {has} rows of class {of!r}, and {rows} balanced rows need {wanted}: ask for "
        "fewer rows."
    )


def to_dataset(name: str, rows: Texts, classes: Sequence[str], form: Form) -> Dataset:
    """The data set of these rows; raises UserError for a part without a row of some class, too few
    different words, or any fault of the vocabulary file."""
    labels = np.asarray(rows.labels, np.int32)
    parts = {"training": np.ones(len(labels), bool)} if rows.test is None else {}
    if rows.test is not None:
        parts = {"training": ~rows.test, "test": rows.test}
    for part, mine in parts.items():
        for c, of in enumerate(classes):
            if not (mine & (labels == c)).any():
                where = f"{part} part" if rows.test is not None else "data set"
                raise UserError(f"{name}: the {where} has no row of class {of!r}.")
    own = np.flatnonzero(parts["training"])
    common = Dataset(name, None, labels, len(classes), classes=tuple(classes), test=rows.test)
    if form.form == "words":
        matrix, words = top_words(rows.texts, form.words, own)
        return common._replace(
            features=matrix,
            columns=tuple(Column(word) for word in words),
            notes=(f"{form.words} words, the most frequent of {len(own):,} rows",),
        )
    return _tokens(common, rows.texts, own, form)


def _tokens(common: Dataset, texts: list[str], own: np.ndarray, form: Form) -> Dataset:
    """Token ids by the user's vocabulary, or by one learned from the rows ``own``."""
    if form.vocabulary:
        tokenizer = wordpiece.from_file(form.vocabulary, form.lowercase)
        source = f"of {form.vocabulary}"
    else:
        learned_from = (texts[row] for row in own.tolist())
        tokenizer = wordpiece.learned(learned_from, form.vocabulary_size, form.lowercase)
        source = f"learned from {len(own):,} rows: no pretrained BERT fits it"
    found = wordpiece.vocabulary(tokenizer)
    return common._replace(
        features=wordpiece.encode(tokenizer, texts),
        kind="text",
        tokens=Vocabulary(found.size, found.pad, found.cls, found.sep),
        length=form.length,
        notes=(f"vocabulary of {found.size:,} tokens {source}",),
    )
