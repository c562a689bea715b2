"""Claims weighed by what attacks read: what counts for and against each."""

import math

import pytest

from vfljax.papers.claims import CLAIMS
from vfljax.papers.evidence import Evidence, LeakRow, Support, leaks_text, read_leaks


def row(table, method, defenses, knobs, attack, strongest=False, **figures):
    values = {"leak": 0.6, "success": 0.6, "accuracy": 0.8, "auc": 0.8, "excess": 0.1, **figures}
    identity = (table, method, method, defenses, knobs, "split", attack, attack.split("/")[0])
    return LeakRow(*identity, strongest, **values)


def weighed(words, *rows, paper=""):
    """What the claim that begins so makes of one sweep's rows."""
    every = {p: CLAIMS[p] for p in CLAIMS if p.startswith(paper)}
    weigh = next(w for claims in every.values() for c, w in claims.items() if c.startswith(words))
    return list(weigh(Evidence(compared=[], leaks={"a_sweep": rows})))


def support(words, *rows):
    return [line.support for line in weighed(words, *rows)]


def figure6(k, success, table="kdk/figure6"):
    knobs = {"kdk.epsilon": 0.3, "kdk.k": float(k)}
    return row(table, f"kdk_k{k}", ("kdk",), knobs, "passive", success=success)


@pytest.mark.parametrize(("second", "expected"), [(0.64, Support.FOR), (0.70, Support.AGAINST)])
def test_k_matters_little_where_success_stays_within_a_range(second, expected):
    values = {3: 0.6, 5: second, 10: 0.1}
    assert support("k does not", *(figure6(k, v) for k, v in values.items())) == [expected]
    others = (figure6(k, v, table="kdk/4") for k, v in values.items())
    assert support("k does not", *others) == []


@pytest.mark.parametrize(("at_all", "expected"), [(0.75, Support.FOR), (0.62, Support.OPEN)])
def test_k_of_all_classes_is_compared_with_the_smallest(at_all, expected):
    undefended = row("kdk/figure6", "undefended", (), {}, "passive", success=0.8)
    rows = [undefended, figure6(3, 0.6), figure6(10, at_all)]
    assert support("k = C", *rows) == [expected]


def test_a_defense_fails_where_it_keeps_the_accuracy_and_most_of_the_success():
    def noise(accuracy, success):
        attack, figures = "direct/first_negative", {"success": success, "accuracy": accuracy}
        found, *others = support(
            "Noisy gradients",
            row("kdk/8", "undefended", (), {}, attack, success=1.0),
            row("kdk/8", "noise", ("noise",), {}, attack, **figures),
        )
        assert others == [Support.OPEN] * 3  # not run
        return found

    assert noise(0.79, 0.6) is Support.FOR
    assert noise(0.79, 0.4) is Support.AGAINST
    assert noise(0.70, 0.4) is Support.OPEN  # no operating point keeps the accuracy


def test_both_losses_are_needed_where_each_alone_is_worse():
    def both(gan_auc, ce_leak):
        figures = {"gafm": (0.6, 0.9), "gan_only": (0.5, gan_auc), "ce_only": (ce_leak, 0.9)}
        return support(
            "The GAN loss alone",
            *(
                row("gafm/text", method, ("gafm",), {}, "mean/oracle", leak=leak, auc=auc)
                for method, (leak, auc) in figures.items()
            ),
        )

    assert both(0.5, 0.9) == [Support.FOR, Support.FOR]
    assert both(0.9, 0.62) == [Support.AGAINST, Support.AGAINST]


def sun(method, leak, auc, alpha=None):
    defenses = tuple(name for name in (method,) if name != "undefended")
    knobs = {"dcor.alpha": alpha} if alpha else {}
    return row("sun/figure2", method, defenses, knobs, "spectral/signed", leak=leak, auc=auc)


def test_sun_s_claims_are_of_small_weights_and_the_signed_spectral_attack():
    rows = [
        sun("undefended", 0.75, 0.78),
        sun("dcor", 0.52, 0.775, alpha=0.003),
        sun("dcor", 0.60, 0.70, alpha=0.005),
        sun("dcor", 0.50, 0.60, alpha=0.03),
        sun("marvell", 0.70, 0.78),
        sun("label_dp", 0.55, 0.78),
    ]
    mixed = [Support.FOR, Support.AGAINST]
    assert support("With alpha_d from .002", *rows) == mixed
    assert support("... with the test AUC unchanged", *rows) == mixed
    assert support("Marvell and label DP", *rows) == mixed
    assert support("The spectral attack's leak AUC is bounded", *rows) == [Support.FOR]
    higher = sun("undefended", 0.99, 0.78)
    assert support("The spectral attack's leak AUC is bounded", higher) == [Support.AGAINST]
    two = [higher, *rows]  # which of two is meant is not known
    assert support("With alpha_d from .002", *two) == []


def test_the_strongest_attack_is_listed_with_its_excess():
    def listed(*rows, paper):
        return [line.text for line in weighed("Not claimed", *rows, paper=paper)]

    probe = row("kdk/4", "kdk", ("kdk",), {}, "probe", leak=0.97, excess=0.3)
    (line,) = listed(probe, probe._replace(strongest=True), paper="kdk")
    assert line == "a_sweep, kdk, split: 0.970 by probe, +0.300 over the local-only baseline."
    norm = row("gafm/2", "gafm", ("gafm",), {}, "norm", strongest=True, excess=math.nan)
    (line,) = listed(norm, row("gafm/2", "gafm", ("gafm",), {}, "joint/exchange"), paper="gafm")
    assert line.endswith("by norm.")
    assert listed(norm, paper="gafm") == []  # published attacks alone


def test_rows_are_read_as_they_were_stored(tmp_path):
    rows = [
        row("kdk/4", "kdk+noise", ("kdk", "noise"), {"kdk.k": 3.0}, "probe", auc=math.nan),
        row("kdk/4", "undefended", (), {}, "local-only baseline", strongest=True, leak=0.12344),
    ]
    (tmp_path / "x.csv").write_text(leaks_text(rows))
    first, second = read_leaks(tmp_path / "x.csv")
    assert math.isnan(first.auc)
    assert first._replace(auc=0.0) == rows[0]._replace(auc=0.0)
    assert second == rows[1]._replace(leak=0.1234)
