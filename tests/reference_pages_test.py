"""The reference pages are those that the code gives, and the reference has every row of a table."""

import pytest

from analysis.reference import tables
from vfljax import attacks, config, datasets, defenses, models

MEMBERS = {
    "defenses.md": defenses.TABLE,
    "attacks.md": attacks.TABLE,
    "data_sets.md": datasets.TABLE,
    "networks.md": {**models.BOTTOMS, **models.TOPS},
    "config.md": config.FIELDS,
}


@pytest.mark.parametrize("name", tables.PAGES)
def test_a_stored_page_is_what_the_code_gives_and_every_member_has_a_row(name):
    text = tables.PAGES[name]()
    stored = (tables.FOLDER / name).read_text(encoding="utf-8")
    assert stored == text, "run `python -m analysis.reference.tables`"
    cells = (line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if "|" in line)
    rows = {cell.partition("](")[0].strip("[`*") for cell in cells}
    assert {*MEMBERS.get(name, ())} - rows == set()


def test_a_bar_within_a_cell_does_not_end_it():
    assert tables.table(("a", "b"), [("x|y", r"\|z")]).splitlines()[-1] == r"| x\|y | \|z |"
