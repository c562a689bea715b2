"""``launch.data``: what it says of a data set, and what it refuses."""

from vfljax.datasets import TABLE
from vfljax.datasets.core import checksum


def test_launch_data_lists_every_data_set_with_its_options(launch):
    done = launch("data")
    assert done.returncode == 0
    for name in TABLE:
        assert f"\n{name}: " in f"\n{done.stdout}"
    assert "    label (needed)" in done.stdout


def test_launch_data_says_what_a_data_set_is_and_who_owns_what(launch):
    done = launch("data", "--dataset=digits", "--passive=2", "--shares=2,1,1")
    assert "digits: 1,797 rows of kind 'image'" in done.stdout
    assert "0: 178 (9.91%)" in done.stdout
    assert "passive party 0: image, 8 x 4 a row: rows 0-7, columns 0-3" in done.stdout
    assert "label party: image, 8 x 2 a row: rows 0-7, columns 6-7" in done.stdout
    assert f"sha256 of the values: {checksum(TABLE['digits'](''))}" in done.stdout


def test_launch_data_says_what_it_did_to_each_column_of_a_table(launch, tmp_path):
    path, flags = tmp_path / "own.data", ["--option=label=y", "--option=drop=a,b"]
    path.write_text("a;b;c;d;e;y\n1;2;2020-01-01;?;0,5;u\n1;2;2020-01-03;7;2,5;v\n1;2;;8;1;u\n")
    said = launch("data", "--dataset=table", f"--data_dir={path}", *flags).stderr
    assert 'give --options={"decimal": ","}, or name it in --option=categorical=' in said
    flags += ['--options={"decimal": ",", "header": 0}']
    said = launch("data", "--dataset=table", f"--data_dir={path}", *flags).stdout
    for line in (
        "column  read as   missing    categories  note",
        "a       left out                         named in drop=",
        "c       date      1 (33.3%)              days since 2020-01-01",
        "d       number    1 (33.3%)",
        "y       label                2",
        "  0 u: 2 (66.67%)",
    ):
        assert line in said


def test_launch_data_prepares_a_copy_that_is_the_data_set(launch, refused, tmp_path):
    out = tmp_path / "new"
    done = launch("data", "--dataset=breast_cancer", f"--prepare={out}")
    again = launch("data", "--dataset=breast_cancer", f"--data_dir={out}")
    assert done.returncode == again.returncode == 0
    for said in (done.stdout, again.stdout):
        assert "prepared by the loader 'breast_cancer' with no options" in said
    total = f"sha256 of the values: {checksum(TABLE['breast_cancer'](''))}"
    assert total in done.stdout
    assert total in again.stdout
    assert "its checksum is right" in again.stdout
    named = launch("data", "--dataset=prepared", f"--data_dir={out}")
    assert named.stdout == again.stdout
    taken = refused("data", "--dataset=digits", f"--prepare={out}")
    assert "is not overwritten: name a new folder" in taken
    spec = out / "vfljax.json"
    spec.write_text(spec.read_text().replace('"num_classes": 2', '"num_classes": 2147483647'))
    changed = launch("data", "--dataset=prepared", f"--data_dir={out}")
    assert (changed.returncode, changed.stdout) == (2, "")
    assert "vfljax.json is not what was recorded" in changed.stderr
