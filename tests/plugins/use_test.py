"""Rows of one's own: found, refused, trained, stored, and reported without being imported."""

import hashlib
import pathlib
import shutil
import sys

import pytest

from tests.refusals import refused
from tests.sweeps import attack, comparable
from vfljax import attacks, defenses, plugins, store
from vfljax.errors import UserError
from vfljax.report import not_run, verdict_tables
from vfljax.report import tables as report_tables
from vfljax.report.sweep_answers import judge_sweep
from vfljax.scheduling.running import finish
from vfljax.sweep.grid import experiment_of, parse

OWN = pathlib.Path(__file__).with_name("own.py")
NAMES = ("mine", "broken", "turtle")
CONFIG = {
    "name": "own",
    "seeds": 1,
    "data": {"name": "breast_cancer", "train": 60, "validation": 40, "test": 40},
    "model": {"hidden": ()},
    "training": {"epochs": 1, "batch_size": 30},
    "federations": ("split",),
    "parties": {"passive": 1, "label_features": False},
    "grid": {"swapped": {"mine:shuffle": {"rate": (0.0, 0.7), "rows": "next"}}},
    "attacks": {"mine:guess": {"sign": "minus"}},
}


def forget(tables):
    """A process in which no plugin was used."""
    for table, rows in zip((defenses.TABLE, attacks.TABLE), tables, strict=True):
        table.clear()
        table.update(rows)
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture(autouse=True)
def tables():
    before = dict(defenses.TABLE), dict(attacks.TABLE)
    yield before
    forget(before)


@pytest.fixture
def mine(tmp_path):
    return str(shutil.copy(OWN, tmp_path / "mine.py"))


def test_rows_are_named_by_the_module_and_their_own_name(mine):
    used = plugins.use(mine)
    assert [*used] == ["mine:shuffle", "mine:guess"]
    sha256 = hashlib.sha256(pathlib.Path(mine).read_bytes()).hexdigest()
    assert all(row.origin == ("mine", "0.1", sha256) for row in used.values())
    assert defenses.TABLE["mine:shuffle"] is used["mine:shuffle"]
    assert plugins.use(mine) == used


def test_a_module_on_the_path_and_a_package_are_used_by_name(tmp_path, monkeypatch, tables):
    monkeypatch.syspath_prepend(tmp_path)
    shutil.copy(OWN, tmp_path / "mine.py")
    of_file = plugins.use("mine")
    forget(tables)
    (tmp_path / "mine.py").unlink()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("from mine.rows import guess, shuffle\n")
    shutil.copy(OWN, tmp_path / "mine" / "rows.py")
    sys.modules.pop("mine.rows", None)
    of_package = plugins.use("mine")
    sys.modules.pop("mine.rows", None)
    assert {*of_package} == {*of_file}
    digests = {row.origin.sha256 for rows in (of_file, of_package) for row in rows.values()}
    assert len(digests) == 2


ROW = "from vfljax.defenses import Defense, DefenseRow\n"
KNOWN = "known_by={'split': (), 'no_split': ()}"
# factories of defenses, and how rows are made of them
ROWS = [
    ("def f(*knobs): ...", f"f, {{}}, {KNOWN}", "its factory takes *knobs: name every knob"),
    ("def f(*, law): ...", f"f, {{}}, {KNOWN}", "its option law has no default"),
    (
        "def f(a, b): ...",
        f"f, {{'a': 1.0}}, {KNOWN}",
        "broken:row: example names a, and the factory",
    ),
    (
        "def f(): ...",
        "f, {}, {'splitt': ()}",
        "known_by of broken:row 'splitt': did you mean 'split'",
    ),
    ("def f(): ...", "f, {}, {'split': ('norm',)}", "known_by has ('norm',): give (Knower('probe'"),
    ("f = Defense()", f"f, {{}}, {KNOWN}", "broken:row: its factory is a Defense: give a function"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import vfljax.defenses.noise as n\nROW = n.ROW\n", "has no row"),
        ("x = 1\nx / 0\n", "broken.py, line 2: ZeroDivisionError: division by zero"),
        ("x = (\n", "broken.py, line 1: SyntaxError: '(' was never closed"),
        ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
        *((f"{ROW}{made}\nrow = DefenseRow({of})\n", message) for made, of, message in ROWS),
        (
            "from vfljax.attacks import AttackRow\ndef f(bottoms): pass\nrow = AttackRow(f)\n",
            "broken:row: factory(bottoms) is given where factory(bottoms, num_classes) is expected",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path, text, message, tables):
    (tmp_path / "broken.py").write_text(text)
    with refused(message):
        plugins.use(str(tmp_path / "broken.py"))
    assert tables == (defenses.TABLE, attacks.TABLE)  # nothing of it is in use


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no_such_module", "the plugin 'no_such_module' is missing"),
        ("absent.py", "absent.py is missing"),
        ("a.b", "no name that a config could use"),
        ("two words.py", "no name that a config could use"),
        ("turtle.py", "the plugin turtle has the name of another module"),
    ],
)
def test_what_is_no_plugin_is_refused_in_one_line(tmp_path, monkeypatch, source, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "turtle", pathlib)
    (tmp_path / "turtle.py").write_text("")
    with pytest.raises(UserError, match=message):
        plugins.use(source)


