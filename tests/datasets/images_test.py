"""Finding and decoding images in folders and archives, apart from any data set."""

import concurrent.futures
import io
import tarfile
import threading
import zipfile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from tests.datasets import small
from tests.datasets.refusals import refused
from vfljax.datasets import files, images
from vfljax.datasets.core import spread

X = small.picture(0, 4, 6)
PNG = small.encoded(X)


def entries_of(folder):
    return images.find(folder).images


def found(folder):
    return ["/".join(image.parts) for image in entries_of(folder)]


def read(folder, **options):
    return images.pixels(entries_of(folder), **options)


def test_images_are_found_by_suffix_of_any_case_in_order_and_hidden_ones_are_not(tmp_path):
    names = ["b/2.PNG", "b/10.jpeg", "a/x/1.Jpg", "c.png", "b/._2.png", ".d/1.png", "b/notes.txt"]
    small.write(tmp_path, dict.fromkeys(names, b""))
    assert found(tmp_path) == ["a/x/1.Jpg", "b/10.jpeg", "b/2.PNG", "c.png"]


def test_archives_count_only_where_the_folder_holds_no_image(tmp_path):
    inner = {"./a/1.png": PNG, "__MACOSX/a/1.png": PNG, "../2.png": PNG, "a/b.txt": b""}
    small.write(tmp_path, {"x.zip": small.zipped(inner), "y.tgz": small.tar({"z/3.jpg": PNG})})
    assert found(tmp_path) == ["a/1.png", "z/3.jpg"]
    assert images.find(tmp_path).notes == ()
    small.write(tmp_path, {"b/1.png": PNG})
    assert found(tmp_path) == ["b/1.png"]
    (note,) = images.find(tmp_path).notes
    assert "archives not read" in note
    assert "b/1.png): x.zip, y.tgz" in note


@pytest.mark.parametrize("to", ["../..", "..", ".", "../../..", "the other's"])
def test_a_link_to_a_folder_above_it_is_refused(tmp_path, to):
    small.write(tmp_path, {"own/train/cat/1.png": PNG, "other/2.png": PNG})
    link = tmp_path / "own/train/cat/loop"
    link.symlink_to(tmp_path / "other" if to == "the other's" else to)
    (tmp_path / "other/back").symlink_to(tmp_path / "own/train/cat")
    said = refused(entries_of, tmp_path / "own")
    assert " leads back to" in said
    assert "remove that link" in said


def test_links_to_folders_of_images_elsewhere_are_followed(tmp_path):
    small.write(tmp_path, {"own/dog/1.png": PNG, "cats/2.png": PNG, "own/dogs/3.png": PNG})
    (tmp_path / "own/cat").symlink_to(tmp_path / "cats")
    (tmp_path / "own/zebra").symlink_to("dogs")
    (tmp_path / "linked").symlink_to("own")
    names = ["cat/2.png", "dog/1.png", "dogs/3.png", "zebra/3.png"]
    assert found(tmp_path / "own") == found(tmp_path / "linked") == names


def test_links_in_an_archive_are_no_files(tmp_path):
    link = tarfile.TarInfo("a/1.png")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    small.write(tmp_path, {"a.tar": tarred(link)})
    assert files.members(tmp_path / "a.tar") == []


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "1"])
def test_every_8_bit_png_becomes_rgb_or_gray(tmp_path, mode):
    source = Image.fromarray(small.picture(1, 4, 6)).convert(mode)
    stream = io.BytesIO()
    source.save(stream, "PNG")
    small.write(tmp_path, {"a.png": stream.getvalue()})
    entries = entries_of(tmp_path)
    rgb, gray = images.pixels(entries), images.pixels(entries, gray=True)
    np.testing.assert_array_equal(rgb[0], np.asarray(source.convert("RGB")))
    assert gray.shape == (1, 4, 6)
    np.testing.assert_array_equal(images.shapes(entries), [[4, 6]])


def test_many_images_keep_their_order_whatever_the_archive_s(tmp_path):
    arrays = [small.picture(k, 2, 2) for k in range(300)]  # more than are decoded at once
    files = {f"{k:03}.png": small.encoded(array) for k, array in enumerate(arrays)}
    small.write(tmp_path, {"a.tar": small.tar(dict(reversed(files.items())), "w")})
    entries = entries_of(tmp_path)
    np.testing.assert_array_equal(images.pixels(entries), arrays)
    np.testing.assert_array_equal(images.pixels(entries[::-7]), arrays[::-7])


