"""Turns labeled texts into a ``Dataset``: a table of frequent words, or token ids that parties divide.

Words are chosen and vocabularies are learned on the published training part alone, if there is one, so that
test texts have no influence on them.

GAFM one-hot encodes "the top 500 words" of a preprocessed IMDB, by its description Keras' copy. Words are cut
by the rule of ``keras.preprocessing.text.Tokenizer`` (lower case; the signs in ``SEPARATORS`` separate words,
apostrophes do not), which finds the 88,582 words of Keras' copy in the 25,000 training reviews. Words rank by
all their occurrences in the training set, as Keras documents. Ties are alphabetical here; Keras does not
document them. All 500 columns are words here. Keras' ``load_data(num_words=500)`` leaves 496, because 0 to 3
are padding, beginning, other words and unused. The paper does not tell which of the two GAFM used.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import pathlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from vfljax.datasets import wordpiece
from vfljax.datasets.core import Column, Dataset, Ragged
from vfljax.datasets.files import DAMAGED, members
from vfljax.datasets.table_errors import all_different, fault, reading
from vfljax.errors import Field, UserError, user_path

LONGEST = 1 << 20  # bytes of a line or a text; no data set here has so long ones
SEPARATORS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n '
WORD = f"[^{re.escape(SEPARATORS)}]+"
ROWS = 65_536  # texts cut at once: bounds the memory of their indices
LIMITS = {
    "form": ("words", "wordpiece"),
    "split": ("published", "redrawn"),
    "words": (1, 1_000_000),
    "length": (3, 4096),  # tokens a party reads; two of them are special
    "vocabulary_size": (1, 1_000_000),
}


def at_least_one_a_class(num_classes: int, **counts: int) -> None:
    """Raises UserError if an option asks for fewer balanced rows than there are classes.

    Args:
      num_classes: C.
      **counts: the numbers of rows by the option's name; 0 is all rows.
    """
    for option, count in counts.items():
        if 0 < count < num_classes:
            remedy = f"give 0 for all rows, or {num_classes} or more"
            what = "leaves a class without a row"
            raise UserError(what, field=f"data.options.{option}", value=count, remedy=remedy)


def balanced(
    rows: Iterable[tuple[int, Any]], most: int, classes: Sequence[str], where: str
) -> Iterator[tuple[int, Any]]:
    """Yields all labeled rows, or the first rows of each class.

    Args:
      rows: (label, anything).
      most: number of rows, divided equally between the classes (if it does not divide, the first classes have
        one row more); 0 is all. Nothing is read past the last row needed.
      classes: their names.
      where: what messages call the rows.

    Raises:
      UserError: if a class has too few rows.
    """
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
            has = f"{where} has {quotas[c] - left[c]} rows of class {name!r}"
            what = f"{has}, and {most} balanced rows need {quotas[c]}"
            raise UserError(what, remedy="ask for fewer rows")


def to_dataset(
    name: str,
    parts: Sequence[Sequence[tuple[int, str]]],
    classes: Sequence[str],
    form: str,
    words: int,
    length: int,
    vocabulary: str,
    vocabulary_size: int,
    lowercase: bool,
) -> Dataset:
    """Returns the data set of texts.

    Args:
      name: of the data set.
      parts: (label, text) of the training part and of the published test part, or of the only part.
      classes: their names.
      form: "words": kind "table", [R, words] uint8, 1 where a text has the word (GAFM's input but for the
        difference above); "wordpiece": kind "text", token ids.
      words: number of columns, the most frequent words of the first part.
      length: number of tokens that a party reads; this and the options below are of "wordpiece".
      vocabulary: a vocab.txt; "" learns a vocabulary from the texts of the first part.
      vocabulary_size: size of a learned vocabulary.
      lowercase: whether case is dropped.

    Raises:
      UserError: for a part without a row of some class, too few different words, or any fault of the
        vocabulary file.
    """
    for which, part in zip(("training part", "test part") if parts[1:] else ("data set",), parts):
        if lacking := set(range(len(classes))) - {label for label, _ in part}:
            raise UserError(f"{name}: the {which} has no row of class {classes[min(lacking)]!r}.")
    rows = len(parts[0])
    labels = np.array([label for part in parts for label, _ in part], np.int32)
    texts = [text for part in parts for _, text in part]
    test = np.arange(len(labels)) >= rows if parts[1:] else None
    data = Dataset(name, None, labels, len(classes), classes=tuple(classes), test=test)
    if form == "words":
        matrix, top = _top_words(texts, words, rows)
        note = f"{words} words, the most frequent of {rows:,} rows"
        return data._replace(features=matrix, columns=tuple(map(Column, top)), notes=(note,))
    if vocabulary:
        file = user_path(vocabulary, Field("data.options.vocabulary"))
        tokenizer = wordpiece.from_file(str(file), lowercase)
        source = f"of {vocabulary}"
    else:
        tokenizer = wordpiece.learned(texts[:rows], vocabulary_size, lowercase)
        source = f"learned from {rows:,} rows: no pretrained BERT fits it"
    known = wordpiece.vocabulary(tokenizer)
    ids, note = wordpiece.encode(tokenizer, texts), f"vocabulary of {known.size:,} tokens {source}"
    return data._replace(features=ids, kind="text", tokens=known, length=length, notes=(note,))


def _top_words(texts: Sequence[str], most: int, rows: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Returns [R, most] uint8, 1 where the text has the word, and the words, by falling frequency in the
    first ``rows`` texts. Raises UserError if these texts have fewer than ``most`` different words."""
    tokens = CountVectorizer(token_pattern=WORD).build_analyzer()
    counts = Counter(itertools.chain.from_iterable(map(tokens, texts[:rows])))
    if most < 1 or len(counts) < most:
        remedy = f"the texts have {len(counts)} different words; choose a number from 1 to that"
        raise UserError(field="data.options.words", value=most, remedy=remedy)
    # not max_features: how it breaks ties is not defined
    words = sorted(counts, key=lambda word: (-counts[word], word))[:most]
    has = CountVectorizer(token_pattern=WORD, vocabulary=words, binary=True)
    return has.transform(texts).astype(np.uint8).toarray(), tuple(words)


