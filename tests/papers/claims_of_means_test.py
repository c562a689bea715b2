"""Claims weighed by stored means: what counts for and against each."""

import pytest

from vfljax.papers import claims_of_means as means
from vfljax.papers.claims_of_means import AGAINST, FOR, MEASURED, OPEN


def row(setting, attack, leak=0.6, success=0.6, accuracy=0.8, auc=0.8, excess=0.1):
    values = {"accuracy": accuracy, "auc": auc, "leak": leak, "success": success, "excess": excess}
    texts = {name: "" if value is None else str(value) for name, value in values.items()}
    return {"setting": setting, "federation": "split", "attack": attack, **texts}


def says(lines):
    return [line[0] for line in lines]


@pytest.mark.parametrize(("second", "expected"), [(0.64, FOR), (0.70, AGAINST)])
def test_k_matters_little_where_success_stays_within_a_range(second, expected):
    rows = [
        row(f"kdk_k{k} epsilon=0.3 k={k}", "passive", success=v)
        for k, v in ((3, 0.6), (5, second), (10, 0.1))
    ]
    assert says(means.k_matters_little({"kdk_figure6_x": rows})) == [expected]
    assert says(means.k_matters_little({"another": rows})) == []


@pytest.mark.parametrize(("at_all", "expected"), [(0.75, FOR), (0.62, OPEN)])
def test_k_of_all_classes_is_beside_the_smallest(at_all, expected):
    rows = [row("undefended", "passive", success=0.8)]
    rows += [
        row(f"kdk_k{k} epsilon=0.3", "passive", success=v) for k, v in ((3, 0.6), (10, at_all))
    ]
    assert says(means.k_of_all_classes({"kdk_figure6_x": rows})) == [expected]


def test_a_defense_fails_where_it_keeps_the_accuracy_and_most_of_the_success():
    def weighed(accuracy, success):
        rows = [
            row("undefended", "direct/first_negative", success=1.0),
            row("noise scale=0.1", "direct/first_negative", success=success, accuracy=accuracy),
        ]
        noise, *others = says(means.defenses_fail({"kdk_8_x": rows}))
        assert others == [OPEN] * 3  # not run
        return noise

    assert weighed(0.79, 0.6) == FOR
    assert weighed(0.79, 0.4) == AGAINST
    assert weighed(0.70, 0.4) == OPEN  # no strength keeps the accuracy


def test_both_losses_are_needed_where_each_alone_is_worse():
    def weighed(gan_auc, ce_leak):
        rows = [
            row("gafm delta=0.1", "mean/oracle", leak=0.6, auc=0.9),
            row("gan_only delta=0.1", "mean/oracle", leak=0.5, auc=gan_auc),
            row("ce_only delta=0.1", "mean/oracle", leak=ce_leak, auc=0.9),
        ]
        return says(means.both_losses({"gafm_text_imdb": rows}))

    assert weighed(0.5, 0.9) == [FOR, FOR]
    assert weighed(0.9, 0.62) == [AGAINST, AGAINST]


def test_sun_s_claims_are_of_small_weights_and_the_signed_spectral_attack():
    rows = [
        row("undefended", "spectral/signed", leak=0.75, auc=0.78),
        row("dcor alpha=0.003", "spectral/signed", leak=0.52, auc=0.775),
        row("dcor alpha=0.005", "spectral/signed", leak=0.60, auc=0.70),
        row("dcor alpha=0.03", "spectral/signed", leak=0.50, auc=0.60),
        row("marvell power=8", "spectral/signed", leak=0.70, auc=0.78),
        row("label_dp epsilon=0.5", "spectral/signed", leak=0.55, auc=0.78),
    ]
    leaks = {"sun_figure2_x": rows}
    assert says(means.dcor_hides(leaks)) == [FOR, AGAINST]
    assert says(means.dcor_costs_nothing(leaks)) == [FOR, AGAINST]
    assert says(means.others_do_not_stop_it(leaks)) == [FOR, AGAINST]
    assert says(means.bounded_by_utility(leaks)) == [FOR]
    rows[0]["leak"] = "0.99"
    assert says(means.bounded_by_utility(leaks)) == [AGAINST]


def test_worst_cases_are_shown_with_their_excess():
    rows = [
        row("kdk epsilon=0.4", "worst case: probe", leak=0.97, excess=0.3),
        row("kdk epsilon=0.4", "probe"),
        row("gafm", "worst case: norm", excess=None),
        row("gafm", "joint/exchange"),
    ]
    ((kind, text),) = means.worst_cases("kdk_")({"kdk_4_x": rows[:2], "gafm_2_x": rows[2:]})
    assert kind == MEASURED
    assert "0.970 by probe, +0.300 over staying away" in text
    ((_, text),) = means.worst_cases("gafm_")({"gafm_2_x": rows[2:]})
    assert text.endswith("by norm.")
    published_only = {"gafm_2_x": [row("gafm", "worst case: norm"), row("gafm", "norm")]}
    assert list(means.worst_cases("gafm_")(published_only)) == []
