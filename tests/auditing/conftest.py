"""What the tests of audits share."""

from collections.abc import Iterator
from typing import Any

import pytest

from vfljax.auditing import survey


@pytest.fixture(scope="package", autouse=True)
def few_trees() -> Iterator[None]:
    """Boosting on each party's columns takes most of a survey's time, and few trees tell as much here."""
    boosting = survey.HistGradientBoostingClassifier

    def quick(**settings: Any) -> Any:
        return boosting(**{**settings, "max_iter": 3})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survey, "HistGradientBoostingClassifier", quick)
        yield
