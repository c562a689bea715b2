"""CIFAR-10 and CIFAR-100 from every layout: pixels, labels, order and counts."""

import numpy as np
import pytest

from tests.conftest import real_data
from tests.datasets import small
from tests.datasets.cifar_files import binary10, binary100, refused
from vfljax.datasets.cifar import NAMES10, cifar10, cifar100
from vfljax.datasets.core import checksum, split_rows


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
