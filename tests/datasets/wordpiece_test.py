"""WordPiece by known examples, learned vocabularies that are the same everywhere, faulty files."""

import json
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from tests.datasets.refusals import refused
from vfljax.datasets import wordpiece
from vfljax.datasets.core import Vocabulary
from vfljax.datasets.wordpiece import encode, from_file, learned, tokens, vocabulary
from vfljax.errors import UserError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = (
    "want ##want ##ed wa un runn ##ing , low lowest ##aff ##able hello ! how are you ? Hello 中 [ ]"
)
WORDS = [*WORDS.split(), "sep"]


def write(folder, tokens, end="\n"):
    path = folder / "vocab.txt"
    path.write_bytes("".join(token + end for token in tokens).encode())
    return str(path)


def tokenizer(folder, lowercase=True):
    return from_file(write(folder, [*SPECIAL, *WORDS]), lowercase)


def pieces(tokenizer_, text):
    ragged = encode(tokenizer_, [text])
    return [tokens(tokenizer_)[i] for i in ragged.values]


EXAMPLES = {  # the first two are those of BERT's own tokenization_test.py
    "UNwant\u00e9d,running": ["un", "##want", "##ed", ",", "runn", "##ing"],
    "unwanted runninglowest": ["un", "##want", "##ed", "[UNK]"],
    "unaffable": ["un", "##aff", "##able"],
    " \tHeLLo!how  \n Are yoU?  ": ["hello", "!", "how", "are", "you", "?"],
    "H\u00e9llo": ["hello"],
    "He\u0301llo\u0000\ufffd": ["hello"],
    "you中are": ["you", "中", "are"],
    "unwantedX": ["[UNK]"],
    "un" * 50: ["[UNK]"],
    "hello [SEP]": ["hello", "[", "sep", "]"],
    "": [],
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_known_texts_have_their_known_pieces(tmp_path, text):
    assert pieces(tokenizer(tmp_path), text) == EXAMPLES[text]


def test_it_is_the_library_s_bert_tokenizer_but_for_special_tokens_in_texts(tmp_path):
    from tokenizers import BertWordPieceTokenizer

    for lowercase in (True, False):
        own = tokenizer(tmp_path, lowercase)
        theirs = BertWordPieceTokenizer(str(tmp_path / "vocab.txt"), lowercase=lowercase)
        texts = [*EXAMPLES, "Hello HELLO hello?", "un[MASK]", "ﬁ \u0131 İ ß\u200b\u00ad"]
        for text in texts:
            if "[" not in text:
                expected = theirs.encode(text, add_special_tokens=False).ids
                assert encode(own, [text]).values.tolist() == expected
    assert pieces(own, "Hello hello H\u00e9llo") == ["Hello", "hello", "[UNK]"]


def test_the_vocabulary_of_a_file_is_its_lines(tmp_path):
    found = vocabulary(tokenizer(tmp_path))
    assert tokens(tokenizer(tmp_path)) == (*SPECIAL, *WORDS)
    assert found == Vocabulary(len(SPECIAL) + len(WORDS), pad=0, cls=2, sep=3)


def test_line_ends_and_marks_of_windows_and_odd_breaks_are_read(tmp_path):
    lines = [*SPECIAL, "a", "\u2028", "##b"]
    path = write(tmp_path, lines, "\r\n")
    assert tokens(from_file(path)) == tuple(lines)
    pathlib.Path(path).write_bytes(b"\xef\xbb\xbf" + "\n".join(lines).encode())
    assert tokens(from_file(path)) == tuple(lines)


def test_rows_are_encoded_one_by_one_whatever_the_batches(tmp_path, monkeypatch):
    own = tokenizer(tmp_path)
    texts = [*EXAMPLES] * 3
    alone = [encode(own, [text]).values.tolist() for text in texts]
    for batch in (4096, 4):
        monkeypatch.setattr(wordpiece, "BATCH", batch)
        together = encode(own, (text for text in texts))
        assert together.values.dtype == np.int32
        assert together.offsets.dtype == np.int64
        assert np.split(together.values, together.offsets[1:-1])[0].tolist() == alone[0]
        rows = [
            together.values[a:b].tolist() for a, b in zip(together.offsets, together.offsets[1:])
        ]
        assert rows == alone
    nothing = encode(own, [])
    assert nothing.values.tolist() == []
    assert nothing.offsets.tolist() == [0]


FAULTS = {
    "missing": (None, "is missing"),
    "empty": (b"", r"has no \[PAD\]"),
    "no text": (b"[PAD]\n\xff\xfe\n", "cannot be read .UnicodeDecodeError: 'utf-8' codec"),
    "a token twice": ("\n".join([*SPECIAL, *"aba"]).encode(), "line 8 has the token of line 6"),
    "no [UNK]": (b"[PAD]\n[CLS]\n[SEP]\na\n", r"has no \[UNK\]"),
    "no [CLS]": (b"[PAD]\n[UNK]\n[SEP]\na\n", r"has no \[CLS\]"),
    "no [SEP]": (b"[PAD]\n[UNK]\n[CLS]\na\n", r"has no \[SEP\]"),
    "no [PAD]": (b"[UNK]\n[CLS]\n[SEP]\na\n", r"has no \[PAD\]"),
    "padding elsewhere": (b"[UNK]\n[PAD]\n[CLS]\n[SEP]\n", r"line 2 has .PAD., and not line 1"),
    "an empty line": (b"[PAD]\n[UNK]\n\n[CLS]\n[SEP]\n", "line 3 is empty"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_vocabulary_file_is_one_line(tmp_path, fault):
    content, message = FAULTS[fault]
    path = tmp_path / "vocab.txt"
    if content is not None:
        path.write_bytes(content)
    assert "vocab.txt" in refused(from_file, str(path), match=message)


def test_a_folder_and_rows_that_are_no_text_are_one_line(tmp_path):
    with pytest.raises(UserError, match="is missing, or is not a file"):
        from_file(str(tmp_path))
    own = tokenizer(tmp_path)
    rows: list = ["hello"] * 5000
    for wrong, message in ((None, "is no text but None"), ("a\ud800", "is no text but")):
        rows[4500] = wrong
        with pytest.raises(UserError, match=f"row 4501 .*{message}"):
            encode(own, rows)
        with pytest.raises(UserError, match="row 4501"):
            learned(rows)


def test_without_the_library_the_remedy_is_named(tmp_path, monkeypatch):
    path = write(tmp_path, SPECIAL)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UserError, match=r"pip install 'vfljax\[text\]'"):
        from_file(path)
    with pytest.raises(UserError, match=r"pip install 'vfljax\[text\]'"):
        learned(["a"])


def corpus(seed=0, rows=200):
    """Texts of random words over few letters: full of ties, which is where trainers differ."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefgé中", k=rng.randint(1, 6))) for _ in range(300)]
    return [" ".join(rng.choices(words, k=12)) for _ in range(rows)]


# the package's other loaders import JAX, of no use here: their seconds are left out
PROGRAM = """
import json, sys, types
sys.modules["vfljax.datasets"] = types.ModuleType("vfljax.datasets")
sys.modules["vfljax.datasets"].__path__ = ["vfljax/datasets"]
from vfljax.datasets.wordpiece import learned, tokens
print(ascii(tokens(learned(json.load(sys.stdin), 250))))
"""


def test_two_processes_learn_the_same_vocabulary():
    root, texts = pathlib.Path(wordpiece.__file__).parents[2], json.dumps(corpus())
    command = {"args": [sys.executable, "-c", PROGRAM], "cwd": root, "input": texts}
    run = [
        subprocess.run(**command, capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    ]
    here = ascii(tokens(learned(corpus(), 250)))
    assert {text.strip() for text in run} == {here}
    assert "[PAD]" in here


def test_a_learned_vocabulary_does_not_depend_on_the_order_of_texts():
    texts = corpus()
    first = tokens(learned(texts, 250))
    assert first == tokens(learned(reversed(texts), 250))
    assert first[:5] == tuple(SPECIAL)
    assert vocabulary(learned(texts, 250)) == Vocabulary(250, pad=0, cls=2, sep=3)
    assert len(set(first)) == 250


def test_learned_pieces_spell_the_texts_and_frequent_words_are_whole():
    texts = ["the cat sat on the mat"] * 20 + ["Th\u00e9 rat, the bat"]
    own = learned(texts, 60)
    assert pieces(own, "the cat THE") == ["the", "cat", "the"]
    text = "the rat, the bat"
    spelled = "".join(piece.removeprefix("##") for piece in pieces(own, text))
    assert spelled == text.replace(" ", "")
    assert "Th" not in tokens(own)
    assert any("T" in token for token in tokens(learned(texts, 60, lowercase=False)))
    assert pieces(own, "[SEP] xyz") == ["[UNK]"] * 4


def test_only_the_most_frequent_characters_are_spelled_whatever_the_order_of_texts(monkeypatch):
    monkeypatch.setattr(wordpiece, "ALPHABET", 3)
    own = learned(["ab ab abc d e"], 20)
    assert pieces(own, "a b c d e") == ["a", "b", "c", "[UNK]", "[UNK]"]
    texts = ["d", "c", "b", "a"]  # of four equally frequent ones
    one, other = (tokens(learned(t)) for t in (texts, texts[::-1]))
    assert one == other
    assert {"a", "b", "c"} <= set(one)
    assert "d" not in one


def test_a_word_of_100_characters_is_spelled_and_a_longer_one_is_unknown():
    own = learned(["a aa"])
    unknown = tokens(own).index("[UNK]")
    found = encode(own, ["a" * 100, "a" * 101])
    first = found.values[: found.offsets[1]]
    assert unknown not in first
    assert found.values[found.offsets[1] :].tolist() == [unknown]


def test_pieces_are_joined_that_occur_twice_and_no_others():
    pieces_of = tokens(learned(["ab ab cd"]))
    assert "ab" in pieces_of
    assert "cd" not in pieces_of


@pytest.mark.parametrize("texts", [[], ["", "  \n"]])
def test_learning_from_nothing_or_with_too_small_a_size_is_one_line(texts):
    with pytest.raises(UserError, match="no text to learn"):
        learned(texts)
    with pytest.raises(UserError, match="size=8 cannot spell 3 characters: give 11 or more"):
        learned(["abc abc"], 8)
    assert vocabulary(learned(["abc abc"], 11)).size == 11
