"""SIIM-ISIC and HAM10000: files beside a table, or an .npz; sizes, gray, groups and faults."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import real_data
from tests.datasets import small
from tests.datasets.fuzzing import damaged, few_or_many
from vfljax.datasets import TABLE, load
from vfljax.datasets.isic import isic
from vfljax.errors import UserError

SIIM = (
    b"image_name,patient_id,sex,benign_malignant,target\r\n"
    b"ISIC_1,IP_7,male,benign,0\r\n"
    b"ISIC_2,IP_7,male,malignant,1\r\n"
    b"ISIC_3,IP_2,female,benign,0\r\n"
    b"ISIC_4,,female,benign,0\r\n"
)
HAM = (
    b"lesion_id,image_id,dx,dx_type,age\n"
    b"HAM_9,ISIC_4,bkl,histo,80.0\n"
    b"HAM_9,ISIC_3,bkl,histo,80.0\n"
    b"HAM_1,ISIC_2,mel,histo,\n"
    b"HAM_2,ISIC_1,nv,histo,45.0\n"
)
SHAPES = {1: (96, 64), 2: (64, 64), 3: (20, 30), 4: (128, 128)}


def photos(folder, form="PNG", numbers=(1, 2, 3, 4), shapes=SHAPES):
    suffix = {"PNG": "png", "JPEG": "jpg"}[form]
    return {
        f"{folder}ISIC_{n}.{suffix}": small.encoded(small.picture(n, *shapes[n]), form)
        for n in numbers
    }


def refused(folder, **options):
    with pytest.raises(UserError) as error:
        isic(str(folder), **options)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize("below", ["", "train/", "jpeg/train/"])
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_siim_images_of_any_shape_get_one_size_and_their_patients(tmp_path, below, form):
    data = isic(small.write(tmp_path, {**photos(below, form), "train.csv": SIIM}))
    assert (data.name, data.kind) == ("isic", "image")
    assert data.features.shape == (4, 64, 64, 3)
    assert data.labels.tolist() == [0, 1, 0, 0]
    assert data.groups[0] == data.groups[1]
    assert len(set(data.groups.tolist())) == 3  # a patient who is not told is a group of its own
    if form == "PNG":
        np.testing.assert_array_equal(data.features[1], small.picture(2, 64, 64))
        means = small.picture(4, 128, 128).reshape(64, 2, 64, 2, 3).mean((1, 3))
        np.testing.assert_allclose(data.features[3], means, atol=1)


def test_patients_who_are_not_told_are_each_a_group_of_their_own(tmp_path):
    table = SIIM.replace(b"ISIC_3,IP_2", b"ISIC_3,")
    data = isic(small.write(tmp_path, {**photos(""), "train.csv": table}), size=4)
    assert data.groups[0] == data.groups[1]
    assert len(set(data.groups.tolist())) == 3


def test_ham10000_is_melanoma_or_not_in_the_table_s_order_with_its_lesions(tmp_path):
    files = {
        **photos("HAM10000_images_part_1/", numbers=(1, 2)),
        **photos("HAM10000_images_part_2/", numbers=(3, 4)),
        "HAM10000_metadata": HAM,
    }
    data = load("ham10000", small.write(tmp_path, files), {"size": 8})
    assert data.name == "ham10000"
    assert data.labels.tolist() == [0, 0, 1, 0]
    assert data.groups.tolist() == [2, 2, 0, 1]
    assert isic(str(tmp_path), groups=False).groups is None
    assert TABLE["ham10000"] is TABLE["isic"]


def test_images_may_lie_in_archives_and_more_of_them_than_the_table_names(tmp_path):
    files = {
        "a.zip": small.zipped(photos("x/", numbers=(1, 2))),
        "b.tar.gz": small.tar(photos("", numbers=(3, 4))),
        "train.csv": SIIM.rsplit(b"ISIC_4", 1)[0],
        "test.csv": b"image_name,patient_id\nISIC_4,IP_1\n",
        "sample_submission.csv": b"image_name,target\nISIC_4,0\n",
    }
    data = isic(small.write(tmp_path, files))
    np.testing.assert_array_equal(data.features[1], small.picture(2, 64, 64))
    assert "read 3 of 4 images" in data.notes[0]


def test_gray_is_the_luma_of_the_colors(tmp_path):
    folder = small.write(tmp_path, {**photos(""), "train.csv": SIIM})
    gray = isic(folder, gray=True)
    assert gray.features.shape == (4, 64, 64)
    luma = small.picture(2, 64, 64) @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(gray.features[1], luma, atol=1)


def test_rows_are_spread_over_the_file_and_another_column_may_be_the_target(tmp_path):
    table = SIIM.replace(b"target", b"sick")
    folder = small.write(tmp_path, {**photos(""), "train.csv": table})
    whole = isic(folder, target="sick", size=20)
    assert whole.labels.tolist() == [0, 1, 0, 0]
    few = isic(folder, target="sick", rows=3, size=20)
    np.testing.assert_array_equal(few.features, whole.features[:3])
    assert few.groups.tolist() == [1, 1, 0]
    assert "2 rows: all labels are 0" in refused(folder, target="sick", rows=2)


def test_size_0_keeps_the_files_own_size_which_must_be_one(tmp_path):
    same = dict.fromkeys(SHAPES, (24, 16))
    folder = small.write(tmp_path, {**photos("", shapes=same), "train.csv": SIIM})
    assert isic(folder, size=0).features.shape == (4, 24, 16, 3)
    small.write(tmp_path, photos("", numbers=(3,)))
    assert "ISIC_3.png is 30x20 pixels and not 16x24" in refused(folder, size=0)


def test_a_very_large_jpeg_is_near_its_mean(tmp_path):
    slope = np.linspace(0, 255, 1200).astype(np.uint8)
    large = np.repeat(np.repeat(slope[None, :, None], 900, 0), 3, 2)
    files = {**photos("", numbers=(2, 3, 4)), "ISIC_1.jpg": small.encoded(large, "JPEG")}
    data = isic(small.write(tmp_path, {**files, "train.csv": SIIM}), size=10)
    np.testing.assert_allclose(data.features[0, 5, :, 0], slope.reshape(10, 120).mean(1), atol=2)


def save(folder, **changes):
    arrays = {
        "x": np.stack([small.picture(n, 16, 16) for n in range(4)]),
        "y": np.array([0, 1, 0, 1], np.uint8),
        "lesion_id": np.array(list("baac")),
    }
    np.savez(folder / "a.npz", **{k: v for k, v in {**arrays, **changes}.items() if v is not None})
    return str(folder)


def test_an_npz_keeps_its_size_or_gets_another(tmp_path):
    own = isic(save(tmp_path), size=0)
    np.testing.assert_array_equal(own.features[2], small.picture(2, 16, 16))
    assert own.groups.tolist() == [1, 0, 0, 2]
    assert own.name == "ham10000"
    larger = isic(str(tmp_path))
    assert larger.features.shape == (4, 64, 64, 3)
    assert "16x16 pixels resized to 64x64" in larger.notes[1]
    assert isic(str(tmp_path), size=8, gray=True).features.shape == (4, 8, 8)
    patients = isic(save(tmp_path, lesion_id=None, patient_id=np.array([5, 5, 3, 4])))
    assert patients.name == "isic"
    assert patients.groups.tolist() == [2, 2, 0, 1]


@pytest.mark.parametrize("file", ["train.csv", "ISIC_2020_Training_GroundTruth.csv"])
def test_file_chooses_between_tables(tmp_path, file):
    other = "ISIC_2020_Training_GroundTruth.csv"
    small.write(
        tmp_path,
        {
            **photos(""),
            "train.csv": SIIM,
            other: SIIM.replace(b"IP_7,male,benign,0", b"IP_7,male,benign,1"),
        },
    )
    data = isic(str(tmp_path), size=4, file=file)
    assert data.labels.tolist() == [int(file != "train.csv"), 1, 0, 0]
    assert f"by {file}" in data.notes[0]


def test_second_copies_of_an_image_are_left_out_and_counted(tmp_path):
    # as in Kaggle's HAM10000, whose two parts lie in four folders
    files = {**photos("HAM10000_images_part_1/"), **photos("ham10000_images_part_1/")}
    data = isic(small.write(tmp_path, {**files, "a.csv": SIIM}), size=4)
    assert data.labels.tolist() == [0, 1, 0, 0]
    assert data.notes[0].startswith("read 4 of 4 images")
    assert data.notes[1] == "4 second copies of an image left out"


GOOD = photos("")
CASES = {
    "nothing": ({}, {}, "(no CSV file has a column 'target', or dx)"),
    "no table": (GOOD, {}, "no CSV file has"),
    "two tables": (
        {**GOOD, "a.csv": SIIM, "b.csv": HAM},
        {},
        "holds a.csv, b.csv: name one by config.data.options.file.",
    ),
    "no such file": ({**GOOD, "a.csv": SIIM}, {"file": "b.csv"}, "b.csv is not a file"),
    "a file of no labels": (
        {**GOOD, "a.csv": SIIM, "test.csv": b"image_name\n"},
        {"file": "test.csv"},
        "test.csv has no column 'target' (or dx) beside image_name or image_id: correct",
    ),
    "a file that is a number": ({**GOOD, "a.csv": SIIM}, {"file": 3}, "file=3 must be a name"),
    "no such column": (
        {**GOOD, "a.csv": HAM},
        {"target": "sick"},
        "no CSV file has a column 'sick'",
    ),
    "an image missing": (
        {**photos("", numbers=(1, 2, 3)), "a.csv": SIIM},
        {},
        "row 4 names the image 'ISIC_4'",
    ),
    "a stray image beside archives": (
        {"a.zip": small.zipped(GOOD), "ISIC_2.png": GOOD["ISIC_2.png"], "a.csv": SIIM},
        {},
        "archives not read, since images lie beside them",
    ),
    "another image of one name": (
        {**GOOD, "b/ISIC_2.png": GOOD["ISIC_3.png"], "a.csv": SIIM},
        {},
        "b/ISIC_2.png have one name and are not the same file: remove the wrong one",
    ),
    "a row twice": (
        {**GOOD, "a.csv": SIIM.replace(b"ISIC_2", b"ISIC_1")},
        {},
        "rows 1 and 2 both name",
    ),
    "no label": ({**GOOD, "a.csv": SIIM.replace(b"t,1", b"t,x")}, {}, "target is 'x'"),
    "no diagnosis": ({**GOOD, "a.csv": HAM.replace(b"mel", b"m")}, {}, "dx is 'm'"),
    "a column twice": (
        {**GOOD, "a.csv": SIIM.replace(b"benign_malignant", b"target")},
        {},
        "two columns are named 'target'",
    ),
    "one class": ({**GOOD, "a.csv": SIIM.replace(b"t,1", b"t,0")}, {}, "at least two classes"),
    "a cut table": ({**GOOD, "a.csv": SIIM[:-20]}, {}, "row 4 has 1 values and not 5"),
    "a table without rows": ({**GOOD, "a.csv": SIIM[:51]}, {}, "has no row"),
    "a table that is no text": ({**GOOD, "a.csv": b"\xff\xfe"}, {}, "no CSV file in UTF-8"),
    "a folder for a table": ({**GOOD, "a.csv/b": b""}, {}, "is not a file"),
    "no image": ({**GOOD, "ISIC_1.png": b"x", "a.csv": SIIM}, {}, "ISIC_1.png cannot be read"),
    "16 bits": (
        {
            **GOOD,
            "ISIC_1.png": small.encoded(np.zeros((9, 9), np.uint16)),
            "a.csv": SIIM,
        },
        {},
        "more than 8 bits",
    ),
    "too much": (
        {**GOOD, "a.csv": SIIM},
        {"max_bytes": 49_151},
        "4x64x64x3 values take 49,152 bytes, more than 49,151: set rows",
    ),
    "a wrong size": ({}, {"size": 6.5}, "size=6.5"),
    "a size too large": ({}, {"size": 10**30}, "must be an integer from 0 to 4,096"),
    "a wrong gray": ({}, {"gray": 1}, "gray=1 must be True or False"),
}


def test_blank_lines_of_the_table_are_no_rows(tmp_path):
    table = SIIM.replace(b"ISIC_3", b"\r\nISIC_3") + b"\r\n\r\n"
    data = isic(small.write(tmp_path, {**GOOD, "a.csv": table}), size=4)
    assert data.labels.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("case", CASES)
def test_a_bad_folder_is_one_line(tmp_path, case):
    files, options, message = CASES[case]
    small.write(tmp_path, files)
    assert message in refused(tmp_path, **options)


def test_a_decompression_bomb_is_refused_before_it_is_decoded(tmp_path):
    small.write(tmp_path, {**GOOD, "a.csv": SIIM})
    import struct
    import zlib

    png = bytearray(small.encoded(small.picture(0, 8, 8)))
    png[16:24] = struct.pack(">II", 12_000, 12_000)
    png[29:33] = struct.pack(">I", zlib.crc32(bytes(png[12:29])))
    (tmp_path / "ISIC_1.png").write_bytes(bytes(png))
    assert "12000x12000 pixels" in refused(tmp_path)
    png[16:24] = struct.pack(">II", 60_000, 60_000)
    png[29:33] = struct.pack(">I", zlib.crc32(bytes(png[12:29])))
    (tmp_path / "ISIC_1.png").write_bytes(bytes(png))
    assert "DecompressionBomb" in refused(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros((4, 8, 8), np.uint8)}, "uint8 [rows, height, width, 3]"),
        ({"x": np.full((4, 8, 8, 3), np.nan)}, "is float64"),
        ({"y": np.array([0, 1, 2, 1])}, "labels must be 0..1"),
        ({"y": None}, "no array 'y'"),
        ({"lesion_id": np.array([None] * 4)}, "never opened"),
    ],
)
def test_a_bad_npz_is_one_line(tmp_path, changes, message):
    assert message in refused(save(tmp_path, **changes))


@few_or_many
@pytest.mark.parametrize("form", ["siim", "ham", "npz"])
def test_damage_to_any_file_loads_or_is_one_line(tmp_path, form, examples):
    if form == "npz":
        save(tmp_path)
    else:
        shapes = dict.fromkeys(SHAPES, (12, 10))
        table = SIIM if form == "siim" else HAM
        small.write(tmp_path, {**photos("", "JPEG", shapes=shapes), "train.csv": table})

    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def check(data):
        damaged(data, isic, tmp_path, size=8)

    check()


def test_the_real_lesions_have_their_balance():
    folder = str(real_data("ham10000"))
    data = isic(folder, size=0)
    assert data.features.shape == (5984, 32, 32, 3)
    assert data.labels.sum() == 491
    assert len(np.unique(data.groups)) == 5984
    some = isic(folder, size=16, gray=True, rows=1000)
    assert some.features.shape == (1000, 16, 16)
    assert 50 < some.labels.sum() < 120
