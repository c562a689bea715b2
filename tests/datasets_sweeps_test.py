"""Every data set's config, from files in the set's own format to scored attacks: its smoke variant."""

import numpy as np
import pytest

from tests.configs_test import FOLDER, load
from tests.datasets import clicks, reviews, small
from tests.sweeps import train
from vfljax import datasets
from vfljax.datasets.partition import divide
from vfljax.datasets.splits import split_rows
from vfljax.sweep.grid import parse

RNG = np.random.default_rng(0)


def images(folder, size, group):
    """160 images of two classes, four of each group: [160, size, size, 3]."""
    labels = np.arange(160) // 4 % 2
    x = RNG.integers(0, 200, (160, size, size, 3)) + 40 * labels[:, None, None, None]
    arrays = {"x": x.astype(np.uint8), "y": labels.astype(np.uint8), group: np.arange(160) // 4}
    return small.write(folder, {"images.npz": small.archived(**arrays)})


def credit(folder):
    module = load(FOLDER / "datasets" / "default_credit.py")
    history = [f"{name}{i}" for name in ("PAY_", "BILL_AMT") for i in range(3)]
    names = ["ID", "LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", *history, module.LABEL]
    lines = [",".join(names)]
    for i in range(80):
        values = RNG.integers(0, 3, len(names) - 2) + i % 2
        lines.append(",".join([str(i), *map(str, values), str(i % 2)]))
    (folder / "credit.csv").write_text("\n".join(lines) + "\n")
    return folder / "credit.csv"


WRITE = {
    "cifar10": lambda folder: small.write(folder, small.binary10("", rows=(20,) * 6)[0]),
    "bhi": lambda folder: images(folder, 50, "patient"),
    "ham10000": lambda folder: images(folder, 32, "lesion_id"),
    "imdb": lambda folder: reviews.write_csv(folder, reviews.reviews(40)),
    "imdb_bert": lambda folder: reviews.write_csv(folder, reviews.reviews(40)),
    "criteo": lambda folder: small.write(folder, {"train.txt": clicks.tsv(clicks.criteo_rows(80))}),
    "avazu": lambda folder: small.write(
        folder, {"train.csv": clicks.avazu_csv(clicks.avazu_rows(80))}
    ),
    "default_credit": credit,
}


# they alone need the federation without model splitting, whose networks compile as long again; it is
# tried with the other sets
UNTRIED = {"bhi": ("norm", "mean"), "ham10000": ("norm", "mean"), "default_credit": ("passive",)}


def test_every_data_set_s_config_is_here():
    embedded = {"diabetes"}  # comes with scikit-learn
    assert {p.stem for p in (FOLDER / "datasets").glob("*.py")} == {*WRITE, *embedded}


def smoke_variant(name, folder):
    """The smoke variant of a data set's config, on files written here."""
    if name == "imdb_bert":
        pytest.importorskip("tokenizers", reason="WordPiece needs the extra 'text'")
    (folder / "data").mkdir()
    where = WRITE[name](folder / "data")
    module = load(FOLDER / "datasets" / f"{name}.py")
    assert "python -m launch.sweep" in module.__doc__
    config = module.get_config("smoke")
    config.data.dir = str(where)
    return config


@pytest.mark.parametrize("name", WRITE)
def test_a_config_divides_a_file_of_the_set_s_format(name, tmp_path):
    experiment = parse(smoke_variant(name, tmp_path))
    asked = experiment.data
    data = datasets.load(asked.name, asked.dir, asked.options)
    assert len(divide(data, experiment.parties)) == experiment.parties.owners
    split_rows(data, 0, asked.train, asked.validation, asked.test)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITE)
def test_eight_settings_run_end_to_end_on_a_file_of_the_set_s_format(name, tmp_path):
    config = smoke_variant(name, tmp_path)
    for attack in UNTRIED.get(name, ()):
        del config.attacks[attack]
    finished = train(tmp_path / "run", config)
    split = [row for row in finished.results.to_pylist() if row["federation"] == "split"]
    assert len(split) == 8
    assert {row["status"] for row in finished.results.to_pylist()} == {"ok"}
    assert {row["attack"] for row in finished.attacks.to_pylist()} == set(config.attacks)
