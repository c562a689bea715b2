"""Claims weighed by what attacks read: what counts for and against each."""

import math

import pytest

from analysis.reproduction import claims
from analysis.reproduction.evidence import Evidence, LeakRow, Support, leaks_text, read_leaks
from vfljax.papers import numbers
from vfljax.papers.comparisons import Compared


def row(table, method, defenses, knobs, attack, strongest=False, **figures):
    values = {"leak": 0.6, "success": 0.6, "accuracy": 0.8, "auc": 0.8, "excess": 0.1, **figures}
    identity = (table, method, method, defenses, knobs, "split", attack, attack.split("/")[0])
    return LeakRow(*identity, strongest, **values)


def weighed(words, *rows, paper="", compared=()):
    """What the claim that begins so makes of one sweep's rows, and of comparisons."""
    of_paper = (claim for claim in claims.claims() if claim.paper.startswith(paper))
    claim = next(claim for claim in of_paper if claim.text.startswith(words))
    return claim.weigh(Evidence(compared=compared, leaks={"a_sweep": rows} if rows else {}))


def support(words, *rows):
    return [line.support for line in weighed(words, *rows)]


def figure6(k, success, table="kdk/figure6", epsilon=0.3, classes=10, **figures):
    about = table, f"kdk_k{k}", ("kdk",), {"kdk.epsilon": epsilon, "kdk.k": float(k)}, "passive"
    return row(*about, success=success, classes=classes, **figures)


@pytest.mark.parametrize(("second", "expected"), [(0.64, Support.FOR), (0.70, Support.AGAINST)])
def test_k_matters_little_where_success_stays_within_a_range(second, expected):
    values = {3: 0.6, 5: second, 10: 0.1}
    assert support("Figure 6: k below", *(figure6(k, v) for k, v in values.items())) == [expected]
    for other in ({"table": "kdk/4"}, {"epsilon": 0.8}):  # where the figure has not every k
        rows = [figure6(k, v, **other) for k, v in values.items()]
        assert support("Figure 6: k below", *rows) == []
    of_100 = [figure6(k, v, classes=100) for k, v in values.items()]
    assert support("Figure 6: k below", *of_100) == [Support.AGAINST]  # 10 is no exception


@pytest.mark.parametrize(
    ("least", "at_all", "expected"),
    [(0.6, 0.76, Support.FOR), (0.6, 0.62, Support.AGAINST), (0.78, 0.78, Support.OPEN)],
)
def test_k_of_all_classes_fails_where_it_leaves_what_the_smallest_takes(least, at_all, expected):
    undefended = row("kdk/figure6", "undefended", (), {}, "passive", success=0.8, classes=10)
    rows = [undefended, figure6(3, least), figure6(10, at_all)]
    assert support("Figure 6: k of all", *rows) == [expected]
    rows[2] = figure6(10, at_all, accuracy=0.7)  # an epsilon that costs the accuracy is excepted
    assert support("Figure 6: k of all", *rows) == [Support.OPEN]
    assert support("Figure 6: k of all", *(r._replace(classes=100) for r in rows)) == []


@pytest.mark.parametrize("attack", ["passive", "active"])
def test_a_defense_fails_where_it_keeps_the_accuracy_and_most_of_the_success(attack):
    def noise(accuracy, success):
        figures = {"success": success, "accuracy": accuracy}
        found, *others = support(
            "Noisy gradients",
            row("kdk/figure7", "undefended", (), {}, attack, success=1.0),
            row("kdk/figure7", "noise", ("noise",), {}, attack, **figures),
        )
        assert others == [Support.OPEN] * 3  # not run
        return found

    assert noise(0.79, 0.6) is Support.FOR
    assert noise(0.79, 0.4) is Support.AGAINST
    assert noise(0.70, 0.4) is Support.OPEN  # no operating point keeps the accuracy


@pytest.mark.parametrize(("classes", "weighed_defenses"), [(10, 3), (100, 2)])
def test_against_the_direct_attack_noise_and_sometimes_ppdl_are_excepted(classes, weighed_defenses):
    names = ("compression", "discrete_sgd", "noise", "ppdl")
    rows = [row("kdk/8", name, (name,), {}, "direct/a", success=0.9) for name in names]
    rows += [row("kdk/8", "undefended", (), {}, "direct/a", success=1.0, classes=classes)]
    assert support("Tables 8 and 9", *rows) == [Support.FOR] * weighed_defenses


