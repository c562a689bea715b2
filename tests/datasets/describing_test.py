"""What a person is told of a data set: plain lines, whatever it is called and however many classes."""

import numpy as np

from vfljax.config import Parties
from vfljax.datasets import describing, prepared
from vfljax.datasets.core import Column, Dataset
from vfljax.datasets.partition import divide
from vfljax.models.making import networks_for

LABELS = np.arange(8, dtype=np.int32) % 2
MADE = Dataset("made", np.ones((8, 2), np.float32), LABELS, 2)


def described(dataset):
    blocks = divide(dataset, Parties())
    return describing.describe(dataset, blocks, True, networks_for(blocks[0].input))


def test_what_names_hold_reaches_no_terminal(tmp_path):
    odd = "a\x1b[2J\nb\u2028"
    columns = (Column(odd), Column("c", "category", odd))
    dataset = MADE._replace(name=odd, columns=columns, classes=(odd, "yes"), notes=(odd,))
    prepared.write(dataset, tmp_path / "x", {"label": odd}, odd)
    usual = MADE._replace(columns=(Column("a"), Column("c", "category", "b")), notes=("note",))
    text = described(dataset)
    assert len(text.splitlines()) == len(described(usual).splitlines())
    assert all(c.isprintable() for c in "".join(text.split("\n")))
    assert describing.origin(str(tmp_path / "x")).isprintable()


def test_classes_beyond_counting_are_told_by_their_number():
    labels = np.where(LABELS == 1, 2**31 - 1, 3).astype(np.int32)
    lines = described(MADE._replace(labels=labels, num_classes=2**31)).splitlines()
    assert "  3: 4 (50.00%)" in lines
    assert "  4: 0 (0.00%)" in lines
    assert "  ... and 2,147,483,608 more" in lines