@pytest.mark.parametrize("options", [{"size": 9}, {"shape": (4, 6)}, {}])
def test_the_array_is_refused_with_its_size_before_anything_is_decoded(
    tmp_path, monkeypatch, options
):
    small.write(tmp_path, {"a.png": PNG, "b.png": PNG})
    assert read(tmp_path, max_bytes=486, **options).nbytes in (144, 486)
    decoded = []
    monkeypatch.setattr(images, "_image", lambda *args: decoded.append(args))
    said = refused(read, tmp_path, max_bytes=143, **options)
    assert "x3 values take" in said
    assert "more than 143: set rows" in said
    assert not decoded


def test_no_more_files_are_held_than_the_group_s_bytes_allow():
    files = ((at, bytes(images.BYTES_AT_ONCE // 4)) for at in range(9))
    assert [[at for at, _ in group] for group in images._groups(files)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8],
    ]
    one = iter([(0, bytes(images.BYTES_AT_ONCE + 1)), (1, b"")])
    assert [len(group) for group in images._groups(one)] == [1, 1]
    assert [len(group) for group in images._groups((k, b"") for k in range(300))] == [256, 44]


def test_after_a_fault_nothing_more_is_decoded(tmp_path, monkeypatch):
    other = small.encoded(small.picture(0, 5, 6))
    small.write(tmp_path, {f"{k:03}.png": other if k == 1 else PNG for k in range(200)})
    entries = entries_of(tmp_path)
    begun, real = [], images._image

    def slow(data, name, *args):
        begun.append(name)
        if len(begun) > 4:  # until the fault was told, so that nothing depends on speed
            told.wait(60)
        return real(data, name, *args)

    told = threading.Event()
    shutdown = concurrent.futures.ThreadPoolExecutor.shutdown

    def telling(pool, *args, **options):
        shutdown(pool, wait=False, cancel_futures=options.get("cancel_futures", False))
        told.set()
        shutdown(pool)

    monkeypatch.setattr(images, "_image", slow)
    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "shutdown", telling)
    assert "001.png is 6x5 pixels and not 6x4" in refused(images.pixels, entries)
    assert len(begun) <= 4 + images.THREADS


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "does not fit in memory"),
        (ModuleNotFoundError("No module named 'PIL'", name="PIL"), "needs the package PIL"),
    ],
)
def test_no_memory_and_no_package_are_not_called_damage(tmp_path, monkeypatch, error, words):
    small.write(tmp_path, {"a.png": PNG})

    def fail(*args, **options):
        raise error

    monkeypatch.setattr(Image, "open", fail)
    said = refused(read, tmp_path)
    assert words in said
    assert "damaged" not in said


def encrypted():
    content = bytearray(small.zipped({"1.png": PNG}))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        start = archive.start_dir
    content[6] |= 1
    content[start + 8] |= 1
    return bytes(content)