def spans(
    ragged: Ragged, parts: int | Sequence[float], length: int, cls: int, sep: int, pad: int
) -> tuple[np.ndarray, ...]:
    """Divides every text between parties. Returns [R, length] int32 per party, each row [CLS] part [SEP].

    Party p of P equal ones has a row's tokens p n // P to (p + 1) n // P (Fu et al., Label Inference Attacks
    Against Vertical Federated Learning, USENIX Security 2022: the attacker has the first half of the text).
    This deviates from their released code, which halves the text by characters before it is tokenized (a word
    may be cut in two) and adds no [CLS] and [SEP]: here tokens are divided, and both are added.

    Args:
      ragged: token ids.
      parts: the number of parties, or their shares of a row's n tokens, in proportion.
      length: tokens of a row. A part of over ``length - 2`` is cut at its end; an empty one is [CLS] [SEP].
      cls, sep, pad: ids of the special tokens; ``pad`` fills a shorter part up.

    Raises:
      UserError: for shares that are not positive, for offsets that are wrong, and for a length below 3.
    """
    shares = np.ones(max(parts, 0)) if isinstance(parts, int) else np.asarray(parts, np.float64)
    if shares.ndim != 1 or not len(shares) or not (np.isfinite(shares) & (shares > 0)).all():
        what = f"a text cannot be divided into {parts!r}"
        raise UserError(what, remedy="give a number of parts or positive shares")
    if length < 3:
        raise UserError(f"length={length} leaves no room beside [CLS] and [SEP]: give 3 or more.")
    counts = np.diff(ragged.offsets)
    if ragged.offsets[0] != 0 or ragged.offsets[-1] != len(ragged.values) or (counts < 0).any():
        raise UserError("the offsets of a Ragged must rise from 0 to the number of its values.")
    reached = np.cumsum(shares)
    reached = (counts[:, None] * reached[:-1] / reached[-1]).T  # [P - 1, R]
    # shares such as .7, .2, .1 have no exact binary sum: what is whole but for rounding counts as whole
    bounds = [np.zeros_like(counts), *np.floor(reached + 1e-9).astype(np.int64), counts]
    places, wrapped = np.arange(length - 2), []
    for low, high in itertools.pairwise(bounds):
        kept = np.minimum(high - low, length - 2)
        out = np.full((len(kept), length), pad, np.int32)
        out[:, 0] = cls
        for first in range(0, len(kept), ROWS):
            rows = slice(first, first + ROWS)
            inside = places < kept[rows, None]
            starts = (ragged.offsets[:-1] + low)[rows, None]
            out[rows, 1:-1][inside] = ragged.values[(starts + places)[inside]]
        out[np.arange(len(kept)), kept + 1] = sep
        wrapped.append(out)
    return tuple(wrapped)


def decoded(raw: bytes, where: Any, line: int = 0) -> str:
    """Returns UTF-8 bytes as text; raises UserError if they are not UTF-8, or ``LONGEST`` or more.

    Args:
      raw: the bytes.
      where: the name of their file.
      line: the number of their line, for messages; 0 names none.
    """
    if len(raw) >= LONGEST:
        what = f"is over {LONGEST:,} bytes long"
        raise fault(where, what, "it is no text of the data set", line=line)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        what = f"is not UTF-8 text (byte {error.start + 1}: {error.reason})"
        raise fault(where, what, line=line) from error


def csv_rows(path: pathlib.Path) -> Iterator[tuple[int, list[str]]]:
    """Yields (number of the line on which a row begins, its fields) for each row that is not blank. Fields
    may be quoted, and then hold doubled quotes and newlines. A byte order mark is dropped."""
    line = 1
    opener: Any = gzip.open if path.name.endswith(".gz") else open
    with reading(path), opener(path, "rb") as file:
        rows = csv.reader(_lines(path, file), strict=True)
        try:
            for row in rows:
                if row:
                    yield line, row
                line = rows.line_num + 1
        except csv.Error as error:
            raise fault(path, f"begins a row that is no CSV ({error})", line=line) from error


def csv_table(path: pathlib.Path) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Returns the column names in the first row, and an iterator of (line, value by column) of the others."""
    rows = csv_rows(path)
    header = next(rows, (1, []))[1]
    all_different(header, path)

    def records() -> Iterator[tuple[int, dict[str, str]]]:
        for line, row in rows:
            if len(row) != len(header):
                what = f"has {len(row)} fields, not {len(header)}: it is cut off or damaged"
                raise fault(path, what, line=line)
            yield line, dict(zip(header, row, strict=True))

    return header, records()


def _lines(path: pathlib.Path, file: Any) -> Iterator[str]:
    for number, raw in enumerate(iter(lambda: file.readline(LONGEST), b""), 1):
        if b"\0" in raw:
            raise fault(path, f"holds a NUL byte (byte {raw.index(0) + 1})", line=number)
        text = decoded(raw, path, number)
        yield text.removeprefix("\ufeff") if number == 1 else text


def chosen(path: pathlib.Path, selected: Callable[[str], Any]) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the bytes of each file of an archive that is selected.

    Args:
      path: the archive.
      selected: tells by a file's name whether it is selected.
    """
    for member in members(path):
        if selected(member.name):
            with reading(path, DAMAGED):
                data = member.read()
            yield member.name, data
