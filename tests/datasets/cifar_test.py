"""CIFAR in every layout: format-true small files load exactly, real ones have their counts, and
damaged ones are one line."""

import io
import shutil
import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_datasets.core import registered

from tests.conftest import real_data
from tests.datasets import small
from tests.datasets.fuzzing import damaged
from vfljax.datasets.cifar import NAMES10, cifar10, cifar100
from vfljax.datasets.core import checksum, split_rows
from vfljax.errors import UserError


def binary10(prefix="cifar-10-batches-bin/", rows=(12, 4, 2, 1, 3, 10)):
    """{path: bytes} of five training batches and the test batch, and their pixels and labels."""
    files, xs, ys = {}, [], []
    names = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
    for seed, (name, many) in enumerate(zip(names, rows)):
        files[prefix + name], x, y = small.binary_rows(seed, many, 1, (10,))
        xs.append(x)
        ys.append(y[:, 0])
    return files, np.concatenate(xs), np.concatenate(ys)


def binary100(prefix="cifar-100-binary/"):
    files, xs, ys = {}, [], []
    for seed, name in enumerate(("train.bin", "test.bin")):
        files[prefix + name], x, y = small.binary_rows(seed, 110, 2, (20, 100))
        xs.append(x)
        ys.append(y)
    return files, np.concatenate(xs), np.concatenate(ys)


def refused(loader, folder, **options):
    with pytest.raises(UserError) as error:
        loader(str(folder), **options)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize("prefix", ["cifar-10-batches-bin/", ""])
def test_the_binary_version_of_cifar10_is_read_pixel_for_pixel(tmp_path, prefix):
    files, x, y = binary10(prefix)
    data = cifar10(small.write(tmp_path, files))
    np.testing.assert_array_equal(data.features, x)
    np.testing.assert_array_equal(data.labels, y)
    assert data.test.tolist() == [False] * 22 + [True] * 10
    assert data.classes == NAMES10
    assert data.kind == "image"


def test_the_official_archive_reads_as_its_folder_does(tmp_path):
    files, x, y = binary10()
    small.write(tmp_path, {"cifar-10-binary.tar.gz": small.tar(files)})
    data = cifar10(str(tmp_path))
    np.testing.assert_array_equal(data.features, x)
    np.testing.assert_array_equal(data.labels, y)
    loose = cifar10(small.write(tmp_path / "loose", files))
    assert checksum(data) == checksum(loose)


@pytest.mark.parametrize("number", range(1, 6))
def test_a_batch_missing_is_named(tmp_path, number):
    files = binary10()[0]
    del files[f"cifar-10-batches-bin/data_batch_{number}.bin"]
    small.write(tmp_path / "loose", files)
    small.write(tmp_path / "packed", {"cifar-10-binary.tar.gz": small.tar(files)})
    for folder in ("loose", "packed"):
        assert f"has no data_batch_{number}.bin" in refused(cifar10, tmp_path / folder)


def test_counts_that_are_not_the_official_ones_are_noted(tmp_path):
    folder = small.write(tmp_path, binary10()[0])
    note = "22 training and 10 test rows; the official set has 50,000 and 10,000"
    assert cifar10(folder).notes[-1] == note
    assert note in cifar10(folder, rows=100).notes
    assert not any("official set" in note for note in cifar10(folder, rows=15).notes)


def test_rows_keeps_the_first_rows_and_a_fifth_as_many_test_rows(tmp_path):
    files, x, _ = binary10()
    data = cifar10(small.write(tmp_path, files), rows=15)
    np.testing.assert_array_equal(data.features, np.concatenate([x[:15], x[22:25]]))
    assert data.test.sum() == 3


def test_cifar100_has_fine_and_coarse_labels_and_their_names(tmp_path):
    files, x, y = binary100()
    files["cifar-100-binary/fine_label_names.txt"] = "\n".join(f"f{i}" for i in range(100)).encode()
    files["cifar-100-binary/coarse_label_names.txt"] = "\n".join(
        f"c{i}" for i in range(20)
    ).encode()
    folder = small.write(tmp_path, files)
    fine, coarse = cifar100(folder), cifar100(folder, labels="coarse")
    np.testing.assert_array_equal(fine.features, x)
    np.testing.assert_array_equal(fine.labels, y[:, 1])
    np.testing.assert_array_equal(coarse.labels, y[:, 0])
    assert (fine.num_classes, coarse.num_classes) == (100, 20)
    assert (fine.classes[99], coarse.classes[19]) == ("f99", "c19")


def test_names_of_classes_are_printable(tmp_path):
    files = small.class_folders(("train", "test"), [*(f"{k:02}" for k in range(99)), "x\x1b[2J\ny"])
    assert cifar100(small.write(tmp_path, files)).classes[-1] == "x\ufffd[2J y"


