"""A stored sweep whose data is read otherwise today says so, and how to keep the old reading."""

import pytest

from tests.sweeps import plan_of, tiny
from vfljax import store
from vfljax.datasets import table
from vfljax.errors import UserError
from vfljax.store.sealed import SEAL
from vfljax.sweep.train import header

TEXT = "a,b,y\n" + "".join(f"{k if k % 5 else '?'},{'uvw'[k % 3]},{k % 2}\n" for k in range(40))


def planned(path, **options):
    options = {"label": "y", "positive": "1", **options}
    parts = {"train": 16, "validation": 8, "test": 8, "scaling": "standard"}
    data = {"name": "table", "dir": str(path), "options": options, **parts}
    return plan_of(tiny(data=data, grid={"undefended": {}}, **{"training.batch_size": 8}))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(TEXT)
    return path


def old(path, **changes):
    """A header of the first version, which a table without '?' shares with the second."""
    content = header(planned(path), "")
    content["reader"] = 1
    return {**content, "revision": "0123456789ab+", **changes}


def test_another_reading_is_not_called_other_data(path, tmp_path):
    store.begin(tmp_path / "w", old(path, checksum="otherwise"))
    with pytest.raises(UserError, match="reading changed") as error:
        store.begin(tmp_path / "w", header(planned(path), ""))
    for words in (
        f"was read by version 1 of the loader, and this is version {table.READER}",
        "prepare the data set with vfljax at revision 0123456789ab (`vfljax data --prepare=DIR`)",
    ):
        assert words in str(error.value)
    assert "have changed" not in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    store.begin(tmp_path / "v", {**header(planned(path), ""), "checksum": "otherwise"})
    with pytest.raises(UserError, match="the values of the data set have changed"):
        store.begin(tmp_path / "v", header(planned(path), ""))


def test_equal_data_continues_whatever_read_it(path, tmp_path):
    stored = store.begin(tmp_path / "w", old(path))
    again = {"na_values": ("NA",), "max_categories": 9}  # options that read the same
    asked = header(planned(path, **again), "")
    found = store.begin(tmp_path / "w", asked)
    assert found["config"] == asked["config"]
    same = [name for name in stored if name not in ("config", SEAL)]
    assert [found[name] for name in same] == [stored[name] for name in same]
    with pytest.raises(UserError, match="parts, groups or columns|values of the data|reading"):
        store.begin(tmp_path / "w", header(planned(path, categorical=("a",)), ""))
