"""Image sets from every layout: pixels, labels, order, groups and counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import real_data
from tests.datasets import small
from tests.datasets.image_faults_test import ARCHIVE, CINIC, X, Y
from vfljax.datasets import TABLE, load
from vfljax.datasets.bhi import _together, bhi
from vfljax.datasets.cifar import NAMES10, cifar10, cifar100, cinic10
from vfljax.datasets.core import checksum
from vfljax.datasets.isic import isic
from vfljax.datasets.npz import npz
from vfljax.datasets.splits import split_rows

TWO, THREE = ("train", "test"), ("train", "valid", "test")


def bhi_patch(seed):
    return small.picture(seed, 50, 50)


@pytest.mark.parametrize("prefix", ["cifar-10-batches-bin/", "", ARCHIVE])
def test_the_binary_version_of_cifar10_is_read_pixel_for_pixel(tmp_path, prefix):
    files, x, y = small.binary10("" if prefix == ARCHIVE else prefix)
    if prefix == ARCHIVE:
        files = {ARCHIVE: small.tar(small.binary10()[0])}
    folder = small.write(tmp_path, files)
    data = cifar10(folder)
    np.testing.assert_array_equal(data.features, x)
    np.testing.assert_array_equal(data.labels, y)
    assert data.test.tolist() == [False] * 22 + [True] * 10
    assert (data.classes, data.kind) == (NAMES10, "image")
    note = "22 training and 10 test rows; the official set has 50,000 and 10,000"
    assert data.notes[-1] == note
    assert note in cifar10(folder, rows=100).notes
    few = cifar10(folder, rows=15)  # and a fifth as many test rows
    np.testing.assert_array_equal(few.features, np.concatenate([x[:15], x[22:25]]))
    assert few.test.sum() == 3
    assert not any("official set" in note for note in few.notes)


def test_cifar100_has_fine_and_coarse_labels_and_their_names(tmp_path):
    files, x, y = small.binary100()
    folder = small.write(tmp_path, files)
    assert cifar100(folder).classes == ()
    for name, count in (("fine", 100), ("coarse", 20)):
        lines = "\n".join(f"{name[0]}{i}" for i in range(count)).encode()
        small.write(tmp_path, {f"cifar-100-binary/{name}_label_names.txt": lines})
    fine, coarse = cifar100(folder), cifar100(folder, labels="coarse")
    np.testing.assert_array_equal(fine.features, x)
    np.testing.assert_array_equal(fine.labels, y[:, 1])
    np.testing.assert_array_equal(coarse.labels, y[:, 0])
    assert (fine.num_classes, coarse.num_classes) == (100, 20)
    assert (fine.classes[99], coarse.classes[19]) == ("f99", "c19")


def test_names_of_classes_are_printable(tmp_path):
    files = small.class_folders(TWO, [*(f"{k:02}" for k in range(99)), "x\x1b[2J\ny"])
    assert cifar100(small.write(tmp_path, files)).classes[-1] == "x\ufffd[2J y"


def test_both_sets_may_lie_in_one_folder(tmp_path):
    folder = small.write(tmp_path, {**small.binary10("")[0], **small.binary100("")[0]})
    assert (len(cifar10(folder).labels), len(cifar100(folder).labels)) == (32, 220)


def test_image_folders_go_round_the_classes_in_the_official_order(tmp_path):
    data = cifar10(small.write(tmp_path, small.class_folders(TWO, NAMES10, images=2)))
    assert data.labels.tolist() == [*range(10)] * 4
    np.testing.assert_array_equal(data.features[13], small.picture(103))
    np.testing.assert_array_equal(data.features[29], small.picture(1009))
    assert data.test.sum() == 20
    assert "lossy" not in " ".join(data.notes)
    few = small.class_folders(TWO, NAMES10, images=5, form="JPEG")
    data = cifar10(small.write(tmp_path / "few", few), rows=50)
    assert len(np.unique(data.labels[data.test])) == 10
    assert "lossy" in " ".join(data.notes)


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_left_out_of_image_folders_is_counted(tmp_path, packed):
    files = small.class_folders(TWO, NAMES10)
    assert cifar10(small.write(tmp_path / "clean", files)).notes[1:-1] == ()
    more = dict.fromkeys(("train/cat/a.bmp", "test/dog/b.gif", "README.md", "train/.hidden"), b"x")
    more |= dict.fromkeys(("train/cat/more/1.png", "train/1.png"), files["train/cat/0000.png"])
    files = {"all.zip": small.zipped({**files, **more})} if packed else {**files, **more}
    data = cifar10(small.write(tmp_path / "more", files))
    assert len(data.labels) == 20
    said = " ".join(data.notes)
    assert "2 images that do not lie in <split>/<class>/ left out, such as train/1.png" in said
    assert "2 files that are no PNG or JPEG, or lie too deep, left out, such as t" in said


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "zip"])
def test_archives_of_image_folders_read_as_the_folders_do(tmp_path, suffix):
    files = small.class_folders(TWO, NAMES10, images=2)
    pack = {"zip": small.zipped, "tar.gz": small.tar, "tar": lambda own: small.tar(own, "w")}
    names = sorted(files)
    for k, part in enumerate((names[::2], names[1::2])):  # spread over two archives
        own = {f"cifar/{name}": files[name] for name in part}
        small.write(tmp_path / "packed", {f"part_{k}.{suffix}": pack[suffix](own)})
    loose = cifar10(small.write(tmp_path / "loose", files))
    packed = cifar10(str(tmp_path / "packed"))
    np.testing.assert_array_equal(packed.features, loose.features)
    assert checksum(packed) == checksum(loose)


@pytest.mark.parametrize("part", ["train", "test", "drop", None])
def test_the_published_validation_part_joins_the_part_named(tmp_path, part):
    data = cinic10(small.write(tmp_path, CINIC), **({"validation": part} if part else {}))
    part = part or "train"  # as published
    held = {"train": [20, 10], "test": [10, 20], "drop": [10, 10]}[part]
    assert np.bincount(data.test).tolist() == held
    assert data.labels.tolist() == [*range(10)] * (sum(held) // 10)
    np.testing.assert_array_equal(data.features[3], small.picture(3))
    np.testing.assert_array_equal(
        data.features[-8], small.picture(1002 if part == "test" else 2002)
    )
    if part != "drop":
        np.testing.assert_array_equal(
            data.features[{"train": 10, "test": 20}[part]], small.picture(1000)
        )
    assert data.notes[1:] == ()
    small.write(tmp_path, {"test/cat/1.bmp": b"", "readme.md": b""})
    assert "1 files that are no PNG or JPEG" in " ".join(cinic10(str(tmp_path)).notes)


def test_cinic10_s_archive_is_read_in_place_and_rows_is_a_balanced_share(tmp_path):
    files = small.class_folders(THREE, NAMES10, images=5)
    small.write(tmp_path, {"CINIC-10.tar.gz": small.tar({f"./{k}": v for k, v in files.items()})})
    data = load("cinic10", str(tmp_path), {"rows": 50, "validation": "drop"})
    assert np.bincount(data.labels[~data.test]).tolist() == [5] * 10
    assert data.labels[data.test].tolist() == [*range(10)]
    assert data.classes == NAMES10


def test_one_patch_a_row_in_order_of_name_from_folders_and_archives(tmp_path):
    data = bhi(small.write(tmp_path / "loose", small.PATCHES))
    assert data.kind == "image"
    assert data.features.shape == (8, 50, 50, 3)
    # names: ..x101_..class0, x101 class1, x151 class0, x51 class0, x51 class1, then patient 9
    np.testing.assert_array_equal(data.features[0], bhi_patch(1))
    assert data.labels.tolist() == [0, 1, 0, 0, 1, 0, 0, 1]
    assert data.groups.tolist() == [0] * 5 + [1] * 3
    packed = bhi(small.write(tmp_path / "zip", {"bhi.zip": small.zipped(small.PATCHES)}))
    np.testing.assert_array_equal(packed.features, data.features)
    few = bhi(str(tmp_path / "loose"), rows=4)  # classes keep their shares
    np.testing.assert_array_equal(few.features, data.features[[0, 1, 2, 5]])


def test_two_patches_a_row_are_of_one_patient_and_class_and_the_odd_ones_stay_out(tmp_path):
    folder = small.write(tmp_path, small.PATCHES)
    data = bhi(folder, patches=2)
    assert data.kind == "patches"
    assert data.labels.tolist() == [0, 1, 0]
    assert data.groups.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(
        data.features[:2], [[bhi_patch(1), bhi_patch(2)], [bhi_patch(11), bhi_patch(10)]]
    )
    assert "2 patches that fill no row" in " ".join(data.notes)
    half = bhi(folder, size=25, patches=2)
    assert half.features.shape == (3, 2, 25, 25, 3)
    mean = bhi_patch(1)[:2, :2].mean((0, 1))
    np.testing.assert_allclose(half.features[0, 0, 0, 0], mean, atol=1)  # Pillow rounds twice


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=40),
    per_row=st.integers(1, 4),
)
def test_every_row_is_of_one_patient_and_class_and_no_patch_is_lost_or_used_twice(rows, per_row):
    patients, labels = np.array(rows).T
    places, left = _together(labels, patients, per_row)
    assert places.size + left == len(rows) == len(set(places.ravel())) + left
    for row in places:
        assert len({(patients[i], labels[i]) for i in row}) == 1
        assert (np.diff(row) > 0).all()
    sizes = np.unique(np.stack([patients, labels]), axis=1, return_counts=True)[1]
    assert left == (sizes % per_row).sum()


def test_borders_of_a_slide_and_second_copies_stay_out_and_are_counted(tmp_path):
    border = {
        "9/1/9_idx5_x401_y1001_class1.png": small.encoded(small.picture(0, 50, 32)),
        "9/1/9_idx5_x451_y1001_class1.png": small.png16(50, 9),
    }
    again = {f"IDC_regular_ps50_idx5/{path}": data for path, data in small.PATCHES.items()}
    data = bhi(small.write(tmp_path, {**small.PATCHES, **border, **again}))
    assert len(data.labels) == 8
    said = " ".join(data.notes)
    assert "2 patches that are not 50x50" in said
    assert "8 second copies" in said


def test_patches_of_one_file_are_put_in_order_of_name(tmp_path):
    data = bhi(small.write(tmp_path, {"bhi.npz": small.patches()}))
    assert data.labels.tolist() == [1, 0, 1, 1, 0, 0]
    assert data.groups.tolist() == [0, 0, 1, 1, 1, 1]
    np.testing.assert_array_equal(data.features[0], bhi_patch(5))
    assert bhi(str(tmp_path), size=10).features.shape == (6, 10, 10, 3)
    small.write(tmp_path, {"bhi.npz": small.patches(name=None)})
    unnamed = load("bhi", str(tmp_path), {"patches": 2})
    assert unnamed.labels.tolist() == [0, 1]
    np.testing.assert_array_equal(unnamed.features[1], [bhi_patch(2), bhi_patch(3)])


@pytest.mark.parametrize("below", ["", "train/", "jpeg/train/"])
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_siim_images_of_any_shape_get_one_size_and_their_patients(tmp_path, below, form):
    table = (
        small.SIIM.replace(b"ISIC_3,IP_2", b"\r\nISIC_3,") + b"\r\n\r\n"
    )  # blank lines are no rows
    folder = small.write(tmp_path, {**small.photos(below, form), "train.csv": table})
    data = isic(folder)
    assert (data.name, data.kind) == ("isic", "image")
    assert data.features.shape == (4, 64, 64, 3)
    assert data.labels.tolist() == [0, 1, 0, 0]
    assert data.groups[0] == data.groups[1]
    assert len(set(data.groups.tolist())) == 3  # rows without a patient are each a group
    gray = isic(folder, gray=True)
    assert gray.features.shape == (4, 64, 64)
    if form == "PNG":
        np.testing.assert_array_equal(data.features[1], small.picture(2, 64, 64))
        means = small.picture(4, 128, 128).reshape(64, 2, 64, 2, 3).mean((1, 3))
        np.testing.assert_allclose(data.features[3], means, atol=1)
        luma = small.picture(2, 64, 64) @ [0.299, 0.587, 0.114]
        np.testing.assert_allclose(gray.features[1], luma, atol=1)


def test_ham10000_is_melanoma_or_not_in_the_table_s_order_with_its_lesions(tmp_path):
    # as in Kaggle's download, whose two parts lie in four folders
    parts = [f"{ham}10000_images_part_{k}/" for ham in ("HAM", "ham") for k in (1, 2)]
    files = {
        k: v
        for part in parts
        for k, v in small.photos(part, numbers=(1, 2) if "1/" in part else (3, 4)).items()
    }
    data = load(
        "ham10000", small.write(tmp_path, {**files, "HAM10000_metadata": small.HAM}), {"size": 8}
    )
    assert data.name == "ham10000"
    assert data.labels.tolist() == [0, 0, 1, 0]
    assert data.groups.tolist() == [2, 2, 0, 1]
    assert data.notes[1] == "4 second copies of an image left out"
    assert isic(str(tmp_path), groups=False).groups is None
    assert TABLE["ham10000"] is TABLE["isic"]


@pytest.mark.parametrize("file", ["train.csv", "ISIC_2020_Training_GroundTruth.csv"])
def test_file_chooses_between_tables(tmp_path, file):
    other = small.SIIM.replace(b"IP_7,male,benign,0", b"IP_7,male,benign,1")
    tables = {"train.csv": small.SIIM, "ISIC_2020_Training_GroundTruth.csv": other}
    data = isic(small.write(tmp_path, {**small.photos("jpeg/"), **tables}), size=4, file=file)
    assert data.labels.tolist() == [int(file != "train.csv"), 1, 0, 0]
    assert file in data.notes[0]


def test_images_may_lie_in_archives_and_more_of_them_than_the_table_names(tmp_path):
    files = {
        "a.zip": small.zipped(small.photos("x/", numbers=(1, 2))),
        "b.tar.gz": small.tar(small.photos(numbers=(3, 4))),
        "train.csv": small.SIIM.rsplit(b"ISIC_4", 1)[0],
        "test.csv": b"image_name,patient_id\nISIC_4,IP_1\n",
        "sample_submission.csv": b"image_name,target\nISIC_4,0\n",
    }
    data = isic(small.write(tmp_path, files))
    np.testing.assert_array_equal(data.features[1], small.picture(2, 64, 64))
    assert "read 3 of 3 rows" in data.notes[0]
    assert data.notes[1] == "1 images that train.csv does not name left out"


def test_rows_are_spread_over_the_file_and_another_column_may_be_the_target(tmp_path):
    table = small.SIIM.replace(b"target", b"sick")
    folder = small.write(tmp_path, {**small.photos(), "train.csv": table})
    whole = isic(folder, target="sick", size=20)
    assert whole.labels.tolist() == [0, 1, 0, 0]
    few = isic(folder, target="sick", rows=3, size=20)
    np.testing.assert_array_equal(few.features, whole.features[:3])
    assert few.groups.tolist() == [1, 1, 0]


def test_size_0_keeps_the_files_own_size(tmp_path):
    same = small.photos(shapes=dict.fromkeys(small.SHAPES, (24, 16)))
    folder = small.write(tmp_path, {**same, "train.csv": small.SIIM})
    assert isic(folder, size=0).features.shape == (4, 24, 16, 3)


def test_a_very_large_jpeg_is_near_its_mean(tmp_path):
    slope = np.linspace(0, 255, 1200).astype(np.uint8)
    large = np.repeat(np.repeat(slope[None, :, None], 900, 0), 3, 2)
    files = {**small.photos(numbers=(2, 3, 4)), "ISIC_1.jpg": small.encoded(large, "JPEG")}
    data = isic(small.write(tmp_path, {**files, "train.csv": small.SIIM}), size=10)
    np.testing.assert_allclose(data.features[0, 5, :, 0], slope.reshape(10, 120).mean(1), atol=2)


def test_lesions_of_one_file_keep_their_size_or_get_another(tmp_path):
    own = isic(small.write(tmp_path, {"a.npz": small.lesions()}), size=0)
    np.testing.assert_array_equal(own.features[2], small.picture(2, 16, 16))
    assert own.groups.tolist() == [1, 0, 0, 2]
    assert own.name == "ham10000"
    larger = isic(str(tmp_path))
    assert larger.features.shape == (4, 64, 64, 3)
    assert "16x16 pixels resized to 64x64" in larger.notes[1]
    assert isic(str(tmp_path), size=8, gray=True).features.shape == (4, 8, 8)
    known = {"lesion_id": None, "patient_id": np.array([5, 5, 3, 4])}
    patients = isic(small.write(tmp_path, {"b.npz": small.lesions(**known)}), file="b.npz")
    assert patients.name == "isic"
    assert patients.groups.tolist() == [2, 2, 0, 1]


def test_any_arrays_are_images_or_a_table_that_may_miss_numbers(tmp_path):
    def read(options=None, **arrays):
        small.write(tmp_path, {"set.npz": small.archived(**arrays)})
        return load("npz", str(tmp_path / "set.npz"), options or {})

    data = npz(small.write(tmp_path, {"set.npz": small.archived(x=X, y=Y)}))
    assert (data.kind, data.name, data.num_classes) == ("image", "set", 3)
    assert data.features.dtype == np.uint8
    np.testing.assert_array_equal(data.features, X)
    assert read(x=X[..., None], y=Y).features.shape == (4, 5, 6, 1)
    rows_of_three = np.stack([X[:, :3]] * 4, axis=-1)  # with four channels, which are the last
    assert read(x=rows_of_three, y=Y).features.shape == (4, 3, 6, 4)
    table = np.array([[1, np.nan], [2, 3], [4, 5], [6, 7.5]])
    data = read(x=table, y=Y)
    assert data.kind == "table"
    np.testing.assert_array_equal(data.features, table.astype(np.float32))
    names = {"x": "pixels", "y": "target", "groups": "who"}
    data = read(names, pixels=X / 255, target=Y.astype(float), who=np.array(["b", "a", "b", "c"]))
    assert data.groups.tolist() == [1, 0, 1, 2]
    assert data.features.dtype == np.float32
    assert data.labels.tolist() == Y.tolist()


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
