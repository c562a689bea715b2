"""Labeled texts as features: a table of frequent words, or token ids, which parties divide.

Words are chosen and vocabularies are learned on the published training part alone, if there is one, so that
test texts have no influence on them.

GAFM one-hot encodes "the top 500 words" of a preprocessed IMDB, by its description Keras' copy. Words are cut
by the rule of ``keras.preprocessing.text.Tokenizer`` (lower case; the signs in ``SEPARATORS`` separate words,
apostrophes do not), which finds the 88,582 words of Keras' copy in the 25,000 training reviews. Words rank by
all their occurrences in the training set, as Keras documents. Ties are alphabetical here; Keras does not
document them. All 500 columns are words here. Keras' ``load_data(num_words=500)`` leaves 496, because 0 to 3
are padding, beginning, other words and unused. The paper does not say which of the two GAFM used.

Token ids are those that an uncased BERT reads (WordPiece), by the ``tokenizers`` library. Text is cleaned,
lowercased, freed of accents and split at spaces and punctuation as BERT's own code does (Devlin et al. 2019,
tokenization.py); each word is then cut into the longest known pieces. Special tokens that are written in a
text, such as "[SEP]", are read as text.
"""

from __future__ import annotations

import collections
import csv
import io
import itertools
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from vfljax.datasets import formats
from vfljax.datasets.core import Block, Column, Conversion, Ragged, Vocabulary
from vfljax.datasets.table_errors import fault, reading
from vfljax.errors import Field, check, imported, user_path

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SEPARATORS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n '
WORD = f"[^{re.escape(SEPARATORS)}]+"
PAD, UNKNOWN, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = (PAD, UNKNOWN, CLS, SEP, MASK)
ALPHABET = 1000  # the most characters of a learned vocabulary, as in BertWordPieceTokenizer
ROWS = 4096  # texts of a block

LIMITS: dict[str, Any] = {
    "form": ("words", "wordpiece"),
    "words": (1, 1_000_000),
    "length": (3, 4096),  # two of a party's tokens are special
    "vocabulary_size": (1, 1_000_000),
}

Labeled = tuple[int, str]  # a label and a text


