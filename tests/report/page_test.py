"""The report is one file that stands alone."""

import re
import shutil

import pytest

from vfljax import store
from vfljax.report import page


@pytest.fixture(scope="module")
def written(tiny_sweep, tmp_path_factory):
    """The sweep, what the terminal gets, and the page."""
    workdir = shutil.copytree(tiny_sweep, tmp_path_factory.mktemp("report") / "w")
    return workdir, page.present(workdir), (workdir / "report.html").read_text()


def test_it_needs_nothing_from_outside(written):
    _, _, html = written
    assert re.findall(r'(?:src|href)="(?!data:)', html) == []
    assert "<script" not in html


def test_it_holds_the_command_versions_and_every_setting(written):
    _, _, html = written
    assert "<pre>test</pre>" in html
    assert "jaxlib" in html
    for label in ("undefended", "kdk epsilon=0.45 k=3", "noise scale=0.01"):
        assert label in html


def test_it_says_what_was_shorter_than_published_and_what_was_not_run(written):
    _, _, html = written
    assert "20 optimizer steps, fewer than the 25,600 published" in html
    assert "<li>norm: defined for two classes" in html


def test_figures_are_pngs_too(written):
    workdir, _, _ = written
    names = {path.name for path in (workdir / "figures").glob("*.png")}
    assert names == {"frontier.png", "heat_kdk.png"}


def test_the_terminal_gets_the_table_and_what_it_means(written):
    workdir, text, _ = written
    assert "acc split" in text
    assert text.count("\n- ") >= 3
    assert str(workdir / "report.html") in text


def test_an_excerpt_holds_every_table_and_the_command(written, tmp_path):
    workdir, _, html = written
    page.excerpt(workdir, tmp_path / "out")
    text = (tmp_path / "out" / "tables.md").read_text()
    for title in ("Worst case", "All settings", "Attacks"):
        assert f"## {title}" in text
        assert f"<h2>{title}</h2>" in html
    assert store.load(workdir).header["command"] in text
    assert (tmp_path / "out" / "frontier.png").stat().st_size > 10_000
