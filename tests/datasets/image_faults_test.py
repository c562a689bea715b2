"""Bad, cut and damaged files of image sets: each loads or is one line with its remedy."""

import io
import struct
import zipfile
import zlib

import numpy as np
import pytest

from tests.datasets import small
from tests.datasets.refusals import refused
from vfljax.datasets.bhi import bhi
from vfljax.datasets.cifar import NAMES10, cifar10, cifar100, cinic10
from vfljax.datasets.isic import isic
from vfljax.datasets.npz import npz

ARCHIVE = "cifar-10-binary.tar.gz"
BATCHES = small.binary10("")[0]
TRAIN, TEST = BATCHES["data_batch_1.bin"], BATCHES["test_batch.bin"]
FOLDERS = small.class_folders(("train", "test"), NAMES10)
CINIC = small.class_folders(("train", "valid", "test"), NAMES10)
HUNDRED = small.class_folders(("train", "test"), [f"{k:02}" for k in range(100)])
CAT = FOLDERS["train/cat/0000.png"]
GOOD = {**small.photos(), "a.csv": small.SIIM}
PHOTOS = small.photos()
PATCH = next(iter(small.PATCHES.values()))
X, Y = np.arange(4 * 5 * 6, dtype=np.uint8).reshape(4, 5, 6), np.array([0, 1, 2, 0])


def less(files, start):
    return {name: data for name, data in files.items() if not name.startswith(start)}


def table(old, new, content=small.SIIM):
    assert old in content
    return {**PHOTOS, "a.csv": content.replace(old, new)}


def arrays(**changes):
    return {"a.npz": small.archived(**{"x": X, "y": Y, **changes})}


def of(maker, **changes):
    return {"a.npz": maker(**changes)}