def csv_rows(
    path: pathlib.Path, columns: Sequence[str], *, header: bool
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields the rows of a CSV file of UTF-8, plain or compressed.

    Args:
      path: the file.
      columns: the names of all columns, or, if there is a header, of those that it must have.
      header: whether the first row names the columns.

    Yields:
      The number of the line on which a row ends, and the row's values by column.
    """
    with reading(path), formats.content(path).open() as raw:
        file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        rows = csv.DictReader(file, None if header else columns, strict=True)
        if lacking := [column for column in columns if column not in (rows.fieldnames or ())]:
            raise fault(
                path, f"has no column {lacking[0]!r}", f"give a CSV of {', '.join(columns)}"
            )
        for row in rows:
            if None in row or None in row.values():
                what = f"does not have {len(rows.fieldnames or ())} fields"
                raise fault(path, what, line=rows.line_num)
            yield rows.line_num, row


def balanced(
    rows: Iterable[Labeled], most: int, classes: Sequence[str], where: object
) -> Iterator[Labeled]:
    """Yields all labeled texts, or the first of each class.

    Args:
      rows: labels and texts.
      most: number of rows, divided equally between the classes (if it does not divide, the first classes have
        one row more); 0 is all. Nothing is read past the last row needed.
      classes: their names.
      where: what messages call the rows.

    Raises:
      UserError: if a class has too few rows.
    """
    quotas = [most // len(classes) + (c < most % len(classes)) for c in range(len(classes))]
    left = list(quotas)
    for label, text in rows:
        if most and not left[label]:
            continue
        left[label] -= 1
        yield label, text
        if most and not any(left):
            return
    for c, name in enumerate(classes if most else ()):
        if left[c]:
            has = f"has {quotas[c] - left[c]} rows of class {name!r}"
            what = f"{has}, and {most} balanced rows need {quotas[c]}"
            raise fault(where, what, "ask for fewer rows")


def conversion(
    name: str,
    parts: Sequence[Sequence[Labeled]],
    classes: Sequence[str],
    *,
    form: str,
    words: int,
    length: int,
    vocabulary: str,
    vocabulary_size: int,
    redrawn: bool = False,
) -> Conversion:
    """Returns the rows of texts.

    Args:
      name: of the data set.
      parts: labels and texts of the training part and of the published test part.
      classes: their names.
      form: "words": kind "table", [R, words] uint8, 1 where a text has the word (GAFM's input but for the
        difference above); "wordpiece": kind "text", token ids.
      words: number of columns, the most frequent words of the training part.
      length: number of tokens that a party reads, special ones included; this and the options below are of
        "wordpiece".
      vocabulary: path of a vocab.txt; "" learns a vocabulary from the texts of the training part.
      vocabulary_size: the most tokens of a learned vocabulary.
      redrawn: whether the published test part is not kept apart, so that every seed divides all rows.

    Raises:
      UserError: for an option out of range, too few different words, or a vocabulary file of no BERT.
    """
    training = [text for _, text in parts[0]]
    if form == "words":
        top = top_words(training, words)
        notes = [f"{words} words, the most frequent of {len(training):,} training rows"]
        about: dict[str, Any] = {"columns": tuple(map(Column, top))}
        has = CountVectorizer(token_pattern=WORD, vocabulary=top, binary=True)

        def encoder(texts: list[str]) -> Any:
            return has.transform(texts).astype(np.uint8).toarray()
    else:
        if vocabulary:
            path = user_path(vocabulary, Field("data.options.vocabulary"))
            tokenizer, source = vocabulary_of(path), f"of {vocabulary}"
        else:
            tokenizer = learned(training, vocabulary_size)
            source = f"learned from {len(training):,} rows: no pretrained BERT fits it"
        ids = tokenizer.get_vocab(with_added_tokens=False)
        known = Vocabulary(len(ids), ids[PAD], ids[CLS], ids[SEP])
        notes = [f"vocabulary of {known.size:,} tokens {source}"]
        about = {"kind": "text", "tokens": known, "length": length}

        def encoder(texts: list[str]) -> Any:
            return encode(tokenizer, texts)

    if redrawn:
        notes.append("the published test part is not kept apart: every seed divides all rows")
    about |= {"classes": tuple(classes), "notes": tuple(notes)}
    return Conversion(name, len(classes), _blocks(parts, encoder, redrawn), about)


def _blocks(
    parts: Sequence[Sequence[Labeled]], encoder: Callable[[list[str]], Any], redrawn: bool
) -> Iterator[Block]:
    for is_test, part in enumerate(parts):
        for first in range(0, len(part), ROWS):
            labels, texts = zip(*part[first : first + ROWS], strict=True)
            test = None if redrawn else np.full(len(texts), bool(is_test))
            yield Block(encoder(list(texts)), np.array(labels, np.int32), test)


def top_words(texts: Iterable[str], most: int) -> list[str]:
    """Returns the ``most`` words of the texts that occur most often, by falling frequency.

    Raises:
      UserError: if the texts have fewer different words.
    """
    words_of = CountVectorizer(token_pattern=WORD).build_analyzer()
    counts = collections.Counter(itertools.chain.from_iterable(map(words_of, texts)))
    check(Field("data.options.words"), most, 1, len(counts), whole=True)
    # not max_features of CountVectorizer: how it breaks ties is not defined
    return sorted(counts, key=lambda word: (-counts[word], word))[:most]


def vocabulary_of(path: pathlib.Path) -> Tokenizer:
    """Returns the tokenizer of a vocab.txt (one token a line, UTF-8), as the released BERTs come with.

    Raises:
      UserError: for a file that has a token twice, lacks a special token, or does not begin with [PAD].
    """
    remedy = "give the vocab.txt of a BERT"
    with reading(path, remedy):
        text = path.read_bytes().decode()
    # not splitlines: some vocabularies have other line breaks as tokens
    tokens = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if lacking := [token for token in (PAD, UNKNOWN, CLS, SEP) if token not in tokens]:
        raise fault(path, f"has no token {lacking[0]}", remedy)
    if tokens[0] != PAD:
        raise fault(path, f"does not begin with {PAD}, whose id must be 0", remedy)
    if len(set(tokens)) < len(tokens):
        raise fault(path, "has a token twice", remedy)
    return _tokenizer(tokens)


def learned(texts: Sequence[str], size: int = 8192) -> Tokenizer:
    """Returns a tokenizer that is learned from texts; their order does not matter.

    Special tokens come first, then the 1,000 most frequent characters, inside words (##) and alone,
    then pieces, which are joined as long as the most frequent pair occurs twice or more. The library's
    trainer numbers characters in the order of a hash table, which breaks ties anew in each process. They
    are therefore counted and numbered here.

    Args:
      texts: the texts.
      size: the most tokens.

    Raises:
      UserError: if so few tokens cannot spell the characters.
    """
    draft = _tokenizer(SPECIAL)
    normalized = map(draft.normalizer.normalize_str, texts)
    counts = collections.Counter(itertools.chain.from_iterable(normalized))
    characters = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))
    alphabet = sorted(characters[:ALPHABET])
    least = len(SPECIAL) + 2 * len(alphabet)
    check(Field("data.options.vocabulary_size"), size, least, whole=True)
    trainer = imported("tokenizers", extra="text", needed_by="text").trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=[*SPECIAL, *(f"##{c}" for c in alphabet)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    draft.train_from_iterator(texts, trainer)
    ids = draft.get_vocab(with_added_tokens=False)
    return _tokenizer(sorted(ids, key=ids.__getitem__))


def _tokenizer(tokens: Sequence[str]) -> Tokenizer:
    tokenizers = imported("tokenizers", extra="text", needed_by="text")
    ids = {token: n for n, token in enumerate(tokens)}
    pieces = tokenizers.models.WordPiece(ids, unk_token=UNKNOWN, max_input_chars_per_word=100)
    tokenizer = tokenizers.Tokenizer(pieces)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return tokenizer


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> Ragged:
    """Returns the ids of each text, without special tokens. A word that the tokenizer cannot spell, or that has
    more than 100 characters, is one [UNK]."""
    rows = [row.ids for row in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    flat = itertools.chain.from_iterable(rows)
    return Ragged(np.fromiter(flat, np.int32, int(offsets[-1])), offsets)
