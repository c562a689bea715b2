"""Finding and decoding images in folders and archives, apart from any data set."""

import gzip
import io

import numpy as np
import pytest
from PIL import Image

from tests.datasets import small
from tests.datasets.refusals import refused
from vfljax.datasets import files, images

X = small.picture(0, 4, 4)
PNG = small.encoded(X)


def found(folder):
    return ["/".join(image.parts) for image in images.find(folder)[0]]


def read(folder, side=4, **options):
    return images.pixels(images.find(folder)[0], side, **options)


def test_images_are_found_by_suffix_of_any_case_in_order_and_hidden_ones_are_not(tmp_path):
    inner = {"./a/1.png": PNG, "__MACOSX/a/1.png": PNG, "../2.png": PNG, "a/b.txt": b""}
    small.write(tmp_path, {"x.zip": small.zipped(inner), "y.tgz": small.tar({"z/3.jpg": PNG})})
    assert found(tmp_path) == ["a/1.png", "z/3.jpg"]
    names = ["b/2.PNG", "b/10.jpeg", "a/x/1.Jpg", "c.png", "b/._2.png", ".d/1.png", "b/notes.txt"]
    small.write(tmp_path, dict.fromkeys(names, b""))  # archives count where there is no image
    assert found(tmp_path) == ["a/x/1.Jpg", "b/10.jpeg", "b/2.PNG", "c.png"]


@pytest.mark.parametrize("mode", ["LA", "P"])
def test_every_8_bit_png_becomes_rgb_or_gray(tmp_path, mode):
    source = Image.fromarray(X).convert(mode)
    stream = io.BytesIO()
    source.save(stream, "PNG")
    small.write(tmp_path, {"a.png": stream.getvalue()})
    np.testing.assert_array_equal(read(tmp_path)[0], np.asarray(source.convert("RGB")))
    assert read(tmp_path, gray=True).shape == (1, 4, 4)
    np.testing.assert_array_equal(images.shapes(images.find(tmp_path)[0]), [[4, 4]])


@pytest.mark.parametrize("suffix", ["tar.gz", "zip"])
def test_images_keep_their_order_whatever_the_archive_s(tmp_path, suffix):
    arrays = [small.picture(k, 4, 4) for k in range(20)]
    packed = {f"{k:03}.png": small.encoded(array) for k, array in reversed([*enumerate(arrays)])}
    pack = small.zipped if suffix == "zip" else small.tar
    small.write(tmp_path, {f"a.{suffix}": pack(packed)})
    entries, _ = images.find(tmp_path)
    np.testing.assert_array_equal(images.pixels(entries[::-7], 4), arrays[::-7])


@pytest.mark.parametrize("end", [100, 512, 600, 1024, 1536, 2048])
def test_an_archive_cut_anywhere_is_refused(tmp_path, end):
    """At, and between, the blocks of its two members."""
    whole = small.tar({"1.png": PNG, "2.png": PNG}, "w")
    small.write(tmp_path, {"a.tar": whole[:end], "a.tar.gz": gzip.compress(whole[:end])})
    for name in ("a.tar", "a.tar.gz"):
        assert "fetch it again" in refused(files.archive_members, tmp_path / name)


BAD = {
    "another size": ({"a.png": small.encoded(small.picture(0, 4, 5))}, "5x4 pixels and not 4x4"),
    "a line break": ({"a.zip": small.zipped({"a\nb\x1b[2J\u2028.png": b"x"})}, "a b\ufffd[2J .png"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_image_is_named(tmp_path, case):
    content, message = BAD[case]
    small.write(tmp_path, content)
    said = refused(read, tmp_path)
    assert message in said
    assert str(tmp_path) in said


def test_an_image_that_grows_is_bilinear_and_one_that_shrinks_a_mean_of_what_is_covered(tmp_path):
    x = np.zeros((4, 6, 3), np.uint8)
    x[:, 3:] = 240
    small.write(tmp_path, {"a.png": small.encoded(x)})
    (grown,) = read(tmp_path, 12, resize=True)
    # 2 pixels of the result a pixel across: between the two in the middle, quarters of the step
    np.testing.assert_allclose(grown[0, :, 0], [0] * 5 + [60, 180] + [240] * 5, atol=1)
    (shrunk,) = read(tmp_path, 2, resize=True)
    np.testing.assert_allclose(shrunk[:, :, 0], [[0, 240]] * 2, atol=1)
    y = np.zeros((6, 4, 3), np.uint8)
    y[:, 1:] = 240
    (mixed,) = images.pixels(y[None], 5, resize=True)  # one side grows
    np.testing.assert_allclose(mixed[0, :, 0], [0, 168, 240, 240, 240], atol=1)


def test_a_very_large_jpeg_is_near_its_mean(tmp_path):
    slope = np.linspace(0, 255, 1200).astype(np.uint8)
    large = np.repeat(np.repeat(slope[None, :, None], 900, 0), 3, 2)
    small.write(tmp_path, {"1.jpg": small.encoded(large, "JPEG")})
    (shrunk,) = read(tmp_path, 10, resize=True)
    np.testing.assert_allclose(shrunk[5, :, 0], slope.reshape(10, 120).mean(1), atol=2)


def test_rows_are_cut_into_blocks(monkeypatch):
    monkeypatch.setattr(images, "ROWS", 4)
    rows, labels, test = np.arange(10), np.arange(10) % 2, np.arange(10) > 6
    blocks = [*images.blocks(lambda part: part + 1, rows, labels, test=test)]
    assert [len(block.labels) for block in blocks] == [4, 4, 2]
    assert np.concatenate([block.features for block in blocks]).tolist() == [*range(1, 11)]
    np.testing.assert_array_equal(np.concatenate([block.test for block in blocks]), test)
    assert all(block.groups is None for block in blocks)
