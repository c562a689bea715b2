"""Writing: the old file or the whole new one; a full disk is one line, and nothing half written stays."""

import errno
import os

import pyarrow as pa
import pyarrow.csv
import pytest

from vfljax.errors import UserError
from vfljax.store import atomic

TABLE = pa.table({"x": list(range(300_000))})
FULL = "ValueError: Error writing local file: No space left on device [source locations='x']"


def fail(error):
    def raising(*arguments, **options):
        raise error

    return raising


def folder(path, need=0, write=lambda path: None):
    with atomic.replacing(path, need) as temporary:
        temporary.mkdir()
        write(temporary)


def half(path):
    """What a library leaves that fails in the middle of a folder."""
    (path / "0").write_bytes(b"half")
    raise ValueError(FULL)


WRITES = {
    "bytes": (os, "replace", lambda path: atomic.write_bytes(path, bytes(2_400_000))),
    "parquet": (atomic.pq, "write_table", lambda path: atomic.write_table(path, TABLE)),
    "csv": (pyarrow.csv, "write_csv", lambda path: atomic.write_table(path, TABLE)),
    "folder": (os, "replace", lambda path: folder(path, 2_400_000)),
}


@pytest.mark.parametrize(
    ("kind", "code"),
    [("bytes", errno.EDQUOT), *((kind, errno.ENOSPC) for kind in ("parquet", "csv", "folder"))],
)
def test_a_full_disk_is_one_line_with_the_path_and_the_need(tmp_path, monkeypatch, kind, code):
    module, name, write = WRITES[kind]
    path = tmp_path / f"new.{kind}"
    if kind != "folder":
        path.write_text("old")
    monkeypatch.setattr(module, name, fail(OSError(code, "full")))
    with pytest.raises(UserError) as error:
        write(path)
    line = str(error.value)
    assert line.startswith(f"{path} cannot be written: about 2.4 MB are needed and ")
    assert len(line.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ([] if kind == "folder" else [path.name])
    assert kind == "folder" or path.read_text() == "old"


def test_what_does_not_fit_is_refused_before_it_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "free_disk", lambda path: 1e6)
    with pytest.raises(UserError, match=r"about 2\.4 MB are needed and 1\.0 MB are free"):
        folder(tmp_path / "new", 2_400_000, fail(AssertionError("begun")))


def test_a_full_disk_that_a_library_says_in_words_is_the_same_line(tmp_path):
    with pytest.raises(UserError, match="new cannot be written: .* are free on this disk"):
        folder(tmp_path / "new", write=half)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "broken")])
def test_an_interrupt_or_another_fault_stays_what_it_is_and_leaves_nothing(tmp_path, error):
    with pytest.raises(type(error)), atomic.replacing(tmp_path / "file") as temporary:
        fail(error)(temporary.write_text("half"))
    with pytest.raises(type(error)):
        folder(tmp_path / "folder", write=fail(error))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("files", [(), ("rows",)])
def test_a_unit_that_another_process_has_made_stays(tmp_path, files):
    path = tmp_path / "unit"
    path.mkdir()
    for name in files:
        (path / name).touch()
    with atomic.replacing(path, keep=True) as folder:
        folder.mkdir()
        (folder / "new").touch()
    assert sorted(p.name for p in path.iterdir()) == list(files)
    assert list(tmp_path.iterdir()) == [path]
