"""Turns texts into the token ids that BERT reads (WordPiece), by the ``tokenizers`` library.

Text is cleaned, lowercased, freed of accents and split at spaces and punctuation as BERT's own code
does (Devlin et al. 2019, tokenization.py); each word is then cut into the longest known pieces.
Special tokens that are written in a text, such as "[SEP]", are read as text.
"""

from __future__ import annotations

import collections
import itertools
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vfljax.datasets.core import Ragged, Vocabulary
from vfljax.datasets.table_errors import fault, reading
from vfljax.errors import UserError, imported

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, UNKNOWN, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL = (PAD, UNKNOWN, CLS, SEP, MASK)
ALPHABET = 1000  # the most characters of a learned vocabulary, as in BertWordPieceTokenizer
BATCH = 4096  # texts encoded at once: bounds the memory of the library's records


def from_file(path: str, lowercase: bool = True) -> Tokenizer:
    """Returns the tokenizer of a vocabulary file.

    Args:
      path: of a vocab.txt (one token a line, UTF-8), as the released BERTs come with.
      lowercase: whether texts are lowercased and accents stripped, as uncased BERTs need.

    Raises:
      UserError: for a file that is missing or no text, has an empty line or a token twice, lacks [UNK], [CLS]
        or [SEP], or does not begin with [PAD].
    """
    remedy = "give a BERT's vocab.txt"
    if not os.path.isfile(path):
        raise fault(path, "is missing, or is not a file", remedy)
    with reading(path), open(path, encoding="utf-8-sig", newline="") as stream:
        lines = stream.read().split("\n")  # not splitlines: some files have other breaks as tokens
    lines = lines[:-1] if lines[-1] == "" else lines
    at: dict[str, int] = {}
    for n, token in enumerate((line.removesuffix("\r") for line in lines), 1):
        if token in at or not token:
            what = f"has the token of line {at[token]} again, {token!r}" if token else "is empty"
            raise fault(path, what, remedy, line=n)
        at[token] = n
    for special in (PAD, UNKNOWN, CLS, SEP):
        if special not in at:
            raise fault(path, f"has no {special}: it is no vocabulary of BERT", remedy)
    if at[PAD] != 1:
        what = f"has {PAD}, and not line 1: BERT here takes id 0 for padding"
        raise fault(path, what, remedy, line=at[PAD])
    return _tokenizer(tuple(at), lowercase)


def learned(texts: Iterable[str], size: int = 8192, lowercase: bool = True) -> Tokenizer:
    """Returns a tokenizer that is learned from texts; their order does not matter.

    Special tokens come first, then the 1,000 most frequent characters, inside words (##) and alone,
    then pieces, which are joined as long as the most frequent pair occurs twice or more. The library's
    trainer numbers characters in the order of a hash table, which breaks ties anew in each process. They
    are therefore counted and numbered here.

    Args:
      texts: of which at least one must have a character.
      size: the most tokens.
      lowercase: as of ``from_file``.
    """
    tokenizers = imported("tokenizers", extra="text", needed_by="text")
    texts = _strings(texts)
    draft = _tokenizer(SPECIAL, lowercase)
    normalized = map(draft.normalizer.normalize_str, texts)
    counts = collections.Counter(itertools.chain.from_iterable(normalized))
    characters = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))
    alphabet = sorted(characters[:ALPHABET])
    if not alphabet:
        raise UserError("there is no text to learn a vocabulary from.")
    least = len(SPECIAL) + 2 * len(alphabet)
    if size < least:
        what = f"a vocabulary of size={size} cannot spell {len(alphabet)} characters"
        raise UserError(what, remedy=f"give {least} or more")
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=[*SPECIAL, *(f"##{c}" for c in alphabet)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    draft.train_from_iterator(texts, trainer)
    return _tokenizer(tokens(draft), lowercase)


def tokens(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Returns the tokenizer's tokens; a token's place is its id."""
    ids = tokenizer.get_vocab(with_added_tokens=False)
    return tuple(sorted(ids, key=ids.__getitem__))


def vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    """Returns the number of tokens, for the size of a network, and the ids that ``texts.spans`` takes."""
    ids = tokenizer.get_vocab(with_added_tokens=False)
    return Vocabulary(len(ids), ids[PAD], ids[CLS], ids[SEP])


def encode(tokenizer: Tokenizer, texts: Iterable[str]) -> Ragged:
    """Returns each text's ids, without special tokens.

    Args:
      tokenizer: it reads a word that it cannot spell, or of more than 100 characters, as one [UNK].
      texts: a row that is no text raises UserError.
    """
    texts = _strings(texts)
    values, counts = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
    for first in range(0, len(texts), BATCH):
        batch = texts[first : first + BATCH]
        rows = [row.ids for row in tokenizer.encode_batch_fast(batch, add_special_tokens=False)]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = itertools.chain.from_iterable(rows)
        values.append(np.fromiter(flat, np.int32, int(lengths.sum())))
        counts.append(lengths)
    return Ragged(np.concatenate(values), np.cumsum(np.concatenate(counts)))


def _tokenizer(tokens: Sequence[str], lowercase: bool) -> Tokenizer:
    tokenizers = imported("tokenizers", extra="text", needed_by="text")
    ids = {token: n for n, token in enumerate(tokens)}
    pieces = tokenizers.models.WordPiece(ids, unk_token=UNKNOWN, max_input_chars_per_word=100)
    tokenizer = tokenizers.Tokenizer(pieces)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _strings(texts: Iterable[Any]) -> list[str]:
    texts = list(texts)
    for row, text in enumerate(texts, 1):
        try:
            text.encode()
        except (AttributeError, UnicodeEncodeError) as error:  # no string, or a lone surrogate
            raise UserError(f"row {row} is no text but {text!r}: give strings of UTF-8.") from error
    return texts
