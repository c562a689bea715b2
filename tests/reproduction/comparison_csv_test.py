"""Stored comparisons of printed numbers and ours."""

import pytest

from analysis.reproduction import comparison_csv
from vfljax.config import Reproduces
from vfljax.errors import UserError
from vfljax.papers import reproduction
from vfljax.papers.agreement import agreement


@pytest.fixture(scope="module")
def compared(defended):
    rule = {"norm": "direct/most_negative"}  # an attack of the stored sweep
    arms = {"undefended": "none", "gafm": "gafm"}
    criteo = Reproduces("gafm/2", "Criteo", arms=arms, attacks=rule)
    return {c.number.id: c for c in reproduction.compare(defended, criteo)}


def test_what_is_stored_gives_the_same_verdicts_again(compared, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(comparison_csv.text(compared.values()))
    again = comparison_csv.read(path)
    assert [c.number.id for c in again] == [k for k, c in compared.items() if c.ours]
    for c in again:
        first = compared[c.number.id]
        assert c.ours == pytest.approx(first.ours, rel=1e-5)
        assert c.agreement.status is first.agreement.status
        assert c.agreement.status is agreement(c.number, c.ours).status
        assert c.point == first.point


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "is no table of `python -m launch.reproduce --record`"),
        ("a,b\n", "is no table of `python -m launch.reproduce --record`"),
        (",".join(comparison_csv.COLUMNS) + "\n1,2\n", "line 2"),
        (",".join(comparison_csv.COLUMNS) + "\nnobody" + "," * 15 + "\n", "line 2: 'nobody'"),
    ],
)
def test_a_file_of_another_form_is_one_line(tmp_path, text, line):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=line):
        comparison_csv.read(path)