def test_cifar100_without_name_files_has_unnamed_classes(tmp_path):
    assert cifar100(small.write(tmp_path, binary100()[0])).classes == ()


def test_both_sets_may_lie_in_one_folder(tmp_path):
    folder = small.write(tmp_path, {**binary10("")[0], **binary100("")[0]})
    assert (len(cifar10(folder).labels), len(cifar100(folder).labels)) == (32, 220)


def test_image_folders_go_round_the_classes_in_the_official_order(tmp_path):
    files = small.class_folders(("train", "test"), NAMES10, images=2)
    data = cifar10(small.write(tmp_path, files))
    assert data.labels.tolist() == [*range(10)] * 4
    np.testing.assert_array_equal(data.features[13], small.picture(103))
    np.testing.assert_array_equal(data.features[29], small.picture(1009))
    assert data.test.sum() == 20
    assert "lossy" not in " ".join(data.notes)


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_left_out_of_image_folders_is_counted(tmp_path, packed):
    files = small.class_folders(("train", "test"), NAMES10)
    assert cifar10(small.write(tmp_path / "clean", files)).notes[1:-1] == ()
    more = dict.fromkeys(("train/cat/a.bmp", "test/dog/b.gif", "README.md", "train/.hidden"), b"x")
    more |= dict.fromkeys(("train/cat/more/1.png", "train/1.png"), files["train/cat/0000.png"])
    files = {"all.zip": small.zipped({**files, **more})} if packed else {**files, **more}
    data = cifar10(small.write(tmp_path / "more", files))
    assert len(data.labels) == 20
    told = " ".join(data.notes)
    assert "2 images that do not lie in <split>/<class>/ left out, such as train/1.png" in told
    assert "2 files that are no PNG or JPEG, or lie too deep, left out, such as t" in told


def test_rows_too_few_for_the_test_part_say_how_many_it_takes(tmp_path):
    small.write(tmp_path / "folders", small.class_folders(("train", "test"), NAMES10, images=5))
    small.write(tmp_path / "binary", binary10()[0])
    for layout in ("folders", "binary"):
        assert "rows must be at least 50 for every" in refused(cifar10, tmp_path / layout, rows=5)
    assert len(np.unique(cifar10(str(tmp_path / "folders"), rows=50).labels)) == 10


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "zip"])
def test_archives_of_image_folders_read_as_the_folders_do(tmp_path, suffix):
    files = small.class_folders(("train", "test"), NAMES10, images=2)
    names = sorted(files)
    for k, part in enumerate((names[::2], names[1::2])):  # spread over two archives
        own = {f"cifar/{name}": files[name] for name in part}
        content = (
            small.zipped(own)
            if suffix == "zip"
            else small.tar(own, "w" if suffix == "tar" else "w:gz")
        )
        small.write(tmp_path / "packed", {f"part_{k}.{suffix}": content})
    loose = cifar10(small.write(tmp_path / "loose", files))
    packed = cifar10(str(tmp_path / "packed"))
    np.testing.assert_array_equal(packed.features, loose.features)
    np.testing.assert_array_equal(packed.labels, loose.labels)
    assert checksum(packed) == checksum(loose)


def test_jpeg_pixels_are_said_to_be_lossy(tmp_path):
    files = small.class_folders(("train", "test"), NAMES10, form="JPEG")
    assert "lossy" in " ".join(cifar10(small.write(tmp_path, files)).notes)


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


def test_an_unfinished_tfds_folder_is_named(broken_tfds):
    folder, version = broken_tfds
    (version / "dataset_info.json").unlink()
    assert "did not finish" in refused(cifar10, folder)
    assert "array_record" in refused(cifar10, version)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("dataset_info.json", '"array_record"', '"tfrecord"', "only TensorFlow reads"),
        ("dataset_info.json", '"fileFormat": "array_record",', "", "as tfrecord, which only"),
        ("dataset_info.json", '"cifar10"', '"cifar100"', "is of 'cifar100'"),
        ("dataset_info.json", "{", "", "cannot be read"),
    ],
)
def test_a_wrong_tfds_folder_says_what_to_do(broken_tfds, file, old, new, message):
    folder, version = broken_tfds
    text = (version / file).read_text()
    assert old in text
    (version / file).write_text(text.replace(old, new, 1))
    assert message in refused(cifar10, folder)


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


def test_a_tfds_folder_of_another_version_or_place_is_named(broken_tfds):
    folder, version = broken_tfds
    version.rename(version.parent / "2.0.0")
    assert "does not end in cifar10/3.0.2" in refused(cifar10, folder)


