"""CIFAR as tensorflow-datasets writes it, read without TensorFlow."""

import io
import shutil
import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds
from tensorflow_datasets.core import registered

from tests.datasets import small
from tests.datasets.refusals import refused
from vfljax.datasets.cifar import NAMES10, cifar10, cifar100


def prepare(folder, name="cifar10", file_format="array_record", rows=20):
    """A CIFAR as TFDS lays it out, with the official builder's features; returns the pixels."""
    features = tfds.builder(name, data_dir=str(folder)).info.features
    pixels = {s: [small.picture(100 * s + i) for i in range(rows)] for s in range(2)}
    official = name
    with registered.skip_registration():

        class Cifar(tfds.core.GeneratorBasedBuilder):
            name = official
            VERSION = tfds.core.Version("3.0.2")

            def _info(self):
                return tfds.core.DatasetInfo(builder=self, features=features)

            def _split_generators(self, dl_manager):
                return {"train": self._generate_examples(0), "test": self._generate_examples(1)}

            def _generate_examples(self, s):
                for i, image in enumerate(pixels[s]):
                    stream = io.BytesIO(small.encoded(image))
                    example = {"id": f"{i:05}", "image": stream, "label": i % 10}
                    if official == "cifar100":
                        example["coarse_label"] = i % 4
                    yield f"{i:05}", example

    Cifar(data_dir=str(folder), file_format=file_format).download_and_prepare()
    return pixels


@pytest.fixture(scope="module")
def tfds_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tfds")
    return folder, prepare(folder)


def bag(images, labels):
    return sorted((int(y), x.tobytes()) for x, y in zip(images, labels))


@pytest.mark.parametrize("below", ["", "cifar10", "cifar10/3.0.2"])
def test_a_folder_prepared_by_tfds_is_read_without_tensorflow(tfds_folder, below):
    folder, pixels = tfds_folder
    data = cifar10(str(folder / below))
    assert data.classes == NAMES10
    for s in range(2):
        held = data.test == bool(s)
        assert bag(data.features[held], data.labels[held]) == bag(pixels[s], np.arange(20) % 10)
    assert len(cifar10(str(folder), rows=10).labels) == 12


def test_cifar100_and_parquet_are_read_from_tfds_too(tmp_path):
    pixels = prepare(tmp_path, "cifar100", "parquet")
    version = tmp_path / "cifar100" / "3.0.2"
    (version / "coarse_label.labels.txt").write_text("\n".join(f"c{i}" for i in range(20)))
    fine, coarse = cifar100(str(tmp_path)), cifar100(str(tmp_path), labels="coarse")
    assert bag(fine.features[:20], fine.labels[:20]) == bag(pixels[0], np.arange(20) % 10)
    assert bag(coarse.features[:20], coarse.labels[:20]) == bag(pixels[0], np.arange(20) % 4)
    assert (fine.num_classes, coarse.num_classes) == (100, 20)
    assert (fine.classes, coarse.classes[3]) == ((), "c3")


@pytest.fixture
def broken_tfds(tfds_folder, tmp_path):
    shutil.copytree(tfds_folder[0] / "cifar10", tmp_path / "cifar10")
    return tmp_path, tmp_path / "cifar10" / "3.0.2"


INFO = "dataset_info.json"
WRONG = {  # what is done to the version folder, and what is said
    "unfinished": (lambda version: (version / INFO).unlink(), "did not finish"),
    "of tfrecord": ((INFO, '"array_record"', '"tfrecord"'), "only TensorFlow reads"),
    "of no format": ((INFO, '"fileFormat": "array_record",', ""), "as 'tfrecord', which only"),
    "of another set": ((INFO, '"cifar10"', '"cifar100"'), "is of 'cifar100'"),
    "cut": ((INFO, "{", ""), "cannot be read"),
    "no description": (lambda version: (version / INFO).write_text("[]"), "cannot be read"),
    "empty": (lambda version: (version / INFO).write_text("{}"), "prepared as 'tfrecord'"),
    "of a list of formats": ((INFO, '"array_record"', '["parquet"]'), "prepared as ['parquet']"),
    "of another version": (
        lambda version: version.rename(version.parent / "2.0.0"),
        "in cifar10/3.0.2",
    ),
    "without shards": (
        lambda version: [shard.unlink() for shard in version.glob("*test*record*")],
        "split 'test'",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_tfds_folder_says_what_to_do(broken_tfds, wrong):
    folder, version = broken_tfds
    change, message = WRONG[wrong]
    if isinstance(change, tuple):
        name, old, new = change
        text = (version / name).read_text()
        assert old in text
        (version / name).write_text(text.replace(old, new, 1))
    else:
        change(version)
    assert message in refused(cifar10, str(folder))
    if wrong == "unfinished":
        assert "array_record" in refused(cifar10, str(version))


PLANTED = (
    '{"pythonClassName": "planted_by_a_file.X"}',
    '{"python_class_name": "planted_by_a_file.X"}',
    '{"type": "planted_by_a_file.X"}',
    '{"type": "tensorflow_datasets.core.features.text_feature.Text", "content": "{}", '
    '"proto_cls": "planted_by_a_file.X"}',
)


@pytest.mark.parametrize("planted", PLANTED)
def test_a_tfds_folder_makes_nothing_run(broken_tfds, monkeypatch, planted):
    folder, version = broken_tfds
    (folder / "planted").mkdir()
    (folder / "planted" / "planted_by_a_file.py").write_text("class X: pass")
    monkeypatch.syspath_prepend(folder / "planted")
    (version / "features.json").write_text(planted)
    try:
        rows = len(cifar10(str(folder)).labels)
    finally:
        ran = sys.modules.pop("planted_by_a_file", None)
    assert ran is None
    assert rows == 40