def tarred(*members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for member in members:
            archive.addfile(member)
    return stream.getvalue()


def leading_back():
    info = tarfile.TarInfo("1.png")
    info.size = -512
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(10_240)


BAD = {
    "no image": ({"1.png": b"no image at all"}, "1.png cannot be read"),
    "another format": ({"a.png": small.encoded(X, "GIF")}, "a.png cannot be read"),
    "16 bits, gray": ({"a.png": small.png16(4, 6, 0)}, "more than 8 bits a pixel"),
    "16 bits, RGB": ({"a.png": small.png16(4, 6, 2)}, "more than 8 bits a pixel"),
    "16 bits, RGBA": ({"a.png": small.png16(4, 6, 6)}, "more than 8 bits a pixel"),
    "a line break": (
        {"a.zip": small.zipped({"a\nb\x1b[2J\u2028.png": b"x"})},
        "a b\ufffd[2J .png cannot",
    ),
    "one name twice": ({"a.tar": tarred(*2 * [tarfile.TarInfo("1.png")])}, "holds '1.png' twice"),
    "sizes that lead back": ({"a.tar": leading_back()}, "a.tar"),
    "an encrypted zip": ({"a.zip": encrypted()}, "encrypted"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_image_is_named_and_not_by_an_address_in_memory(tmp_path, case):
    files, message = BAD[case]
    said = refused(read, small.write(tmp_path, files) and tmp_path)
    assert message in said
    assert str(tmp_path) in said
    assert "object at" not in said
    assert "<" not in said or "ZipInfo" in said


def test_an_image_without_a_byte_is_named():
    empty = images.Image((), "cifar10/3.0.2, train row 1", data=b"")
    refused(images.pixels, [empty], match="train row 1 cannot be read")


def test_an_image_that_grows_is_bilinear_and_one_that_shrinks_a_mean_of_what_is_covered(tmp_path):
    x = np.zeros((4, 6, 3), np.uint8)
    x[:, 3:] = 240
    small.write(tmp_path, {"a.png": small.encoded(x)})
    entries = entries_of(tmp_path)
    (grown,) = images.pixels(entries, size=12)
    # 2 pixels of the result a pixel across: between the two in the middle, quarters of the step
    np.testing.assert_allclose(grown[0, :, 0], [0] * 5 + [60, 180] + [240] * 5, atol=1)
    (shrunk,) = images.pixels(entries, size=2)
    np.testing.assert_allclose(shrunk[:, :, 0], [[0, 240]] * 2, atol=1)
    y = np.zeros((4, 6, 3), np.uint8)
    y[2:] = 240
    small.write(tmp_path, {"a.png": small.encoded(y)})
    (mixed,) = images.pixels(entries, size=5)  # wider and less high than 5: bilinear
    np.testing.assert_allclose(mixed[:, 0, 0], [0, 0, 120, 240, 240], atol=1)


def test_copies_of_one_key_are_left_out_and_must_be_equal(tmp_path):
    small.write(tmp_path, {"a/1.png": PNG, "b/1.png": PNG, "c/2.png": b"not read"})
    found = images.find(tmp_path, lambda image: image.parts[-1])
    assert ["/".join(image.parts) for image in found.images] == ["a/1.png", "c/2.png"]
    assert found.notes == ("1 second copies of an image left out",)
    assert len(images.find(tmp_path).images) == 3
    small.write(tmp_path, {"b/1.png": PNG + b"1"})
    said = refused(images.find, tmp_path, lambda image: image.parts[-1])
    assert "a/1.png and" in said
    assert "b/1.png have one name and are not the same file: remove the wrong one" in said


def test_the_same_image_in_two_archives_counts_once(tmp_path):
    both = {"a.zip": small.zipped({"x/1.png": PNG}), "b.tar": small.tar({"./x/1.png": PNG}, "w")}
    small.write(tmp_path, both)
    assert found(tmp_path) == ["x/1.png"]


def test_pixels_in_memory_change_as_those_of_files_do(tmp_path):
    arrays = np.stack([small.picture(k, 20, 30) for k in range(3)])
    small.write(tmp_path, {f"{k}.png": small.encoded(array) for k, array in enumerate(arrays)})
    entries = entries_of(tmp_path)
    for options in ({"size": 10}, {"size": 25, "gray": True}, {"gray": True}, {}):
        np.testing.assert_array_equal(
            images.pixels(arrays, **options), images.pixels(entries, **options)
        )


def test_rows_are_spread_evenly_within_each_class():
    one = np.zeros(10, int)
    assert spread(one, 0).tolist() == list(range(10))
    assert spread(one, 20).tolist() == list(range(10))
    assert spread(one, 4).tolist() == [0, 2, 5, 7]
    assert spread(np.array([0, 0, 0, 0, 1, 1]), 3).tolist() == [0, 2, 4]


@given(
    period=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    times=st.integers(1, 30),
    rows=st.integers(1, 240),
)
@example(period=[0, 1], times=50, rows=50)
def test_shares_of_the_classes_are_kept_in_periodic_files_too(period, times, rows):
    labels = np.tile(period, times)
    chosen = spread(labels, rows)
    assert len(chosen) == min(rows, len(labels))
    assert (np.diff(chosen) > 0).all()
    share = np.bincount(labels, minlength=4) * len(chosen) / len(labels)
    assert (np.abs(np.bincount(labels[chosen], minlength=4) - share) < 1).all()
