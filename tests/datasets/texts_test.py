"""Texts as token ids, by the user's vocabulary or a learned one, and each party's half of them; the most
frequent words as a matrix: Keras' rule, a plain restatement beside it."""

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.datasets import reviews as written
from tests.datasets import yahoo_test
from tests.datasets.fuzzing import drawn
from tests.datasets.imdb_test import PARTIES, ROWS
from tests.datasets.refusals import one_line
from tests.datasets.reviews import split
from vfljax.datasets import load
from vfljax.datasets.core import checksum
from vfljax.datasets.partition import divide
from vfljax.datasets.texts import _top_words, balanced
from vfljax.errors import UserError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, "film", "bad", "great", "good", "awful", "!", "0", "1", "2"]


@pytest.fixture
def folder(tmp_path):
    written.write_csv(tmp_path, ROWS)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    return tmp_path


def options(folder, **given):
    own = {"form": "wordpiece", "vocabulary": str(folder / "vocab.txt"), "length": 8}
    return own | given


def pieces(text):
    """The ids of a text by VOCABULARY: words and signs apart, none cut."""
    for sign in "!\"';,.:<>/":
        text = text.lower().replace(sign, f" {sign} ")
    return [VOCABULARY.index(w) if w in VOCABULARY else 1 for w in text.split()]


def test_ids_are_those_of_the_user_s_vocabulary(folder):
    data = load("imdb", str(folder), options(folder))
    assert (data.kind, data.length, data.tokens) == ("text", 8, (len(VOCABULARY), 0, 2, 3))
    rows = np.split(data.features.values, data.features.offsets[1:-1])
    assert [row.tolist() for row in rows] == [pieces(row[4]) for row in ROWS]
    assert "vocab.txt" in data.notes[0]


def test_each_party_reads_its_half_of_every_text(folder):
    blocks = divide(load("imdb", str(folder), options(folder)), PARTIES)
    assert [block.input.vocabulary for block in blocks] == [(len(VOCABULARY),)] * 2
    for r, row in enumerate(ROWS):
        ids = pieces(row[4])
        halves = (ids[: len(ids) // 2], ids[len(ids) // 2 :])
        for block, half in zip(blocks, halves, strict=True):
            own = [2, *half[:6], 3]
            assert block.features[r].tolist() == own + [0] * (8 - len(own))


def test_case_stays_where_it_is_asked_for(folder):
    lower = load("imdb", str(folder), options(folder))
    kept = load("imdb", str(folder), options(folder, lowercase=False))
    assert (kept.features.values == 1).sum() > (lower.features.values == 1).sum()


def test_a_learned_vocabulary_reads_training_texts_alone(tmp_path):
    rows = [row if row[0] == "train" else (*row[:4], row[4] + " zzz zzz zzz") for row in ROWS]
    given = {"form": "wordpiece", "vocabulary_size": 120}
    sums = []
    for name, of in (("plain", ROWS), ("changed", rows)):
        (tmp_path / name).mkdir()
        data = load("imdb", str(written.write_csv(tmp_path / name, of)), given)
        own = data.features.offsets[len(ROWS) // 2]
        sums.append((data.tokens, data.features.values[:own].tolist()))
    assert sums[0] == sums[1]
    assert sums[0][0].size <= 120
    assert "learned from 6 rows" in data.notes[0]


def test_layouts_have_one_checksum_as_ids_too(tmp_path, folder):
    (tmp_path / "other").mkdir()
    written.write_archive(tmp_path / "other", ROWS)
    sums = {
        checksum(load("imdb", str(path), options(folder))) for path in (folder, tmp_path / "other")
    }
    assert len(sums) == 1


def test_yahoo_s_texts_are_ids_by_default(tmp_path):
    folder = yahoo_test.write(tmp_path)
    data = load("yahoo", folder, {"vocabulary_size": 200})
    assert (data.kind, data.length) == ("text", 256)
    left, right = divide(data, PARTIES)
    assert left.features.shape == right.features.shape == (50, 256)
    content = load("yahoo", folder, {"vocabulary_size": 200, "fields": ("question_content",)})
    counts = np.diff(content.features.offsets)
    assert (counts[10:20] == 0).all()  # an empty text is no tokens
    assert divide(content, PARTIES)[0].features[10, :3].tolist() == [2, 3, 0]


def test_a_vocabulary_that_cannot_be_used_is_one_line(folder):
    (folder / "vocab.txt").write_bytes(b"[PAD]\n[UNK]\n[SEP]\n")
    one_line(lambda: load("imdb", str(folder), options(folder)), "vocab.txt has no [CLS]")
    small = {"form": "wordpiece", "vocabulary_size": 5}
    one_line(lambda: load("imdb", str(folder), small), "size=5")


def plain(texts, most, rows):
    """The matrix and the words by counting one at a time."""
    counts = {}
    for text in texts[:rows]:
        for word in split(text):
            counts[word] = counts.get(word, 0) + 1
    words = [word for _, word in sorted((-count, word) for word, count in counts.items())][:most]
    return np.array([[word in split(text) for word in words] for text in texts]), words


def test_of_balanced_rows_that_classes_cannot_share_the_first_classes_have_one_more():
    rows = [(label, place) for place in range(3) for label in (2, 1, 0)]
    assert list(balanced(rows, 5, "abc", "it")) == [(2, 0), (1, 0), (0, 0), (1, 1), (0, 1)]


def test_words_are_parted_as_keras_does():
    matrix, words = _top_words(["It's<br />GOOD, good-ish; it's\u00a0so\ta_b"], 6, 1)
    assert words == ("good", "a", "b", "br", "ish", "it's")
    assert matrix.tolist() == [[1] * 6]
    assert split("It's<br />GOOD")[0] == "it's"


def test_every_occurrence_counts_and_ties_are_alphabetical():
    matrix, words = _top_words(["b b b a", "a c", ""], 3, 3)
    assert words == ("b", "a", "c")
    assert matrix.dtype == np.uint8
    assert matrix.tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 0]]


def test_only_the_given_rows_count():
    _, words = _top_words(["x", "y y", "x x x x"], 1, rows=2)
    assert words == ("y",)


@drawn(
    texts=st.lists(
        st.text(alphabet="abAB' .,\n\t<>É߀\r[]\\^-1", max_size=20), min_size=1, max_size=6
    )
)
def test_the_matrix_is_that_of_a_plain_restatement(texts):
    rows = (len(texts) + 1) // 2
    different = len({word for text in texts[:rows] for word in split(text)})
    for most in {1, different} - {0}:
        if different < most:
            continue
        want, words = plain(texts, most, rows)
        matrix, own = _top_words(texts, most, rows)
        assert own == tuple(words)
        np.testing.assert_array_equal(matrix, want)


@pytest.mark.parametrize("most", [0, -1, 4])
def test_more_words_than_there_are_is_one_line(most):
    with pytest.raises(UserError, match=f"words={most}: the texts have 3 different words"):
        _top_words(["a b c"], most, 1)
