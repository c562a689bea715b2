"""The reference pages are those that the code gives, and the reference has every row of a table."""

import pytest

from analysis.reference import tables
from vfljax import attacks, config, datasets, defenses, models


@pytest.mark.parametrize("name", tables.PAGES)
def test_a_stored_page_is_what_the_code_gives(name):
    stored = (tables.FOLDER / name).read_text(encoding="utf-8")
    assert stored == tables.PAGES[name](), "run `python -m analysis.reference.tables`"


def rows(text: str) -> set[str]:
    """The first cells of a page's tables, without links."""
    cells = (line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if "|" in line)
    return {cell.partition("](")[0].strip("[`*") for cell in cells}


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("defenses.md", defenses.TABLE),
        ("attacks.md", attacks.TABLE),
        ("data_sets.md", datasets.TABLE),
        ("networks.md", {**models.BOTTOMS, **models.TOPS}),
        ("config.md", config.FIELDS),
    ],
)
def test_every_member_has_a_row(page, names):
    assert set(names) - rows(tables.PAGES[page]()) == set()


def test_a_new_row_changes_its_page(monkeypatch):
    monkeypatch.setitem(defenses.TABLE, "mine", defenses.TABLE["noise"])
    assert "mine" in rows(tables.PAGES["defenses.md"]())


def test_a_bar_within_a_cell_does_not_end_it():
    assert tables.table(("a", "b"), [("x|y", r"\|z")]).splitlines()[-1] == r"| x\|y | \|z |"
