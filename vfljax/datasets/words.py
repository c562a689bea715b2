"""The most frequent words of texts as a binary matrix: what GAFM (Han et al., E.1) reads of IMDB.

What enters: texts. What leaves: 1 where a text has a word, and the words, most frequent first.

GAFM one-hot encodes "the top 500 words" of a preprocessed IMDB, by its description Keras' copy. The token
rule is that of ``keras.preprocessing.text.Tokenizer`` (lower case; the signs in ``SEPARATORS`` part
words, apostrophes do not): it finds its 88,582 words in the 25,000 training reviews. Words rank by all
their occurrences in the training set, as Keras documents; ties are alphabetical here, undocumented
there. All 500 columns are words here; Keras' ``load_data(num_words=500)`` leaves 496, for 0 to 3 are
padding, beginning, other words and unused. Which of the two GAFM had is not said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from vfljax.errors import UserError

SEPARATORS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n '
WORD = f"[^{re.escape(SEPARATORS)}]+"


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
            f"config.data.options.words={most}: the texts have {len(counts)} different words; choose "
            "a number from 1 to that."
        )
    # not max_features: how that breaks ties is not defined
    words = sorted(counts, key=lambda word: (-counts[word], word))[:most]
    has = CountVectorizer(token_pattern=WORD, vocabulary=words, binary=True)
    return has.transform(texts).astype(np.uint8).toarray(), tuple(words)
