"""Claims weighed by what attacks read: what counts for and against each."""

import math

import pytest

from analysis.reproduction import claims
from analysis.reproduction.comparisons import Compared
from analysis.reproduction.evidence import Evidence, LeakRow, Support, leaks_text, read_leaks
from analysis.reproduction.papers import numbers

FOR, AGAINST, OPEN = Support.FOR, Support.AGAINST, Support.OPEN


def row(table, method, defenses, knobs, attack, strongest=False, **figures):
    values = {"leak": 0.6, "success": 0.6, "accuracy": 0.8, "auc": 0.8, "excess": 0.1, **figures}
    identity = (table, method, method, defenses, knobs, "split", attack, attack.split("/")[0])
    return LeakRow(*identity, strongest, **values)


def weighed(claim, *rows, compared=()):
    """What a claim makes of one sweep's rows, and of comparisons."""
    evidence = Evidence(compared=compared, leaks={"a_sweep": rows} if rows else {})
    return list(claims.WEIGHED[claim](evidence))


def support(claim, *rows):
    return [line.support for line in weighed(claim, *rows)]


def figure6(k, success, epsilon=0.3, classes=10, **figures):
    knobs = {"kdk.epsilon": epsilon, "kdk.k": float(k)}
    about = "kdk/figure6", f"kdk_k{k}", ("kdk",), knobs, "passive"
    return row(*about, success=success, classes=classes, **figures)


@pytest.mark.parametrize(("second", "expected"), [(0.64, FOR), (0.70, AGAINST)])
def test_k_matters_little_where_success_stays_within_a_range(second, expected):
    values = {3: 0.6, 5: second, 10: 0.1}
    claim = "kdk", "k"
    assert support(claim, *(figure6(k, v) for k, v in values.items())) == [expected]
    # beyond .6 the figure has not every k
    assert support(claim, *(figure6(k, v, epsilon=0.8) for k, v in values.items())) == []
    of_100 = [figure6(k, v, classes=100) for k, v in values.items()]
    assert support(claim, *of_100) == [AGAINST]  # 10 is no exception


@pytest.mark.parametrize(
    ("least", "at_all", "expected"), [(0.6, 0.76, FOR), (0.6, 0.62, AGAINST), (0.78, 0.78, OPEN)]
)
def test_k_of_all_classes_fails_where_it_leaves_what_the_smallest_takes(least, at_all, expected):
    undefended = row("kdk/figure6", "undefended", (), {}, "passive", success=0.8, classes=10)
    rows = [undefended, figure6(3, least), figure6(10, at_all)]
    assert support(("kdk", "k_all"), *rows) == [expected]
    rows[2] = figure6(10, at_all, accuracy=0.7)  # an epsilon that costs the accuracy is excepted
    assert support(("kdk", "k_all"), *rows) == [OPEN]


@pytest.mark.parametrize(
    ("accuracy", "success", "expected"), [(0.79, 0.6, FOR), (0.79, 0.4, AGAINST), (0.70, 0.4, OPEN)]
)
def test_a_defense_fails_where_it_keeps_the_accuracy_and_most_of_the_success(
    accuracy, success, expected
):
    undefended = row("kdk/figure7", "undefended", (), {}, "active", success=1.0)
    figures = {"success": success, "accuracy": accuracy}
    noise = row("kdk/figure7", "noise", ("noise",), {}, "active", **figures)
    assert support(("fu", "defenses"), undefended, noise) == [expected] + [OPEN] * 3  # not run


def paired(claim, table, dataset, values, **fields):
    """What a claim makes of a table's numbers, ours by their defense or model."""
    compared = []
    for n in (n for n in numbers() if (n.table, n.dataset) == (table, dataset)):
        asked = {**n.setting, **n._asdict()}
        if all(asked[name] == value for name, value in fields.items()):
            value = values[n.setting.get("label_party_model", n.defense)]
            compared.append(Compared(n, ours=(value, value + 0.001)))
    return [line.support for line in weighed(claim, compared=compared)]


@pytest.mark.parametrize(
    ("claim", "table", "dataset", "success", "expected"),
    [
        ("passive", "kdk/4", "CIFAR-10", 0.98, [FOR]),
        ("passive", "kdk/4", "CIFAR-10", 1.02, [AGAINST]),
        ("passive", "kdk/5", "CIFAR-10", 0.60, []),  # of another table
        ("halved", "kdk/4", "CIFAR-10", 0.48, [FOR]),
        ("halved", "kdk/4", "CIFAR-10", 0.52, [AGAINST]),
        ("halved", "kdk/4", "Criteo", 0.48, []),  # excepted
        ("active", "kdk/5", "CIFAR-10", 0.60, [FOR]),
        ("direct", "kdk/6", "CIFAR-10", 0.38, [FOR]),
        ("direct", "kdk/6", "CIFAR-10", 0.42, [AGAINST]),
        ("direct", "kdk/6", "Criteo", 0.38, []),  # excepted
    ],
)
def test_kdk_s_claims_are_each_of_one_table(claim, table, dataset, success, expected):
    values = {"none": 1.0, "kdk": success}
    assert paired(("kdk", claim), table, dataset, values, split="train") == expected


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
    assert support(("sun", "dcor_leak"), *rows) == [FOR, AGAINST]
    assert support(("sun", "dcor_auc"), *rows) == [FOR, AGAINST]
    assert support(("sun", "dcor_large"), *rows) == [FOR]
    assert support(("sun", "dcor_large_auc"), *rows) == [AGAINST]
    assert support(("sun", "gradients"), *rows) == [FOR, AGAINST]
    assert support(("sun", "bounded"), *rows) == [FOR] * 4 + [AGAINST]
    two = [sun("undefended", 0.99, 0.78), *rows]  # which of two is meant is not known
    assert support(("sun", "dcor_leak"), *two) == []


def test_marvell_s_claims_are_of_the_norm_attack_on_the_last_epoch():
    def of(method, auc, leak, attack="norm/epoch=-1"):
        chain = {"undefended": (), "isotropic": ("noise",)}.get(method, (method,))
        return row("li/criteo", method, chain, {}, attack, auc=auc, leak=leak)

    curve = [
        of("marvell", 0.7, 0.6),
        of("marvell", 0.8, 0.8),
        of("marvell", 0.75, 0.99, "norm/mean"),
    ]
    for auc, leak, expected in ((0.75, 0.71, FOR), (0.75, 0.69, AGAINST), (0.69, 0.9, OPEN)):
        assert support(("li", "tradeoff"), *curve, of("isotropic", auc, leak)) == [expected]
    for leak, expected in ((0.91, FOR), (0.89, AGAINST)):
        assert support(("li", "norm"), of("undefended", 0.8, leak)) == [expected]


def test_every_claim_is_weighed_and_says_where_the_paper_makes_it():
    every = claims.claims()
    assert [(claim.paper, claim.id) for claim in every] == list(claims.WEIGHED)
    for claim in every:
        assert bool(claim.place) == bool(claim.quote) == (claim.id != "strongest")


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
