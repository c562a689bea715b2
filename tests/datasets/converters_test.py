"""Converters of image sets and Spambase, on small files in the publishers' layouts."""

import io
import sys

import numpy as np
import pytest

from tests.datasets import small
from tests.datasets.refusals import refused
from vfljax import datasets
from vfljax.datasets.converters.bhi import together
from vfljax.datasets.converters.cifar import NAMES10

ARCHIVE = "cifar-10-binary.tar.gz"
BATCHES = small.binary10("")[0]
TRAIN, TEST = BATCHES["data_batch_1.bin"], BATCHES["test_batch.bin"]
FOLDERS = small.class_folders(("train", "test"), NAMES10, images=2)
CINIC = small.class_folders(("train", "valid", "test"), NAMES10)
PHOTOS = small.photos()
PATCH = next(iter(small.PATCHES.values()))
OTHER_CAT = small.zipped({"test/cat/0000.png": PATCH})
BORDER = "9/1/9_idx5_x401_y1001_class1.png"
PIXELS = np.random.default_rng(0).integers(0, 100, (4601, 57))
SPAM = "\r\n".join(",".join(map(str, row)) + f",{i % 2}" for i, row in enumerate(PIXELS)) + "\r\n"


def read(name, folder, files, **options):
    return datasets.load(name, small.write(folder, files), options)


def less(files, start):
    return {name: data for name, data in files.items() if not name.startswith(start)}


def table(old, new, content=small.SIIM):
    assert old in content
    return {**PHOTOS, "a.csv": content.replace(old, new)}


@pytest.mark.parametrize(("below", "packed"), [("", False), ("cifar-10-batches-bin/", True)])
def test_the_binary_version_of_cifar10_is_read_pixel_for_pixel(tmp_path, below, packed):
    files, x, y = small.binary10(below)
    files = {ARCHIVE: small.tar(files)} if packed else files
    data = read("cifar10", tmp_path, files)
    np.testing.assert_array_equal(data.features, x)
    np.testing.assert_array_equal(data.labels, y)
    assert data.test.tolist() == [False] * 22 + [True] * 10
    assert (data.classes, data.kind) == (NAMES10, "image")
    few = read("cifar10", tmp_path, {}, rows=15)  # and a fifth as many test rows
    np.testing.assert_array_equal(few.features, np.concatenate([x[:15], x[22:25]]))
    assert few.test.sum() == 3


def test_cifar100_has_fine_labels_and_their_names(tmp_path):
    files, x, y = small.binary100()
    names = "\n".join(f"f{i}" for i in range(100)).encode()
    data = read("cifar100", tmp_path, {**files, "cifar-100-binary/fine_label_names.txt": names})
    np.testing.assert_array_equal(data.features, x)
    np.testing.assert_array_equal(data.labels, y[:, 1])
    assert (data.num_classes, data.classes[99]) == (100, "f99")


@pytest.mark.parametrize("packed", [False, True])
def test_image_folders_take_the_classes_in_turn(tmp_path, packed):
    names, files = sorted(FOLDERS), {**FOLDERS, "train/cat/more.txt": b"", "train/1.png": PATCH}
    if packed:  # spread over two archives, which hold an image twice
        parts = (names[::2], names[1::2] + names[:1])
        own = [{f"./cifar/{name}": FOLDERS[name] for name in part} for part in parts]
        files = {"a.tar.gz": small.tar(own[0]), "b.zip": small.zipped(own[1])}
    data = read("cifar10", tmp_path, files)
    assert data.labels.tolist() == [*range(10)] * 4
    assert data.test.tolist() == [False] * 20 + [True] * 20
    for row, seed in ((3, 3), (13, 103), (29, 1009)):
        np.testing.assert_array_equal(data.features[row], small.picture(seed))
    assert ("1 second copies of an image left out" in data.notes) == packed
    assert any("1 images that do not lie" in note for note in data.notes) == (not packed)


def test_cinic10_s_published_validation_part_joins_the_training_rows(tmp_path):
    data = read("cinic10", tmp_path, {"CINIC-10.tar.gz": small.tar(CINIC)})
    assert data.test.tolist() == [False] * 20 + [True] * 10
    assert data.labels.tolist() == [*range(10)] * 3
    for row, seed in ((3, 3), (13, 1003), (23, 2003)):
        np.testing.assert_array_equal(data.features[row], small.picture(seed))


