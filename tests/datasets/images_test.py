"""Finding and decoding images in folders and archives, apart from any data set."""

import concurrent.futures
import io
import pathlib
import tarfile
import threading
import zipfile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from tests.datasets import small
from vfljax.datasets import archives, images
from vfljax.datasets.given import spread
from vfljax.errors import UserError

PNG = small.encoded(small.picture(0, 4, 6))


def refused(what, *args, **options):
    with pytest.raises(UserError) as error:
        what(*args, **options)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def entries_of(folder):
    return images.find(folder).images


def found(folder):
    return ["/".join(image.parts) for image in entries_of(folder)]


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


@pytest.mark.parametrize("to", ["../..", "..", ".", "../../.."])
def test_a_link_to_a_folder_above_it_is_refused(tmp_path, to):
    small.write(tmp_path / "own", {"train/cat/1.png": PNG, "train/dog/2.png": PNG})
    (tmp_path / "own/train/cat/loop").symlink_to(to)
    said = refused(entries_of, tmp_path / "own")
    assert "loop leads back to" in said
    assert "remove that link" in said


def test_two_links_to_each_other_s_folders_are_refused(tmp_path):
    small.write(tmp_path, {"own/a/1.png": PNG, "other/2.png": PNG})
    (tmp_path / "own/a/b").symlink_to(tmp_path / "other")
    (tmp_path / "other/a").symlink_to(tmp_path / "own/a")
    assert "b/a leads back to" in refused(entries_of, tmp_path / "own")


def test_links_to_folders_of_images_elsewhere_are_followed(tmp_path):
    small.write(tmp_path, {"own/dog/1.png": PNG, "cats/2.png": PNG, "own/dogs/3.png": PNG})
    (tmp_path / "own/cat").symlink_to(tmp_path / "cats")
    (tmp_path / "own/zebra").symlink_to("dogs")
    (tmp_path / "linked").symlink_to("own")
    names = ["cat/2.png", "dog/1.png", "dogs/3.png", "zebra/3.png"]
    assert found(tmp_path / "own") == found(tmp_path / "linked") == names


def test_what_is_no_image_is_named_and_not_by_an_address_in_memory(tmp_path):
    small.write(tmp_path, {"1.png": b"no image at all"})
    said = refused(images.pixels, entries_of(tmp_path))
    assert str(tmp_path / "1.png") in said
    assert "object at" not in said
    assert "<" not in said


def test_links_in_an_archive_are_no_files(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        link = tarfile.TarInfo("a/1.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert archives.members(tmp_path / "a.tar") == []


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


def test_another_format_under_a_png_name_is_refused(tmp_path):
    small.write(tmp_path, {"a.png": small.encoded(small.picture(0, 4, 6), "GIF")})
    assert "a.png cannot be read" in refused(images.pixels, entries_of(tmp_path))


def test_an_array_beyond_the_limit_is_refused_with_its_size(tmp_path):
    small.write(tmp_path, {"a.png": PNG, "b.png": PNG})
    entries = entries_of(tmp_path)
    assert images.pixels(entries, max_bytes=144).shape == (2, 4, 6, 3)
    assert "2x4x6x3 values take 144 bytes" in refused(images.pixels, entries, max_bytes=143)


@pytest.mark.parametrize("options", [{"size": 9}, {"shape": (4, 6)}, {}])
def test_the_array_is_refused_before_anything_is_decoded(tmp_path, monkeypatch, options):
    small.write(tmp_path, {"a.png": PNG, "b.png": PNG})
    decoded = []
    monkeypatch.setattr(images, "_image", lambda *args: decoded.append(args))
    said = refused(images.pixels, entries_of(tmp_path), max_bytes=100, **options)
    assert "more than 100: set rows" in said
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
    said = refused(images.pixels, entries_of(tmp_path))
    assert words in said
    assert "damaged" not in said


@pytest.mark.parametrize("color", [0, 2, 6])
def test_16_bits_a_channel_are_refused_in_gray_and_color(tmp_path, color):
    small.write(tmp_path, {"a.png": small.png16(4, 6, color)})
    assert "more than 8 bits a pixel" in refused(images.pixels, entries_of(tmp_path))


def test_an_unreadable_file_or_folder_is_named(tmp_path, monkeypatch):
    small.write(tmp_path, {"a.png": PNG})
    entries = entries_of(tmp_path)

    def deny(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "read_bytes", deny)
    assert "a.png may not be read: check its permissions" in refused(images.pixels, entries)
    monkeypatch.setattr(pathlib.Path, "iterdir", deny)
    assert str(tmp_path) in refused(entries_of, tmp_path)


def test_a_name_with_a_line_break_still_gives_one_line(tmp_path):
    small.write(tmp_path, {"a.zip": small.zipped({"a\nb\x1b[2J\u2028.png": b"x"})})
    assert "a b [2J .png cannot be read" in refused(images.pixels, entries_of(tmp_path))


def test_an_archive_with_one_name_twice_is_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("1.png"))
    assert "holds '1.png' twice" in refused(entries_of, tmp_path)


def test_a_tar_file_whose_sizes_lead_back_ends_in_one_line(tmp_path):
    info = tarfile.TarInfo("1.png")
    info.size = -512
    block = info.tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "a.tar").write_bytes(block + bytes(10_240))
    assert "a.tar" in refused(entries_of, tmp_path)


def test_an_encrypted_zip_is_one_line(tmp_path):
    content = bytearray(small.zipped({"1.png": PNG}))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        start = archive.start_dir
    content[6] |= 1
    content[start + 8] |= 1
    (tmp_path / "a.zip").write_bytes(bytes(content))
    assert "encrypted" in refused(images.pixels, entries_of(tmp_path))


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


def test_pixels_in_memory_change_as_those_of_files_do(tmp_path):
    arrays = np.stack([small.picture(k, 20, 30) for k in range(3)])
    small.write(tmp_path, {f"{k}.png": small.encoded(array) for k, array in enumerate(arrays)})
    entries = entries_of(tmp_path)
    for options in ({"size": 10}, {"size": 25, "gray": True}, {"gray": True}, {}):
        np.testing.assert_array_equal(
            images.changed(arrays, **options), images.pixels(entries, **options)
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
