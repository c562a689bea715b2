"""Stored comparisons of printed numbers and ours."""

import pytest

from analysis.reproduction import comparison_csv, our_figures
from vfljax.config import Reproduces
from vfljax.errors import UserError

HEADER = ",".join(comparison_csv.COLUMNS)


def test_what_is_stored_gives_the_same_verdicts_again(defended, tmp_path):
    attacks = {"norm": "direct/most_negative"}  # an attack of the stored sweep
    arms = {"undefended": "none", "gafm": "gafm"}
    criteo = Reproduces("gafm/2", "Criteo", arms=arms, attacks=attacks)
    compared = [c for c in our_figures.compare(defended, criteo) if c.ours]
    path = tmp_path / "x.csv"
    path.write_text(comparison_csv.text(compared))
    for again, first in zip(comparison_csv.read(path), compared, strict=True):
        assert (again.number.id, again.point) == (first.number.id, first.point)
        assert again.ours == pytest.approx(first.ours, rel=1e-5)
        assert again.agreement.status is first.agreement.status


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "is no table of `python -m launch.reproduce --record`"),
        (HEADER + "\n1,2\n", "line 2"),
        (HEADER + "\nnobody" + "," * 15 + "\n", "line 2: 'nobody'"),
    ],
)
def test_a_file_of_another_form_is_one_line(tmp_path, text, line):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=line):
        comparison_csv.read(path)