@pytest.mark.parametrize("form", ["array_record", "parquet"])
def test_a_folder_prepared_by_tfds_is_read_without_tensorflow(tmp_path, form):
    """With the official builder's features."""
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core import registered

    features = tfds.builder("cifar100", data_dir=str(tmp_path)).info.features
    pixels = {split: [small.picture(100 * split + i) for i in range(20)] for split in range(2)}
    with registered.skip_registration():

        class Cifar(tfds.core.GeneratorBasedBuilder):
            name = "cifar100"
            VERSION = tfds.core.Version("3.0.2")

            def _info(self):
                return tfds.core.DatasetInfo(builder=self, features=features)

            def _split_generators(self, dl_manager):
                return {"train": self._generate_examples(0), "test": self._generate_examples(1)}

            def _generate_examples(self, split):
                for i, x in enumerate(pixels[split]):
                    image, labels = io.BytesIO(small.encoded(x)), (i % 10, i % 4)
                    example = {"image": image, "label": labels[0], "coarse_label": labels[1]}
                    yield f"{i:05}", {"id": f"{i:05}", **example}

    Cifar(data_dir=str(tmp_path), file_format=form).download_and_prepare()
    below = "cifar100/3.0.2" if form == "parquet" else ""  # the version's folder, or that of all
    data = datasets.load("cifar100", str(tmp_path / below), {})
    for split, held in enumerate((~data.test, data.test)):
        rows = zip(data.labels[held], data.features[held])
        expected = sorted((i % 10, x.tobytes()) for i, x in enumerate(pixels[split]))
        assert sorted((y, x.tobytes()) for y, x in rows) == expected
    assert len(datasets.load("cifar100", str(tmp_path / below), {"rows": 10}).labels) == 12
    assert "tensorflow" not in sys.modules


def patch(seed):
    return small.picture(seed, 50, 50)


def test_patches_stand_in_order_of_name_one_or_two_a_row(tmp_path):
    data = read("bhi", tmp_path / "folder", small.PATCHES)
    assert data.kind == "image"
    # names: ..x101_..class0, x101 class1, x151 class0, x51 class0, x51 class1, then patient 9
    np.testing.assert_array_equal(data.features[0], patch(1))
    assert data.labels.tolist() == [0, 1, 0, 0, 1, 0, 0, 1]
    assert data.groups.tolist() == [0] * 5 + [1] * 3
    few = read("bhi", tmp_path / "folder", {}, rows=4)  # classes keep their shares
    np.testing.assert_array_equal(few.features, data.features[[0, 1, 2, 5]])
    # of one patient and class; the odd ones stay out
    two = read("bhi", tmp_path / "zip", {"bhi.zip": small.zipped(small.PATCHES)}, patches=2)
    assert (two.kind, two.labels.tolist(), two.groups.tolist()) == ("patches", [0, 1, 0], [0, 0, 1])
    np.testing.assert_array_equal(two.features[:2], [[patch(1), patch(2)], [patch(11), patch(10)]])
    assert "2 patches that fill no row" in " ".join(two.notes)


def test_every_row_is_of_one_patient_and_class_and_no_patch_is_lost_or_used_twice():
    random = np.random.default_rng(0)
    labels, patients = random.integers(0, 2, 40), random.integers(0, 5, 40)
    places, left = together(labels, patients, 3)
    assert len({*places.ravel()}) == places.size == 40 - left
    for row in places:
        assert len({(patients[i], labels[i]) for i in row}) == 1
        assert (np.diff(row) > 0).all()


def test_borders_of_a_slide_and_second_copies_stay_out_and_are_counted(tmp_path):
    again = {f"IDC_regular_ps50_idx5/{path}": data for path, data in small.PATCHES.items()}
    border = {BORDER: small.encoded(small.picture(0, 50, 32))}
    data = read("bhi", tmp_path, {**small.PATCHES, **border, **again})
    assert len(data.labels) == 8
    assert "1 patches that are not 50x50 left out" in data.notes
    assert "8 second copies of an image left out" in data.notes


def test_patches_of_one_file_are_put_in_order_of_name(tmp_path):
    data = read("bhi", tmp_path / "named", {"bhi.npz": small.patches()})
    assert data.labels.tolist() == [1, 0, 1, 1, 0, 0]
    assert data.groups.tolist() == [0, 0, 1, 1, 1, 1]
    np.testing.assert_array_equal(data.features[0], patch(5))
    unnamed = read("bhi", tmp_path / "unnamed", {"bhi.npz": small.patches(name=None)}, patches=2)
    assert unnamed.labels.tolist() == [0, 1]
    np.testing.assert_array_equal(unnamed.features[1], [patch(2), patch(3)])


def test_siim_images_of_any_shape_get_one_size_and_their_patients(tmp_path):
    files = {
        **small.photos("jpeg/train/"),
        "train.csv": small.SIIM.replace(b"ISIC_3,IP_2", b"ISIC_3,"),
        "test.csv": b"image_name,patient_id\nISIC_4,IP_1\n",
        "sample_submission.csv": b"image_name,target\nISIC_4,0\n",
    }
    data = read("isic", tmp_path, files)
    assert (data.name, data.kind) == ("isic", "image")
    assert data.features.shape == (4, 64, 64, 3)
    assert data.labels.tolist() == [0, 1, 0, 0]
    assert data.groups[0] == data.groups[1]
    assert len(set(data.groups.tolist())) == 3  # rows without a patient are each a group
    gray = read("isic", tmp_path, {}, gray=True, groups=False)
    assert gray.groups is None
    np.testing.assert_array_equal(data.features[1], small.picture(2, 64, 64))
    luma = small.picture(2, 64, 64) @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(gray.features[1], luma, atol=1)