def test_a_file_that_changed_after_its_import_is_refused(mine):
    plugins.use(mine)
    pathlib.Path(mine).write_text(OWN.read_text() + "changed = True\n")
    with pytest.raises(UserError, match="has changed since this process imported it: restart"):
        plugins.use(mine)


def test_all_plugins_that_a_sweep_needs_and_that_are_not_in_use_are_named_at_once(tmp_path):
    of = {"plugin": "mine"}
    header = {
        "plugins": {"mine:shuffle": of, "mine:noise": of, "his:rule": {"plugin": "his"}},
        "attacks": {"x": {"plugins": {"hers:guess": {"plugin": "hers"}}}},
    }
    with refused("--plugin=mine --plugin=his --plugin=hers"):
        plugins.check_in_use(header, tmp_path)
    plugins.check_in_use({"plugins": {}, "attacks": {}}, tmp_path)


def test_a_row_that_the_plugin_does_not_have_is_unknown(mine):
    plugins.use(mine)
    with refused("unknown defense 'mine:shufle': did you mean"):
        parse({"grid": {"a": {"mine:shufle": {}}}, "attacks": {}})


def run(experiment, workdir):
    """``vfljax.run_sweep`` without its report."""
    finish(experiment, workdir, "a test", say=lambda line: None)


def use_anew(mine, tables, text):
    """As another process that uses the plugin, whose file holds this text."""
    forget(tables)
    pathlib.Path(mine).write_text(text)
    plugins.use(mine)


def figures(workdir):
    sweep, found = store.load(workdir), judge_sweep(workdir)
    texts = [
        table.to_csv() for table in (verdict_tables.methods(found), report_tables.leaks(found))
    ]
    return comparable(sweep.results), comparable(sweep.attacks), texts


def test_a_sweep_of_own_rows_is_stored_reported_and_resumed(mine, tmp_path, tables):
    plugins.use(mine)
    workdir = tmp_path / "w"
    run(parse(CONFIG), workdir)
    trained = figures(workdir)
    assert {row["defenses"] for row in trained[0]} == {"mine:shuffle"}
    assert {row["label"] for row in trained[1]} == {"mine:guess/minus"}
    about = store.read_header(workdir)["plugins"]["mine:shuffle"]
    assert (about["plugin"], about["version"]) == ("mine", "0.1")

    forget(tables)  # as in another process that does not name the plugin
    pathlib.Path(mine).write_text("raise RuntimeError('it was imported')\n")
    assert figures(workdir) == trained
    for row, name in (
        (defenses.TABLE["mine:shuffle"], "rate"),
        (attacks.TABLE["mine:guess"], "sign"),
    ):
        assert row.factory is None
        assert name in ([*row.knobs] if isinstance(row, defenses.DefenseRow) else [*row.options])
        with refused("the plugin mine is not in use"):
            row((), 2)
    assert "Rows are swapped." in not_run.remarks(judge_sweep(workdir))
    experiment = experiment_of(store.load(workdir))
    for go_on in (lambda: run(experiment, workdir), lambda: attack(workdir, ["norm"])):
        with pytest.raises(UserError, match="^(?!.*contract).*the plugin mine.* is not in use"):
            go_on()

    changed = "was made with another file of the plugin mine"
    use_anew(mine, tables, "# a comment\n" + OWN.read_text())
    with refused(changed):
        run(parse(CONFIG), workdir)

    use_anew(mine, tables, OWN.read_text())
    run(parse(CONFIG), workdir)
    assert figures(workdir) == trained


def test_an_attack_of_ones_own_on_a_sweep_that_does_not_name_it(mine, defended, tmp_path, tables):
    workdir = shutil.copytree(defended.workdir, tmp_path / "w")
    plugins.use(mine)
    attack(workdir, ["mine:guess"])
    before = comparable(store.load(workdir).attacks)
    forget(tables)
    assert comparable(store.load(workdir).attacks) == before
    use_anew(mine, tables, OWN.read_text() + "changed = True\n")
    with refused("another file of the plugin mine"):
        attack(workdir, ["mine:guess"])
    use_anew(mine, tables, OWN.read_text().replace("AttackRow(total)", "AttackRow(total, rule=2)"))
    attack(workdir, ["mine:guess"])
    names = {(row["label"], row["rule"]) for row in store.load(workdir).attacks.to_pylist()}
    assert names >= {("mine:guess/rule=1", 1), ("mine:guess", 2)}
