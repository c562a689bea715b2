"""The most frequent words as a matrix, by Keras' rule; token ids, by known examples; learned vocabularies."""

import collections
import random

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from tests.datasets.conversions import whole
from tests.datasets.refusals import one_line
from tests.datasets.reviews import split
from vfljax.datasets.converters import texts
from vfljax.datasets.converters.texts import balanced, encode, learned, top_words, vocabulary_of
from vfljax.datasets.core import Vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = (
    "want ##want ##ed wa un runn ##ing , low lowest ##aff ##able hello ! how are you ? 中 [ ] sep"
)


def converted(parts, **options):
    base = {"form": "words", "words": 1, "length": 8, "vocabulary": "", "vocabulary_size": 8192}
    return whole(texts.conversion("made", parts, ("no", "yes"), **{**base, **options}))


def labeled(*words):
    return [(place % 2, text) for place, text in enumerate(words)]


def test_of_balanced_rows_that_classes_cannot_share_the_first_classes_have_one_more():
    rows = [(label, str(place)) for place in range(3) for label in (2, 1, 0)]
    kept = [(2, "0"), (1, "0"), (0, "0"), (1, "1"), (0, "1")]
    assert list(balanced(rows, 5, "abc", "it")) == kept


def test_words_are_those_of_a_plain_restatement():
    alphabet = list("abAB' .,\n\t<>\u00c9\u00df\u0080\r[]\\^-1")
    draw = random.Random(0)
    training = ["".join(draw.choices(alphabet, k=20)) for _ in range(30)]
    counts = collections.Counter(word for text in training for word in split(text))
    words = sorted(counts, key=lambda word: (-counts[word], word))
    assert top_words(training, len(words)) == words
    parts = labeled(*training), labeled("a unseen", "")
    data = converted(parts, words=len(words))
    rows = [split(text) for part in parts for _, text in part]
    np.testing.assert_array_equal(data.features, [[word in row for word in words] for row in rows])
    one_line(lambda: top_words(training, len(words) + 1), f"words={len(words) + 1} ")


def test_small_blocks_give_the_same_rows(monkeypatch):
    parts = labeled("a b", "a b c", "", "a!", "c b", "b"), labeled("a a", "b", "c d")
    for options in ({"words": 3}, {"form": "wordpiece"}):
        at_once = converted(parts, **options)
        with monkeypatch.context() as patch:
            patch.setattr(texts, "ROWS", 2)
            data = converted(parts, **options)
        assert np.array_equal(data.features, at_once.features) or data.features == at_once.features
        assert data.labels.tolist() == at_once.labels.tolist()
        assert data.test.tolist() == at_once.test.tolist() == [False] * 6 + [True] * 3


@pytest.fixture
def path(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, *WORDS.split(), "\u2028"]) + "\n")
    return tmp_path / "vocab.txt"


EXAMPLES = {  # the first two are those of BERT's own tokenization_test.py
    "UNwant\u00e9d,running": ["un", "##want", "##ed", ",", "runn", "##ing"],
    " \tHeLLo!how  \n Are yoU?  ": ["hello", "!", "how", "are", "you", "?"],
    "He\u0301llo\u0000\ufffd": ["hello"],
    "you中are": ["you", "中", "are"],
    "hello [SEP]": ["hello", "[", "sep", "]"],
    "un" * 51: ["[UNK]"],
    "": [],
}


def pieces(tokenizer, text):
    return [tokenizer.id_to_token(i) for i in encode(tokenizer, [text]).values]


def test_known_texts_have_their_known_pieces(path):
    tokenizer = vocabulary_of(path)
    for text, expected in EXAMPLES.items():
        assert pieces(tokenizer, text) == expected
    together = encode(tokenizer, list(EXAMPLES))
    assert (together.values.dtype, together.offsets.dtype) == (np.int32, np.int64)
    assert together.offsets[-1] == sum(map(len, EXAMPLES.values()))


def test_ids_are_those_of_the_user_s_vocabulary(path):
    parts = labeled("hello how", "want"), labeled("you", "x")
    data = converted(parts, form="wordpiece", vocabulary=str(path), length=6)
    tokens = [*SPECIAL, *WORDS.split(), "\u2028"]
    assert data.about["tokens"] == Vocabulary(len(tokens), 0, 2, 3)
    assert (data.about["kind"], data.about["length"]) == ("text", 6)
    plain = [["hello", "how"], ["want"], ["you"], ["[UNK]"]]
    assert data.features == [[tokens.index(word) for word in row] for row in plain]


FAULTS = {
    "no text": (b"[PAD]\n\xff\xfe\n", "cannot be read"),
    "no [SEP]": (b"[PAD]\n[UNK]\n[CLS]\na\n", "[SEP]"),
    "padding elsewhere": (b"[UNK]\n[PAD]\n[CLS]\n[SEP]\n", "[PAD]"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_vocabulary_file_is_one_line(path, fault):
    content, words = FAULTS[fault]
    path.write_bytes(content)
    one_line(lambda: vocabulary_of(path), "vocab.txt", words)


def tokens(tokenizer):
    return [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]


def test_the_same_vocabulary_is_learned_whatever_the_order_of_texts():
    draw = random.Random(0)  # few letters are full of ties, which is where trainers differ
    words = ["".join(draw.choices("abcdefg\u00e9\u4e2d", k=draw.randint(1, 6))) for _ in range(300)]
    corpus = [" ".join(draw.choices(words, k=12)) for _ in range(200)]
    here, there = (tokens(learned(texts, 250)) for texts in (corpus, corpus[::-1]))
    assert here == there
    assert here[:5] == SPECIAL
    assert len(set(here)) == 250


def test_learned_pieces_spell_the_texts_and_frequent_words_are_whole():
    own = learned(["the cat sat on the mat"] * 20 + ["Th\u00e9 rat, the bat once"], 60)
    assert pieces(own, "the cat THE") == ["the", "cat", "the"]
    assert "once" not in tokens(own)  # pieces are joined that occur twice
    spelled = "".join(piece.removeprefix("##") for piece in pieces(own, "the rat, the bat"))
    assert spelled == "therat,thebat"


def test_only_the_most_frequent_characters_are_spelled(monkeypatch):
    monkeypatch.setattr(texts, "ALPHABET", 3)
    assert pieces(learned(["ab ab abc d e"], 20), "a b c d e") == ["a", "b", "c", "[UNK]", "[UNK]"]
    one_line(lambda: learned(["abc abc"], 8), "vocabulary_size=8 ")
