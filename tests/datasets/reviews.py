"""IMDB in its layouts, small, for tests to write and break."""

import csv
import gzip
import io
import tarfile

TEXTS = (
    "A great film, truly great!<br />I'd see it again.",
    'The "worst" film I know; I walked out.\nBad, bad, bad.',
    "",
    "Café, naïve: it's OK film, great actors",
    "A bad film.",
)


def reviews(each=3):
    """(split, label, rating, id, text), in the published order."""
    rows = []
    for s, split in enumerate(("train", "test")):
        for y in (0, 1):
            for i in range(each):
                text = f"{TEXTS[(i + 2 * y + s) % len(TEXTS)]} {'good' if y else 'awful'} film {i}"
                rows.append((split, y, 8 + i % 3 if y else 1 + i % 4, i + 9, text))  # 9 < 10 < 11
    return rows


def write_folder(root, rows):
    with tarfile.open(fileobj=io.BytesIO(tar_bytes(rows))) as archive:
        archive.extractall(root, filter="data")
    return root


def write_archive(root, rows):
    (root / "aclImdb_v1.tar.gz").write_bytes(gzip.compress(tar_bytes(rows), mtime=0))
    return root


def tar_bytes(rows):
    """As the official archive: members of ``aclImdb/``, in no order, some of them unlabeled."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for split, label, rating, number, text in [
            ("train", 2, 0, 0, "film unlabeled"),
            *rows[::-1],
        ]:
            folder = ("neg", "pos", "unsup")[label]
            member = tarfile.TarInfo(f"aclImdb/{split}/{folder}/{number}_{rating}.txt")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()


def csv_text(rows):
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerows([("split", "label", "rating", "id", "review"), *rows])
    return text.getvalue()


def write_csv(root, rows, name="imdb.csv.gz"):
    raw = csv_text(rows).encode()
    (root / name).write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)
    return root


KERAS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'  # Tokenizer's documented default `filters`


def split(text):
    """Keras' text_to_word_sequence, restated: lower, filters become spaces, split on spaces."""
    for sign in KERAS:
        text = text.lower().replace(sign, " ")
    return [word for word in text.split(" ") if word]
