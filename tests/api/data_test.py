"""``launch.data``: what it says of a data set, and what it refuses."""

from vfljax.datasets import TABLE
from vfljax.datasets.core import checksum


def test_every_data_set_is_listed_with_its_options(launch):
    said = launch("data").stdout
    for name in TABLE:
        assert f"\n{name}: " in f"\n{said}"
    assert "    label (needed)" in said


def test_it_says_what_a_data_set_is_and_who_owns_what(launch):
    said = launch("data", "--dataset=digits", "--passive=2", "--shares=2,1,1").stdout
    for line in (
        "digits: 1,797 rows of kind 'image'",
        "0: 178 (9.91%)",
        "passive party 0: image, 8 x 4 a row: rows 0-7, columns 0-3",
        "label party: image, 8 x 2 a row: rows 0-7, columns 6-7",
        f"sha256 of the values: {checksum(TABLE['digits'](''))}",
    ):
        assert line in said


def test_it_says_what_it_did_to_each_column_of_a_table(launch, tmp_path):
    path, flags = tmp_path / "own.data", ["--option=label=y", "--option=drop=a,b"]
    path.write_text("a;b;c;d;e;y\n1;2;2020-01-01;?;0,5;u\n1;2;2020-01-03;7;2,5;v\n1;2;;8;1;u\n")
    flags += ['--options={"decimal": ",", "header": 0}']
    said = launch("data", "--dataset=table", f"--data_dir={path}", *flags).stdout
    for line in (
        "a       left out                         named in drop=",
        "c       date      1 (33.3%)              days since 2020-01-01",
        "y       label                2",
        "  0 u: 2 (66.67%)",
    ):
        assert line in said


def test_it_prepares_a_copy_that_is_the_data_set(launch, refused, tmp_path):
    out = tmp_path / "new"
    done = launch("data", "--dataset=breast_cancer", f"--prepare={out}")
    again = launch("data", "--dataset=prepared", f"--data_dir={out}")
    total = f"sha256 of the values: {checksum(TABLE['breast_cancer'](''))}"
    for said in (done.stdout, again.stdout):
        assert "prepared by the loader 'breast_cancer' with no options" in said
        assert total in said
    assert "its checksum is right" in again.stdout
    assert "is not overwritten" in refused("data", "--dataset=digits", f"--prepare={out}")
    spec = out / "vfljax.json"
    spec.write_text(spec.read_text().replace('"num_classes": 2', '"num_classes": 2147483647'))
    changed = launch("data", "--dataset=prepared", f"--data_dir={out}")
    assert (changed.returncode, changed.stdout) == (2, "")
    assert "vfljax.json is not what was recorded" in changed.stderr
