"""Damaged files of every loader but the streamed ones: each loads, or is exactly one line."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets import cifar_tfds_test, image_faults_test, small, yahoo_test
from tests.datasets import reviews as written
from tests.datasets.fuzzing import damaged, few_or_many
from tests.datasets.prepared_sets import SETS
from tests.datasets.spambase_test import GOOD
from tests.datasets.tables import mixed, write
from vfljax.datasets import prepared
from vfljax.datasets.bhi import bhi
from vfljax.datasets.cifar import NAMES10, cifar10, cifar100, cinic10
from vfljax.datasets.imdb import imdb
from vfljax.datasets.isic import isic
from vfljax.datasets.npz import npz
from vfljax.datasets.spambase import spambase
from vfljax.datasets.table import table
from vfljax.datasets.yahoo import yahoo

ARCHIVE, FOLDERS = image_faults_test.ARCHIVE, image_faults_test.FOLDERS
JPEGS = small.photos(form="JPEG", shapes=dict.fromkeys(small.SHAPES, (12, 10)))
REVIEWS = written.reviews()
WORDS = {"form": "words", "words": 3}
PIECES = {"form": "wordpiece", "vocabulary_size": 150}


def put(files):
    return lambda folder: small.write(folder, files)


def zipped(name, content):
    return put({name: gzip.compress(content, mtime=0)})


def own(suffix):
    def load(folder):
        return table(f"{folder}/own{suffix}", label="y", encoding="codes")

    return lambda folder: write(folder, mixed(30), suffix), load, {}


def kept(kind):
    return lambda folder: prepared.write(SETS[kind], folder / "x")


def read(folder):
    return prepared.read(f"{folder}/x")


FUZZED = {  # what writes a folder's files, what loads them, and its options
    "binary": (put(small.binary10(rows=(3, 2, 1, 1, 1, 2))[0]), cifar10, {}),
    "binary of 100": (put(small.binary100(rows=3)[0]), cifar100, {}),
    "archive": (put({ARCHIVE: small.tar(small.binary10()[0])}), cifar10, {}),
    "folders": (put(FOLDERS), cifar10, {}),
    "tar": (put({"train_a.tar": small.tar(FOLDERS, "w")}), cifar10, {}),
    "zip": (put({"all.zip": small.zipped(FOLDERS)}), cifar10, {}),
    "jpeg": (put(small.class_folders(("train", "test"), NAMES10, form="JPEG")), cifar10, {}),
    "array_record": (cifar_tfds_test.prepare, cifar10, {}),
    "CINIC-10": (put(image_faults_test.CINIC), cinic10, {}),
    "BHI": (put(small.PATCHES), bhi, {"patches": 2}),
    "BHI in one file": (put({"a.npz": small.patches()}), bhi, {"patches": 2}),
    "SIIM": (put({**JPEGS, "train.csv": small.SIIM}), isic, {"size": 8}),
    "HAM10000": (put({**JPEGS, "train.csv": small.HAM}), isic, {"size": 8}),
    "lesions in one file": (put({"a.npz": small.lesions()}), isic, {"size": 8}),
    "npz": (put(image_faults_test.arrays(g=np.array(list("abca")))), npz, {"groups": "g"}),
    "spambase": (put({"spambase.data": GOOD.encode()}), spambase, {}),
    **{suffix: own(suffix) for suffix in (".csv", ".csv.gz", ".parquet", ".npz")},
    "a prepared table": (kept("table"), read, {}),
    "prepared texts": (kept("text"), read, {}),
    "a table of reviews": (zipped("a.csv.gz", written.csv_text(REVIEWS).encode()), imdb, WORDS),
    "an archive of reviews": (zipped("aclImdb_v1.tar.gz", written.tar_bytes(REVIEWS)), imdb, WORDS),
    "a folder of reviews": (lambda folder: written.write_folder(folder, REVIEWS), imdb, WORDS),
    "parquet": (lambda folder: written.write_tfds(folder, REVIEWS, "parquet"), imdb, WORDS),
    "questions": (yahoo_test.write, yahoo, WORDS),
    "questions as ids": (yahoo_test.write, yahoo, PIECES),
}


@few_or_many
@pytest.mark.parametrize("layout", FUZZED)
def test_damage_to_any_file_loads_or_is_one_line(tmp_path, layout, examples):
    write, loader, options = FUZZED[layout]
    write(tmp_path)
    loader(str(tmp_path), **options)

    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def check(data):
        damaged(data, loader, tmp_path, **options)

    check()
