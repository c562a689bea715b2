"""What was not attacked: only where something was trained."""

from tests.sweeps import point
from vfljax.report import not_run


def test_a_federation_that_a_setting_is_not_trained_in_is_no_gap():
    plain = point("undefended", 0.9, 0.8)
    accuracy = plain.accuracy["split"]
    everywhere = plain._replace(
        accuracy={"split": accuracy, "no_split": accuracy},
        worst=dict.fromkeys(("split", "no_split"), plain.worst["split"]),
    )
    untrained = everywhere._replace(
        arm="gafm", accuracy={"split": accuracy}, worst={"split": plain.worst["split"]}
    )
    not_attacked = untrained._replace(arm="kdk", accuracy=everywhere.accuracy)
    assert not_run._diverged_settings([everywhere, untrained]) == []
    (line,) = not_run._diverged_settings([everywhere, not_attacked])
    assert line == "kdk: no attack on it without model splitting."