def test_ham10000_is_melanoma_or_not_in_the_table_s_order_with_its_lesions(tmp_path):
    again = small.photos("HAM10000_images_part_1/", numbers=(1, 2))  # as in Kaggle's download
    files = {**small.photos(numbers=(1, 2, 3, 4, 5)), **again, "HAM10000_metadata": small.HAM}
    data = read("ham10000", tmp_path, files, size=8)
    assert data.name == "ham10000"
    assert data.labels.tolist() == [0, 0, 1, 0]
    assert data.groups.tolist() == [2, 2, 0, 1]
    mean = small.picture(2, 64, 64).reshape(8, 8, 8, 8, 3).mean((1, 3))
    np.testing.assert_allclose(data.features[2], mean, atol=1)
    assert "2 second copies of an image left out" in data.notes
    assert "1 images that HAM10000_metadata does not name left out" in data.notes


def test_spambase_is_57_columns_and_a_label(tmp_path):
    data = read("spambase", tmp_path, {"spambase.data": SPAM.encode()})
    np.testing.assert_array_equal(data.features, PIXELS.astype(np.float32))
    assert data.labels.tolist()[:4] == [0, 1, 0, 1]


# (data set, files, options, what the message names)
CASES = [
    ("cifar10", {**BATCHES, "data_batch_1.bin": TRAIN[:-5]}, {}, "not whole rows of 3,073"),
    ("cifar10", {**BATCHES, "test_batch.bin": b"\x0a" + TEST[1:]}, {}, "row 1 has label 10"),
    ("cifar10", less(BATCHES, "data_batch_3"), {}, "has no data_batch_3.bin"),
    ("cifar10", less(FOLDERS, "test/bird"), {}, "'bird' is lacking"),
    ("cifar10", {**FOLDERS, "train/cat/0000.png": b"x"}, {}, "train/cat/0000.png cannot be read"),
    ("cifar10", {"a.zip": small.zipped(FOLDERS), "b.zip": OTHER_CAT}, {}, "one name and are not"),
    ("cifar10", BATCHES, {"rows": -1}, "rows=-1"),
    ("cifar100", small.class_folders(("train", "test"), "abc"), {}, "has 3 class folders and not 100"),
    ("cinic10", less(CINIC, "valid/"), {}, "valid has images of 0 classes"),
    ("bhi", {"1/0/a.png": PATCH}, {}, "not named as a patch"),
    ("bhi", small.PATCHES, {"patches": 9}, "set patches lower"),
    ("bhi", {"a.npz": small.patches(patient=None)}, {}, "no array 'patient'"),
    ("isic", PHOTOS, {}, "holds no such table"),
    ("isic", less(table(b"", b""), "ISIC_4"), {}, "row 4, column 'image_name' is an image that is not in"),
    ("isic", table(b"ISIC_2", b"ISIC_1"), {}, "is named twice: 'ISIC_1'"),
    ("isic", table(b"mel", b"m", small.HAM), {}, "row 3, column 'dx' is not one of"),
    ("spambase", {"spambase.data": SPAM[:9000].rpartition("\r\n")[0].encode()}, {}, "UCI's has 4601 of 58"),
    ("spambase", {"spambase.data": b"inf" + SPAM[SPAM.index(","):].encode()}, {}, "row 1 has a value"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[-1]}")
def test_a_bad_folder_is_one_line_with_its_remedy(tmp_path, case):
    name, files, options, message = case
    assert message in refused(datasets.load, name, small.write(tmp_path, files), options)


def test_folders_that_are_none_are_named_and_nothing_is_made_beside_them(tmp_path, monkeypatch):
    monkeypatch.delenv("VFLJAX_DATA_CACHE")
    (tmp_path / "file").write_bytes(b"")
    for folder, message in (("", "is empty"), ("file", "is a file"), ("none/x", "is not a folder")):
        path = folder and str(tmp_path / folder)
        assert message in refused(datasets.load, "cifar10", path, {})
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_links_are_followed_and_may_lead_in_a_circle(tmp_path):
    small.write(tmp_path, {f"data/{name}": data for name, data in FOLDERS.items()})
    (tmp_path / "own").mkdir()
    for part in ("train", "test"):
        (tmp_path / "own" / part).symlink_to(tmp_path / "data" / part)
    (tmp_path / "data" / "train" / "cat" / "loop").symlink_to("../..")
    (tmp_path / "linked").symlink_to("own")
    assert len(datasets.load("cifar10", str(tmp_path / "linked"), {}).labels) == 40
