"""Command lines that cannot be meant: each is one line that names the flag, and nothing is written."""

import pytest

QUICK, W, TABLE = "--config=configs/quickstart.py", "--workdir={w}", "--dataset=table"

REFUSED = [
    ("sweep", [W], "holds no sweep: give a --config, for example configs/quickstart.py"),
    ("sweep", [QUICK], "--workdir is needed"),
    ("sweep", [QUICK, W, "--config.training.epoch=3"], "did you mean 'training.epochs'"),
    ("sweep", [QUICK, W, "--config.seeds=0"], "config.seeds=0: give a whole number"),
    ("sweep", ["--config=nowhere.py", W], "nowhere.py"),
    ("sweep", ["--config.seeds=3", W], "give --config=FILE too"),
    ("sweep", [QUICK, W, "--jobs=-1"], "--jobs=-1"),
    ("sweep", [QUICK, W, "--launcher=ssh"], "unknown launcher 'ssh'"),
    ("sweep", [QUICK, W, "--jobs=2"], "inline uses all"),
    ("sweep", [QUICK, W, "--dry_run", "--mend"], "leave --mend and --confirm out"),
    ("sweep", [QUICK, W, "--config.data.options.lable=y"], "has no field 'lable' for"),
    ("sweep", ["--config=configs/spambase.py", W], "data.dir is empty"),
    ("sweep", [QUICK, W, "--config.seeds=100000"], "beyond the limit of 10,000: choose"),
    ("sweep", [QUICK, W, "--config.seeds=100000000000", "--beyond_limits"], "to 2,147,483,647"),
    ("sweep", [QUICK, W, "--config.name=\x1b[2J"], r"config.name='\x1b[2J' holds the"),
    ("sweep", [QUICK, W, "--config.\x1b[2J=1"], r"\x1b[2J"),
    ("sweep", [QUICK, W, "--fail_verdict=nothing"], "unknown verdict of --fail_verdict 'nothing'"),
    ("sweep", ["--profile=tests"], "--profile='tests' cannot be written"),
    ("attack", ["--workdir=nowhere"], "nowhere holds no sweep"),
    ("attack", ["--known=5"], "--known is of a recorded exchange"),
    ("attack", ["--wire=a.npz", "--drop=norm"], "--drop is of a stored sweep"),
    ("attack", ["--drop=norm", "--attacks=mean", W], "leave --attacks out"),
    ("attack", ["--wire=", W], "--wire=() names no recording"),
    ("attack", ["--wire=a.npz,", W], "a.npz is missing"),
    ("attack", ["--wire=a.npz", W, "--utility=high"], "--utility='high'"),
    ("attack", ["--wire=a.npz", W, "--after_utility=0.5"], "give --after"),
    ("report", [], "--workdir is needed"),
    ("report", ["--workdir=nowhere"], "nowhere holds no sweep"),
    ("reproduce", [], "give --table"),
    ("reproduce", ["--record"], "give --table too"),
    ("reproduce", ["--table=gafm/9"], "unknown --table 'gafm/9': did you mean"),
    ("reproduce", ["--table=gafm/2", "--dataset=mnist"], "data set of gafm/2"),
    (
        "reproduce",
        ["--table=gafm/2", "--dataset=spambase", "--variant=maxmin"],
        "variant of gafm/2",
    ),
    ("reproduce", ["--table=gafm/2", "--data_dir=nowhere", W], "is missing"),
    ("data", ["--dataset=digit"], "did you mean 'digits'"),
    ("data", ["--dataset=digits", "--option=x"], "--option='x': give name=value"),
    ("data", ["--dataset=digits", "--option=x=1"], "unknown option of the data set digits 'x'"),
    ("data", [TABLE, "--data_dir=x.csv"], "--option=label is needed by the data set table"),
    ("data", [TABLE, "--option=label=y"], "--data_dir is empty: give the table's file"),
    ("data", ["--dataset=digits", "--shares=a,b"], "--shares='a'"),
    ("data", ["--dataset=digits", "--shares=0,1"], "a number above 0"),
    ("data", ["--dataset=digits", "--passive=20"], "would own none"),
    ("data", ["--dataset=digits", "--passive=100000000"], "--passive=100000000 is beyond"),
    ("data", ["--dataset=spambase", "--data_dir=nowhere"], "is missing"),
    ("data", ["--dataset=digits", "--data_dir=nowhere"], "digits comes with this package"),
    ("data", [TABLE, f"--data_dir={300 * 'x'}", "--option=label=y"], "File name too long"),
    ("data", ["--dataset=digits", f"--prepare={300 * 'x'}"], "File name too long"),
    ("data", ["--dataset=digits", "--prepare="], "--prepare is empty"),
    ("data", ["--option=label=y"], "--option is of no data set: give --dataset=NAME"),
    ("data", [TABLE, "--option=a=1", "--option=a=2"], "--option=a=... is given twice"),
    ("data", [TABLE, "--option=label={'a'}"], "give a number, a text"),
    ("data", [QUICK, "--dataset=digits"], "--dataset is given beside --config"),
]


@pytest.mark.parametrize(("command", "words", "line"), REFUSED)
def test_a_command_line_that_cannot_be_meant_is_one_line(refused, tmp_path, command, words, line):
    assert line in refused(command, *(word.replace("{w}", str(tmp_path / "w")) for word in words))
    assert not [*tmp_path.iterdir()]


CONFIGS = [
    ("def get_config():\n    return 1 / 0\n", "2: ZeroDivisionError: division by zero"),
    ("def get_config(:\n    pass\n", "1: SyntaxError: invalid syntax"),
    ("raise Exception('a\\nb \\x1b[31m')\n", r"1: Exception: a b \x1b[31m"),
    ("raise MemoryError\n", "1: MemoryError\n"),
    ("import sys\nsys.exit(0)\n", "2: SystemExit: 0\n"),
    (
        "from vfljax.errors import UserError\ndef get_config():\n"
        "    try:\n        int('x')\n    except ValueError:\n"
        "        raise UserError('give a number')\n",
        "6: give a number",
    ),
]


@pytest.mark.parametrize(("source", "says"), CONFIGS)
def test_what_a_config_file_raises_is_one_line_with_its_place(refused, tmp_path, source, says):
    path = tmp_path / "bad.py"
    path.write_text(source)
    line = refused("sweep", f"--config={path}", f"--workdir={tmp_path / 'w'}")
    assert line.startswith(f"error: config: {path}, line {says}")


def test_a_config_file_that_gives_no_config_is_refused(refused, tmp_path):
    path, workdir = tmp_path / "none.py", f"--workdir={tmp_path / 'w'}"
    path.write_text("def get_config():\n    pass\n")
    line = refused("sweep", f"--config={path}:variant", workdir)
    assert "TypeError: get_config() takes 0" in line  # it has no variants
    assert "returned NoneType" in refused("sweep", f"--config={path}", workdir)
