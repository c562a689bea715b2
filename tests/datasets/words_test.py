"""The most frequent words as a matrix: Keras' rule, a plain restatement beside it."""

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.datasets.fuzzing import drawn
from vfljax.datasets.texts import top_words
from vfljax.errors import UserError

KERAS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'  # Tokenizer's documented default `filters`


def split(text):
    """Keras' text_to_word_sequence, restated: lower, filters become spaces, split on spaces."""
    for sign in KERAS:
        text = text.lower().replace(sign, " ")
    return [word for word in text.split(" ") if word]


def plain(texts, most, rows):
    """The matrix and the words by counting one at a time."""
    counts = {}
    for row in rows:
        for word in split(texts[row]):
            counts[word] = counts.get(word, 0) + 1
    words = [word for _, word in sorted((-count, word) for word, count in counts.items())][:most]
    return np.array([[word in split(text) for word in words] for text in texts]), words


def test_words_are_parted_as_keras_does():
    matrix, words = top_words(["It's<br />GOOD, good-ish; it's\u00a0so\ta_b"], 6)
    assert words == ("good", "a", "b", "br", "ish", "it's")
    assert matrix.tolist() == [[1] * 6]
    assert split("It's<br />GOOD")[0] == "it's"


def test_every_occurrence_counts_and_ties_are_alphabetical():
    matrix, words = top_words(["b b b a", "a c", ""], 3)
    assert words == ("b", "a", "c")
    assert matrix.dtype == np.uint8
    assert matrix.tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 0]]


def test_only_the_given_rows_count():
    _, words = top_words(["x", "y y", "x x x x"], 1, rows=[0, 1])
    assert words == ("y",)


@drawn(
    texts=st.lists(
        st.text(alphabet="abAB' .,\n\t<>É߀\r[]\\^-1", max_size=20), min_size=1, max_size=6
    )
)
def test_the_matrix_is_that_of_a_plain_restatement(texts):
    rows = list(range((len(texts) + 1) // 2))
    different = len({word for row in rows for word in split(texts[row])})
    for most in {1, different} - {0}:
        if different < most:
            continue
        want, words = plain(texts, most, rows)
        matrix, own = top_words(texts, most, rows)
        assert own == tuple(words)
        np.testing.assert_array_equal(matrix, want)


@pytest.mark.parametrize("most", [0, -1, 4])
def test_more_words_than_there_are_is_one_line(most):
    with pytest.raises(UserError, match=f"words={most}: the texts have 3 different words"):
        top_words(["a b c"], most)