def test_a_tfds_folder_without_shards_is_one_line(broken_tfds):
    folder, version = broken_tfds
    for shard in version.glob("*test*record*"):
        shard.unlink()
    assert "split 'test'" in refused(cifar10, folder)


GOOD = binary10("")[0]
TRAIN, TEST = GOOD["data_batch_1.bin"], GOOD["test_batch.bin"]
FOLDERS = small.class_folders(("train", "test"), NAMES10)
ARCHIVE = small.tar(binary10()[0])
CASES = {
    "nothing": ({}, "none of the layouts of cifar10"),
    "a cut batch": ({**GOOD, "data_batch_1.bin": TRAIN[:-5]}, "not whole rows of 3,073"),
    "an empty batch": ({**GOOD, "data_batch_1.bin": b""}, "has 0 bytes"),
    "CIFAR-100's rows": ({**GOOD, "data_batch_1.bin": b"\0" * 3074}, "not whole rows"),
    "a label of 10": ({**GOOD, "test_batch.bin": b"\x0a" + TEST[1:]}, "row 1 has label 10"),
    "one class": ({**GOOD, "test_batch.bin": TEST[:3073]}, "at least two classes"),
    "no test batch": (
        {k: v for k, v in GOOD.items() if k != "test_batch.bin"},
        "has no test_batch.bin",
    ),
    "no training batch": ({"test_batch.bin": TEST}, "has no data_batch_1.bin"),
    "a gap": ({"data_batch_2.bin": TRAIN, "test_batch.bin": TEST}, "has no data_batch_1.bin"),
    "a folder for a file": ({"data_batch_1.bin/x": b"", "test_batch.bin": TEST}, "is not a file"),
    "a sixth batch": ({**GOOD, "data_batch_6.bin": TRAIN}, "data_batch_6.bin is no file of"),
    "a file twice in an archive": (
        {"cifar-10-binary.tar.gz": small.tar({**binary10()[0], "b/test_batch.bin": TEST})},
        "holds cifar-10-batches-bin/test_batch.bin and b/test_batch.bin",
    ),
    "pickles": ({"cifar-10-batches-py/data_batch_1": b"x"}, "fetch the binary version"),
    "a pickled archive": ({"cifar-10-python.tar.gz": b"x"}, "never opened"),
    "no archive": ({"cifar-10-binary.tar.gz": b"no archive"}, "the archive is damaged"),
    "a folder for an archive": ({"cifar-10-binary.tar.gz/x": b""}, "is not a file"),
    "another archive": ({"cifar-10-binary.tar.gz": small.tar({"a": b"b"})}, "holds no .bin file"),
    "no test folder": (
        {k: v for k, v in FOLDERS.items() if k.startswith("train")},
        "no image in test/<class>/",
    ),
    "a class missing": (
        {k: v for k, v in FOLDERS.items() if k != "test/bird/0000.png"},
        "test/bird holds no image",
    ),
    "a strange class": ({**FOLDERS, "train/lorry/1.png": b""}, "train/lorry is none of"),
    "no image": ({**FOLDERS, "train/cat/0000.png": b"x" * 99}, "train/cat/0000.png cannot be read"),
    "a cut image": (
        {**FOLDERS, "train/cat/0000.png": FOLDERS["train/cat/0000.png"][:-900]},
        "train/cat/0000.png cannot be read",
    ),
    "ragged images": (
        {**FOLDERS, "train/cat/0000.png": small.encoded(small.picture(0, 32, 31))},
        "train/cat/0000.png is 31x32 pixels and not 32x32",
    ),
    "stray images alone": ({"a.png": b"", "b/a.png": b""}, "none of the layouts"),
    "a stray image beside archives": (
        {"all.zip": small.zipped(FOLDERS), "a.png": b""},
        "archives not read, since images lie beside them",
    ),
    "the same archive twice": (
        {"a.tar.gz": small.tar(FOLDERS), "b.tar.gz": small.tar(FOLDERS)},
        "are the same image",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_folder_is_one_line_with_its_remedy(tmp_path, case):
    files, message = CASES[case]
    small.write(tmp_path, files)
    assert message in refused(cifar10, tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": -1}, "rows=-1"),
        ({"rows": True}, "rows=True"),
        ({"rows": "9"}, "rows='9'"),
        ({"labels": "both"}, "choose fine, coarse"),
    ],
)
def test_a_wrong_option_is_named(tmp_path, options, message):
    assert message in refused(cifar100, tmp_path, **options)


def test_folders_that_are_none_are_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert "data.dir is empty" in refused(cifar10, "")
    assert "is a file" in refused(cifar10, tmp_path / "file")
    assert "is not a folder" in refused(cifar10, tmp_path / "nowhere")


def test_image_folders_of_cifar100_need_all_classes_and_have_no_coarse_labels(tmp_path):
    folder = small.write(tmp_path, small.class_folders(("train", "test"), "abc"))
    assert "has 3 class folders and not 100" in refused(cifar100, folder)
    assert "fine labels only" in refused(cifar100, folder, labels="coarse")


def test_an_archive_cut_anywhere_is_refused(tmp_path):
    files = {f"data_batch_{n}.bin": bytes([n]) * 3073 for n in range(1, 6)}
    files["test_batch.bin"] = TEST[: 2 * 3073]
    whole = small.tar(files)
    path = tmp_path / "cifar-10-binary.tar.gz"
    for end in [*range(0, len(whole), 211), *range(len(whole) - 12, len(whole))]:
        path.write_bytes(whole[:end])
        assert "fetch it again" in refused(cifar10, tmp_path)
    path.write_bytes(whole)
    assert len(cifar10(str(tmp_path)).labels) == 7


def test_a_plain_tar_cut_anywhere_is_refused(tmp_path):
    whole = small.tar(FOLDERS, "w")
    for end in (100, 512, 1024, 4096, 20_480, 51_200, len(whole) - 10_240):
        (tmp_path / "all.tar").write_bytes(whole[:end])
        assert "all.tar" in refused(cifar10, tmp_path)


FUZZED = {
    "binary": (cifar10, binary10(rows=(3, 2, 1, 1, 1, 2))[0]),
    "binary of 100": (cifar100, {k: v[: 3 * 3074] for k, v in binary100()[0].items()}),
    "archive": (cifar10, {"cifar-10-binary.tar.gz": ARCHIVE}),
    "folders": (cifar10, FOLDERS),
    "tar": (cifar10, {"train_a.tar": small.tar(FOLDERS, "w")}),
    "zip": (cifar10, {"all.zip": small.zipped(FOLDERS)}),
    "jpeg": (cifar10, small.class_folders(("train", "test"), NAMES10, form="JPEG")),
}


@pytest.mark.parametrize("layout", FUZZED)
def test_damage_to_any_file_loads_or_is_one_line(tmp_path, layout):
    loader, files = FUZZED[layout]
    small.write(tmp_path, files)
    loader(str(tmp_path))

    @settings(max_examples=200, deadline=None)
    @given(data=st.data())
    def check(data):
        damaged(data, loader, tmp_path)

    check()


def test_damage_to_a_tfds_folder_loads_or_is_one_line(broken_tfds):
    folder, _ = broken_tfds

    @settings(max_examples=200, deadline=None)
    @given(data=st.data())
    def check(data):
        damaged(data, cifar10, folder)

    check()


def test_the_exact_rows_of_cifar10_have_their_published_labels():
    data = cifar10(str(real_data("cifar10_exact")))
    assert data.features.shape == (8068 + 1017, 32, 32, 3)
    assert data.test.sum() == 1017
    counts = np.bincount(data.labels[~data.test])
    assert (counts.min(), counts.max()) == (777, 856)
    # the first row of the official data_batch_1 is a frog whose first red pixel is 59
    assert data.classes[data.labels[0]] == "frog"
    assert data.features[0, 0, 0].tolist() == [59, 62, 63]


def test_the_jpeg_images_of_cifar10_are_complete_and_near_the_exact_pixels():
    data = cifar10(str(real_data("cifar10_jpeg")), rows=2000)
    assert np.bincount(data.labels[~data.test]).tolist() == [200] * 10
    assert np.bincount(data.labels[data.test]).tolist() == [40] * 10
    exact = cifar10(str(real_data("cifar10_exact")))
    # the k-th file of a class is the k-th of that class in the official order: test batch, cats
    ours = data.features[data.test][data.labels[data.test] == 3][:10].astype(float)
    theirs = exact.features[exact.test][exact.labels[exact.test] == 3][:10].astype(float)
    assert np.abs(ours - theirs).mean() < 8
    split = split_rows(data, 0, 0.8, 0.2, 1.0)
    assert not data.test[split.train].any()
    assert data.test[split.test].all()


def test_the_exact_rows_of_cifar100_have_named_classes():
    folder = str(real_data("cifar100_exact"))
    fine, coarse = cifar100(folder), cifar100(folder, labels="coarse")
    assert fine.features.shape == (486 + 916, 32, 32, 3)
    assert fine.classes[:2] == ("apple", "aquarium_fish")
    for y in range(100):  # a fine class lies in one coarse class
        assert len(set(coarse.labels[fine.labels == y])) <= 1
    assert coarse.num_classes == len(coarse.classes) == 20