def paired(words, table, dataset, values, **fields):
    """What a claim makes of a table's numbers, ours by their defense or model."""
    compared = []
    for n in (n for n in numbers() if (n.table, n.dataset) == (table, dataset)):
        asked = {**n.setting, **n._asdict()}
        if all(asked[name] == value for name, value in fields.items()):
            value = values[n.setting.get("label_party_model", n.defense)]
            compared.append(Compared(n, ours=(value, value + 0.001)))
    return [line.support for line in weighed(words, compared=compared)]


@pytest.mark.parametrize(
    ("table", "dataset", "success", "expected"),
    [
        ("kdk/4", "CIFAR-10", 0.98, [Support.FOR]),
        ("kdk/4", "CIFAR-10", 1.02, [Support.AGAINST]),
        ("kdk/5", "CIFAR-10", 0.60, [Support.FOR]),
        ("kdk/6", "CIFAR-10", 0.38, [Support.FOR]),
        ("kdk/6", "CIFAR-10", 0.42, [Support.AGAINST]),
        ("kdk/6", "Criteo", 0.38, []),  # excepted
    ],
)
def test_kdk_s_claims_are_each_of_one_table(table, dataset, success, expected):
    values = {"none": 1.0, "kdk": success}
    for number in "4567":
        found = paired(f"Table {number}", table, dataset, values, split="train")
        assert found == (expected if table.endswith(number) else [])


def test_success_is_halved_but_on_two_data_sets():
    def found(dataset, success):
        values = {"none": 1.0, "kdk": success}
        return paired("Table 4: in", "kdk/4", dataset, values, split="train")

    assert [found("CIFAR-10", x) for x in (0.48, 0.52)] == [[Support.FOR], [Support.AGAINST]]
    assert found("Yahoo! Answers", 0.48) == found("Criteo", 0.48) == []


def test_a_larger_model_is_compared_where_alpha_d_is_large():
    values = {"large": 0.75, "small": 0.70}
    found = (paired("A larger", "sun/1", "Criteo", values, alpha_d=a) for a in (0.005, 0.03))
    assert [*found] == [[], [Support.FOR]]


def test_both_losses_are_needed_where_each_alone_is_worse():
    def both(gan_auc, ce_leak, table="gafm/text"):
        figures = {"gafm": (0.6, 0.9), "gan_only": (0.5, gan_auc), "ce_only": (ce_leak, 0.9)}
        return support(
            "The GAN loss alone",
            *(
                row(table, method, ("gafm",), {}, "mean/oracle", leak=leak, auc=auc)
                for method, (leak, auc) in figures.items()
            ),
        )

    assert both(0.5, 0.9) == [Support.FOR] * 2
    assert both(0.9, 0.62) == [Support.AGAINST] * 2
    assert both(0.5, 0.62, table="gafm/figure3") == [Support.FOR]  # Spambase is excepted


def sun(method, leak, auc, **knobs):
    defenses = () if method == "undefended" else (method,)
    knobs = {f"{method}.{name}": value for name, value in knobs.items()}
    return row("sun/figure2", method, defenses, knobs, "spectral/signed", leak=leak, auc=auc)


def test_sun_s_claims_are_of_small_weights_and_the_signed_spectral_attack():
    rows = [
        sun("undefended", 0.75, 0.78),
        sun("dcor", 0.52, 0.775, alpha=0.003),
        sun("dcor", 0.60, 0.70, alpha=0.005),
        sun("dcor", 0.50, 0.60, alpha=0.03),
        sun("marvell", 0.70, 0.78, power=8.0),
        sun("marvell", 0.50, 0.60, power=0.25),
        sun("marvell", 0.50, 0.78, power=8.0)._replace(defenses=("dcor", "marvell")),
        sun("label_dp", 0.55, 0.54, epsilon=0.5),
        sun("label_dp", 0.57, 0.55, epsilon=1.0),
    ]
    mixed = [Support.FOR, Support.AGAINST]
    assert support("With alpha_d from .002", *rows) == mixed
    assert support("... with almost the same", *rows) == mixed
    assert support("With alpha_d = .03", *rows) == [Support.FOR]
    assert support("... and the test AUC falls", *rows) == [Support.AGAINST]
    assert support("Marvell (s = 8)", *rows) == mixed
    bounded = support("Undefended, with Marvell and with label DP", *rows)
    assert bounded == [Support.FOR] * 4 + [Support.AGAINST]
    higher = sun("undefended", 0.99, 0.78)
    two = [higher, *rows]  # which of two is meant is not known
    assert support("With alpha_d from .002", *two) == []


def test_every_claim_is_weighed_and_says_where_the_paper_makes_it():
    every = claims.claims()
    assert [(claim.paper, claim.id) for claim in every] == list(claims.WEIGHED)
    for claim in every:
        assert bool(claim.place) == bool(claim.quote) == (claim.id != "strongest")


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