# (loader, files, options, message)
CASES = [
    (cifar10, {}, {}, "does not hold cifar10/<version>/ of TFDS"),
    (cifar10, {**BATCHES, "data_batch_1.bin": TRAIN[:-5]}, {}, "not whole rows of 3,073"),
    (cifar10, {**BATCHES, "data_batch_1.bin": b""}, {}, "has 0 bytes"),
    (cifar10, {**BATCHES, "test_batch.bin": b"\x0a" + TEST[1:]}, {}, "row 1 has label 10, not one"),
    (cifar10, {**BATCHES, "test_batch.bin": TEST[:3073]}, {}, "at least two classes"),
    *(
        (cifar10, files, {}, f"has no {name}: fetch")
        for name in BATCHES
        for left in [less(BATCHES, name)]
        for files in (left, {ARCHIVE: small.tar(left)})
    ),
    (cifar10, {"data_batch_1.bin/x": b"", "test_batch.bin": TEST}, {}, "is not a file"),
    (cifar10, {**BATCHES, "data_batch_6.bin": TRAIN}, {}, "data_batch_6.bin is no file of"),
    (cifar10, {ARCHIVE: small.tar({**BATCHES, "b/test_batch.bin": TEST})}, {}, "bin twice"),
    (cifar10, {"cifar-10-batches-py/data_batch_1": b"x"}, {}, "fetch the binary version"),
    (cifar10, {"cifar-10-python.tar.gz": b"x"}, {}, "never opened"),
    (cifar10, {ARCHIVE: b"no archive"}, {}, "the archive is damaged"),
    (cifar10, {f"{ARCHIVE}/x": b""}, {}, "holds no .bin file"),
    (cifar10, {ARCHIVE: small.tar({"a": b"b"})}, {}, "holds no .bin file"),
    (cifar10, less(FOLDERS, "test"), {}, "no image in test/<class>/"),
    (cifar10, less(FOLDERS, "test/bird"), {}, "test/bird holds no image"),
    (cifar10, {**FOLDERS, "train/lorry/1.png": b""}, {}, "train/lorry is none of"),
    (cifar10, {**FOLDERS, "train/cat/0000.png": b"x"}, {}, "train/cat/0000.png cannot be read"),
    (
        cifar10,
        {**FOLDERS, "train/cat/0000.png": small.encoded(small.picture(0, 32, 31))},
        {},
        "train/cat/0000.png is 31x32 pixels and not 32x32",
    ),
    (cifar10, {"a.png": b"", "b/a.png": b""}, {}, "does not hold cifar10"),
    (cifar10, {"all.zip": small.zipped(FOLDERS), "a.png": b""}, {}, "archives not read, since"),
    (
        cifar10,
        {"a.zip": small.zipped(FOLDERS), "b.zip": small.zipped({"test/cat/0000.png": CAT})},
        {},
        "b.zip: test/cat/0000.png have one name and are not the same file",
    ),
    (cifar10, small.class_folders(("train", "test"), NAMES10, 5), {"rows": 5}, "at least 50 for"),
    (cifar10, small.binary10()[0], {"rows": 5}, "rows must be at least 50 for every"),
    (cifar100, {}, {"rows": -1}, "rows=-1"),
    (cifar100, {}, {"labels": "both"}, "labels 'both': choose from fine, coarse"),
    (cifar100, small.class_folders(("train", "test"), "abc"), {}, "has 3 class folders and not 100"),
    (cifar100, less(HUNDRED, "train/99/"), {}, "train has 99 class folders and not 100"),
    (cifar100, FOLDERS, {"labels": "coarse"}, "fine labels only"),
    (cinic10, less(CINIC, "test/"), {}, "no image in test/<class>/"),
    (cinic10, less(CINIC, "valid/"), {}, "no image in valid/<class>/"),
    (cinic10, less(CINIC, "train/frog/"), {}, "train/frog holds no image"),
    (cinic10, {}, {}, "does not hold train/<class>/"),
    (cinic10, {}, {"validation": "no"}, "validation 'no': choose from drop, train, test"),
    (bhi, {}, {}, "does not hold <patient>/"),
    (bhi, {"1/0/a.png": PATCH}, {}, "not named as a patch"),
    (bhi, {"9/1/9_idx5_x1_y1_class0.png": PATCH}, {}, "lies in 9/1 and not in 9/0"),
    (bhi, {"8/0/9_idx5_x1_y1_class0.png": PATCH}, {}, "lies in 8/0 and not in 9/0"),
    (bhi, {"9_idx5_x1_y1_class0.png": PATCH}, {}, "lies in no folder"),
    (bhi, {**small.PATCHES, "9/0/9_idx5_x1_y1_class0.png": PATCH[:-600]}, {}, "cannot be read"),
    (bhi, {k: v for k, v in small.PATCHES.items() if "class0" in k}, {}, "at least two classes"),
    (bhi, {"9/0/9_idx5_x1_y1_class0.png": small.encoded(small.picture(0, 10, 50))}, {}, "no patch of 50x50"),
    (
        bhi,
        {**small.PATCHES, "copy/9/0/9_idx5_x51_y1001_class0.png": PATCH},
        {},
        "copy/9/0/9_idx5_x51_y1001_class0.png have one name and are not the same file",
    ),
    (bhi, small.PATCHES, {"patches": 9}, "set patches lower"),
    (bhi, {}, {"size": 4097}, "size=4097: give an integer from 1 to 4,096"),
    (bhi, {}, {"patches": 0}, "patches=0"),
    (bhi, small.PATCHES, {"max_bytes": 1000}, "more than 1,000: set rows"),
    (bhi, of(small.patches, patient=None), {}, "no array 'patient'"),
    (bhi, of(small.patches, x=np.zeros((6, 32, 32, 3), np.uint8)), {}, "uint8 [rows, 50, 50, 3]"),
    (bhi, of(small.patches, x=np.zeros((6, 50, 50, 3))), {}, "is float64"),
    (bhi, of(small.patches, y=np.array([0, 0, 1, 1, 0, 2])), {}, "labels must be 0..1"),
    (bhi, of(small.patches, y=np.array([0, 0, 1])), {}, "y is int64 of shape (3,): it must be of 6 rows"),
    (bhi, of(small.patches, patient=np.eye(6)), {}, "one number or word a row"),
    (isic, {}, {}, "(no CSV file has a column 'target', or dx)"),
    (isic, PHOTOS, {}, "no CSV file has"),
    (isic, {**GOOD, "b.csv": small.HAM}, {}, "a.csv, b.csv: name one by config.data.options.file."),
    (isic, GOOD, {"file": "b.csv"}, "b.csv is not a file"),
    (isic, {**GOOD, "b.csv": b"image_name\n"}, {"file": "b.csv"}, "b.csv has no column 'target' (or"),
    (isic, {**PHOTOS, "a.csv": small.HAM}, {"target": "sick"}, "no CSV file has a column 'sick'"),
    (isic, less(GOOD, "ISIC_4"), {}, "line 5 names the image 'ISIC_4'"),
    (
        isic,
        {"a.zip": small.zipped(PHOTOS), "ISIC_2.png": PHOTOS["ISIC_2.png"], "a.csv": small.SIIM},
        {},
        "archives not read, since images lie beside them",
    ),
    (
        isic,
        {**GOOD, "b/ISIC_2.png": PHOTOS["ISIC_3.png"]},
        {},
        "b/ISIC_2.png have one name and are not the same file: remove the wrong one",
    ),
    (isic, table(b"ISIC_2", b"ISIC_1"), {}, "line 3 names the image 'ISIC_1', as does line 2"),
    (isic, table(b"t,1", b"t,x"), {}, "line 3, column 'target' is 'x'"),
    (isic, table(b"mel", b"m", small.HAM), {}, "line 4, column 'dx' is 'm'"),
    (isic, table(b"benign_malignant", b"target"), {}, "two columns are named 'target'"),
    (isic, table(b"t,1", b"t,0"), {}, "at least two classes"),
    (isic, table(b"target", b"sick"), {"target": "sick", "rows": 2}, "2 rows: all labels are 0"),
    (isic, {**PHOTOS, "a.csv": small.SIIM[:-20]}, {}, "line 5 has 1 fields, not 5"),
    (isic, {**PHOTOS, "a.csv": small.SIIM[:51]}, {}, "has no row"),
    (isic, {**PHOTOS, "a.csv": b"\xff\xfe"}, {}, "is not UTF-8 text"),
    (isic, {**PHOTOS, "a.csv/b": b""}, {}, "is not a file"),
    (isic, {**GOOD, "ISIC_1.png": b"x"}, {}, "ISIC_1.png cannot be read"),
    (isic, GOOD, {"size": 0}, "ISIC_2.png is 64x64 pixels and not 64x96"),
    (isic, GOOD, {"max_bytes": 49_151}, "4x64x64x3 values take 49,152 bytes, more than 49,151: set"),
    (isic, {}, {"size": 10**30}, "give an integer from 0 to 4,096"),
    (isic, of(small.lesions, x=np.zeros((4, 8, 8), np.uint8)), {}, "uint8 [rows, height, width, 3]"),
    (isic, of(small.lesions, y=np.array([0, 1, 2, 1])), {}, "labels must be 0..1"),
    (isic, of(small.lesions, lesion_id=np.array([None] * 4)), {}, "never opened"),
    (npz, arrays(x=np.array([None] * 4)), {}, "never opened"),
    (npz, arrays(x=None, a=X), {}, "no array 'x': it has y, a"),
    (npz, arrays(x=Y), {}, "x is int64 of shape (4,): it must be numbers [rows"),
    (npz, arrays(x=X[:, :0]), {}, "of shape (4, 0, 6)"),
    (npz, arrays(x=np.zeros((4, 3, 8, 8))), {}, "channels last"),
    (npz, arrays(x=np.where(X == 50, np.nan, X)), {}, "x row 2 holds nan: numbers must be finite"),
    (npz, arrays(x=np.full((4, 2), np.inf)), {}, "row 1 holds inf: numbers must be finite"),
    (npz, arrays(x=np.full((4, 2), 1e300)), {}, "holds 1e+300"),
    (npz, arrays(x=np.array([["a"]] * 4)), {}, "must be numbers"),
    (npz, arrays(y=Y[:3]), {}, "y is int64 of shape (3,): it must be of 4 rows, as others are"),
    (npz, arrays(y=np.array(1)), {}, "y is int64 of shape ()"),
    (npz, arrays(x=X[:0], y=Y[:0]), {}, "x is uint8 of shape (0, 5, 6): it must be of some rows"),
    (npz, arrays(y=np.eye(4)), {}, "one integer a row"),
    (npz, arrays(y=np.array([0, 1, 5, 0])), {}, "label 5 and no row of label 2"),
    (npz, arrays(y=np.zeros(4)), {}, "at least two classes"),
    (npz, arrays(y=Y / 2), {}, "not an integer class"),
    (npz, arrays(g=np.array([1, np.nan, 2, 3])), {"groups": "g"}, "g row 2 is nan"),
    (npz, arrays(g=np.eye(4)), {"groups": "g"}, "one number or word a row"),
    (npz, arrays(), {"groups": "h"}, "no array 'h'"),
    (npz, {}, {}, "holds no file *.npz: give one"),
    (npz, {"a.npz": b"no zip"}, {}, "cannot be read"),
    (npz, {"a.npz": b"", "b.npz": b""}, {}, "holds a.npz, b.npz: give the path of one"),
    (npz, {"a.npz/b": b""}, {}, "holds no file *.npz"),
    (npz, arrays(), {"max_bytes": 100}, "take 120 bytes, more than 100"),
    # a number of NumPy's is shown as a number
    (npz, arrays(), {"max_bytes": np.int64(-1)}, "max_bytes=-1: give an integer"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("loader", "files", "options", "message"),
    [pytest.param(*case, id=f"{case[0].__name__}-{at}") for at, case in enumerate(CASES)],
)
def test_a_bad_folder_is_one_line_with_its_remedy(tmp_path, loader, files, options, message):
    folder = small.write(tmp_path, files)
    assert message in refused(loader, folder, **options)


def test_folders_that_are_none_are_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert "data.dir is empty" in refused(cifar10, "")
    assert "data.dir is empty" in refused(npz, "")
    assert "is a file" in refused(cifar10, str(tmp_path / "file"))
    assert "is not a folder" in refused(cifar10, str(tmp_path / "nowhere"))


def test_an_archive_cut_anywhere_is_refused(tmp_path):
    files = {f"data_batch_{n}.bin": bytes([n]) * 3073 for n in range(1, 6)}
    whole = small.tar({**files, "test_batch.bin": TEST[: 2 * 3073]})
    for end in [*range(0, len(whole), 211), *range(len(whole) - 12, len(whole))]:
        small.write(tmp_path, {ARCHIVE: whole[:end]})
        assert "fetch it again" in refused(cifar10, str(tmp_path))
    assert len(cifar10(small.write(tmp_path, {ARCHIVE: whole})).labels) == 7
    plain = small.tar(FOLDERS, "w")
    for end in (100, 512, 1024, 4096, 20_480, 51_200, len(plain) - 10_240):
        folder = small.write(tmp_path / "plain", {"all.tar": plain[:end]})
        assert "all.tar" in refused(cifar10, folder)


@pytest.mark.parametrize(("side", "said"), [(12_000, "12000x12000"), (60_000, "DecompressionBomb")])
def test_an_image_that_claims_too_much_is_refused_before_it_is_decoded(tmp_path, side, said):
    png = bytearray(small.encoded(small.picture(0, 8, 8)))
    png[16:24] = struct.pack(">II", side, side)
    png[29:33] = struct.pack(">I", zlib.crc32(bytes(png[12:29])))
    folder = small.write(tmp_path, {**GOOD, "ISIC_1.png": bytes(png)})
    assert said in refused(isic, folder)


@pytest.mark.parametrize("version", [1, 2])
def test_an_array_that_claims_too_much_is_refused_before_it_is_made(tmp_path, version):
    header = io.BytesIO()
    claimed = {"shape": (1 << 40, 64, 64), "fortran_order": False, "descr": "|u1"}
    write = {1: np.lib.format.write_array_header_1_0, 2: np.lib.format.write_array_header_2_0}
    write[version](header, claimed)
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
        archive.writestr("y.npy", b"")
    assert "more than 8,589,934,592" in refused(npz, str(tmp_path))
