"""What was not attacked: only where something was trained."""

import dataclasses

from tests.sweeps import assessed, assessment
from vfljax.report import not_run


def test_a_federation_in_which_a_method_is_not_trained_is_no_gap():
    accuracy = assessment("plain", 0.9, 0.8).configuration.accuracy["split"]
    both = {"split": accuracy, "no_split": accuracy}
    plain = assessment("undefended", 0.9, 0.8, accuracy=both)
    without = dataclasses.replace(plain, federation="no_split")
    untrained = assessment("gafm", 0.9, 0.8)
    not_attacked = assessment("kdk", 0.9, 0.8, accuracy=both)
    for second, missing in ((untrained, []), (not_attacked, ["without model splitting"])):
        lost = not_run._lost(assessed(plain, without, second))
        assert [federations for _, federations in lost] == [[], missing]
