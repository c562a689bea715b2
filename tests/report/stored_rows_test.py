"""Stored rows as the report reads them."""

from vfljax.report.stored_rows import RENAMED, AttackFigures, renamed
from vfljax.types import AttackIdentity


def test_an_attack_whose_classes_are_named_keeps_every_column_and_only_the_figures_of_those_names():
    figures = {
        **{"naming": 40, "renamed": 1.0, "named_report": 0.8, "leak_null": 0.1},
        **{"leak": 0.2, "leak_select": 0.2, "leak_report": 0.2, "leak_named": 0.7},
        **{"leak_crossed": 0.2, "leak_error": 0.1},
        **{"named_select": 0.9, "success": 0.2, "success_unlabeled": 0.3, "test_leak": 0.4},
    }
    row = AttackFigures(AttackIdentity("direct", federation="no_split"), 0, 0, 0, figures, {})
    (named,) = renamed([row])
    assert named.identity == row.identity._replace(named=True, known=40)
    assert named.figures.keys() == figures.keys()
    for name, column in RENAMED.items():
        assert named.figures[name] == figures[column]
    for name in ("success", "success_unlabeled", "test_leak", "leak_error"):
        assert named.figures[name] is None
    assert named.figures["leak_null"] == 0.1
    assert renamed([row._replace(figures={**figures, "named_select": 0.1})]) == []
