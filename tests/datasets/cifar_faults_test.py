"""Bad, cut and damaged files of CIFAR: each loads or is one line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets import small
from tests.datasets.cifar_files import binary10, binary100, refused
from tests.datasets.fuzzing import damaged, few_or_many
from vfljax.datasets.cifar import NAMES10, cifar10, cifar100

GOOD = binary10("")[0]
TRAIN, TEST = GOOD["data_batch_1.bin"], GOOD["test_batch.bin"]
FOLDERS = small.class_folders(("train", "test"), NAMES10)
ARCHIVE = small.tar(binary10()[0])
CASES = {
    "nothing": ({}, "does not hold cifar10/<version>/ of TFDS"),
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
        "holds test_batch.bin twice",
    ),
    "pickles": ({"cifar-10-batches-py/data_batch_1": b"x"}, "fetch the binary version"),
    "a pickled archive": ({"cifar-10-python.tar.gz": b"x"}, "never opened"),
    "no archive": ({"cifar-10-binary.tar.gz": b"no archive"}, "the archive is damaged"),
    "a folder for an archive": ({"cifar-10-binary.tar.gz/x": b""}, "holds no .bin file"),
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
    "stray images alone": ({"a.png": b"", "b/a.png": b""}, "does not hold cifar10"),
    "a stray image beside archives": (
        {"all.zip": small.zipped(FOLDERS), "a.png": b""},
        "archives not read, since images lie beside them",
    ),
    "two archives that differ": (
        {
            "a.zip": small.zipped(FOLDERS),
            "b.zip": small.zipped({"test/cat/0000.png": FOLDERS["test/dog/0000.png"]}),
        },
        "b.zip: test/cat/0000.png have one name and are not the same file",
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
        ({"labels": "both"}, "must be one of fine, coarse"),
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


@few_or_many
@pytest.mark.parametrize("layout", FUZZED)
def test_damage_to_any_file_loads_or_is_one_line(tmp_path, layout, examples):
    loader, files = FUZZED[layout]
    small.write(tmp_path, files)
    loader(str(tmp_path))

    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def check(data):
        damaged(data, loader, tmp_path)

    check()
