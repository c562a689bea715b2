"""Which party owns what: shares, names, globs, images, patches; every fault is one line."""

import numpy as np
import pytest

from tests.datasets.refusals import one_line
from vfljax.config import make
from vfljax.datasets.core import Column, Dataset, Ragged, Vocabulary
from vfljax.datasets.npy import Part
from vfljax.datasets.partition import divide, places
from vfljax.errors import UserError

ROWS = 6
LABELS = np.arange(ROWS, dtype=np.int32) % 2
PATCHES = np.arange(2, dtype=np.uint8).reshape(1, 2, 1, 1, 1)


def parties(passive=1, **changes):
    return make({"parties": {"passive": passive, **changes}}).parties


def table(names="abcdef"):
    columns = tuple(Column(name) for name in names)
    features = np.arange(ROWS * len(names), dtype=np.float32).reshape(ROWS, -1)
    return Dataset("made", features, LABELS, 2, columns=columns)


def image(height=4, width=6, channels=(3,)):
    shape = (ROWS, height, width, *channels)
    features = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    return Dataset("pictures", features, LABELS, 2, "image")


def owned(dataset, **changes):
    """Source columns of each party."""
    blocks = divide(dataset, parties(**changes))
    return ["".join(dict.fromkeys(column.name for column in block.columns)) for block in blocks]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"passive": 3}, ["ab", "cd", "e", "f"]),  # the first parties take what is left over
        ({"passive": 3, "label_features": False}, ["ab", "cd", "ef"]),
        ({"passive": 2, "shares": (3, 2, 1)}, ["abc", "de", "f"]),
        ({"shares": (5, 3)}, ["abcd", "ef"]),  # 3.75 columns are 4
        ({"columns": (["f"], "*")}, ["f", "abcde"]),
        ({"passive": 2, "columns": (["f"], ["a", "[bc]"], ("*",))}, ["f", "abc", "de"]),
    ],
)
def test_columns_are_owned_by_shares_or_by_names(changes, names):
    assert owned(table(), **changes) == names


def test_places_cover_everything_once_and_in_order():
    for seed in range(20):
        random = np.random.default_rng(seed)
        shares, length = random.uniform(0.1, 3, random.integers(1, 7)), random.integers(200, 500)
        found = places(np.concatenate([[0], np.cumsum(shares) / np.sum(shares)]), length)
        assert [i for a, b in found for i in range(a, b)] == list(range(length))
        for (a, b), share in zip(found, shares, strict=True):
            assert abs((b - a) - share / sum(shares) * length) <= 1


def test_a_column_whose_name_is_a_glob_is_itself_first():
    columns = (Column("a*"), Column("ab"), Column("c"))
    dataset = Dataset("made", np.zeros((ROWS, 3)), LABELS, 2, columns=columns)
    assert owned(dataset, passive=1, columns=(("a*",), ("*",))) == ["a*", "abc"]


def test_the_categories_of_one_column_never_part():
    columns = (
        Column("a"),
        *(Column("b", "category", v) for v in "xyz"),
        Column("c", "code", vocabulary=7),
    )
    features = np.arange(ROWS * 5, dtype=np.float32).reshape(ROWS, 5)
    dataset = Dataset("made", features, LABELS, 2, columns=columns)
    first, second, third = divide(dataset, parties(passive=2))
    np.testing.assert_array_equal(first.features, features[:, :1])
    np.testing.assert_array_equal(second.features, features[:, 1:4])
    np.testing.assert_array_equal(third.features, features[:, 4:])
    assert [block.input.vocabulary for block in (first, second, third)] == [(), (), (7,)]


def test_columns_that_do_not_stand_together_keep_the_table_s_order():
    dataset = table()
    block, _ = divide(dataset, parties(columns=(("e", "b"), "*")))
    np.testing.assert_array_equal(block.features, dataset.features[:, [1, 4]])


def test_images_divide_by_columns_rows_and_patches():
    pictures = image()
    x = pictures.features
    cells = {
        "contiguous": {"rows 0-3, columns 0-2": x[:, :, :3], "rows 0-3, columns 3-5": x[:, :, 3:]},
        "rows": {"rows 0-1, columns 0-5": x[:, :2], "rows 2-3, columns 0-5": x[:, 2:]},
    }
    for rule, parts in cells.items():
        for block, (about, pixels) in zip(
            divide(pictures, parties(rule=rule)), parts.items(), strict=True
        ):
            assert (block.about, block.input.shape) == (about, pixels.shape[1:])
            np.testing.assert_array_equal(block.features, pixels)
    four = divide(pictures, parties(passive=3, rule="grid"))
    quarters = [x[:, :2, :3], x[:, :2, 3:], x[:, 2:, :3], x[:, 2:, 3:]]
    for block, pixels in zip(four, quarters, strict=True):
        np.testing.assert_array_equal(block.features, pixels)
    blocks = divide(image(width=10), parties(passive=2, shares=(2, 2, 1)))
    assert [block.input.shape for block in blocks] == [(4, 4, 3), (4, 4, 3), (4, 2, 3)]


@pytest.mark.parametrize(
    ("dataset", "changes"),
    [
        (table(), {"passive": 2}),
        (table(), {"columns": (("a", "c", "f"), "*")}),
        (image(channels=()), {"passive": 3, "rule": "grid"}),
        (image()._replace(features=image().features[:, None] + PATCHES, kind="patches"), {}),
    ],
)
def test_what_is_mapped_from_disk_is_cut_as_it_is_read(tmp_path, dataset, changes):
    np.save(tmp_path / "x.npy", dataset.features)
    mapped = dataset._replace(features=np.load(tmp_path / "x.npy", mmap_mode="r"))
    rows = np.array([4, 0, 4])
    whole, lazy = (divide(data, parties(**changes)) for data in (dataset, mapped))
    for block, part in zip(whole, lazy, strict=True):
        assert isinstance(block.features, np.ndarray)
        assert isinstance(part.features, Part)
        assert (part.input, part.columns, part.about) == (block.input, block.columns, block.about)
        for about in ("shape", "dtype", "nbytes", "ndim"):
            assert getattr(part.features, about) == getattr(block.features, about)
        np.testing.assert_array_equal(np.asarray(part.features), block.features)
        np.testing.assert_array_equal(part.features[rows], block.features[rows])


def test_one_patch_a_party():
    features = np.arange(ROWS * 3 * 2 * 2 * 1, dtype=np.uint8).reshape(ROWS, 3, 2, 2, 1)
    dataset = Dataset("tissue", features, LABELS, 2, "patches")
    blocks = divide(dataset, parties(passive=2))
    for p, block in enumerate(blocks):
        np.testing.assert_array_equal(block.features, features[:, p])
    with pytest.raises(UserError, match=r"3 patches a row.*2 parties"):
        divide(dataset, parties(passive=1))


def test_a_text_s_special_tokens_and_shares_reach_the_blocks_and_the_network():
    """[PAD] is not 0 here, and shares are not equal: neither may be swapped."""
    ragged = Ragged(np.arange(10, 10 + 8 * ROWS, dtype=np.int32), np.arange(0, 8 * ROWS + 1, 8))
    data = Dataset("texts", ragged, LABELS, 2, "text", tokens=Vocabulary(90, 7, 5, 6), length=9)
    first, second = divide(data, parties(shares=(3, 1)))
    assert first.features[0].tolist() == [5, 10, 11, 12, 13, 14, 15, 6, 7]
    assert second.features[0].tolist() == [5, 16, 17, 6, 7, 7, 7, 7, 7]
    for block in (first, second):
        assert block.input == ("text", (9,), (90,), 7)
    assert first.about == "words from 0% to 75% of each text, 9 tokens"
    assert second.about == "words from 75% to 100% of each text, 9 tokens"


BAD = [
    (table(), {"passive": 6}, "party 6 of 7 parties would own none of the data's 6 columns"),
    (table(), {"rule": "rows"}, "divides images and made is of kind 'table'"),
    (image(), {"columns": ("a", "b")}, "pictures is of kind 'image'"),
    (image(), {"rule": "grid", "shares": (1, 2)}, "leave shares empty"),
    (table(), {"columns": ("a",)}, "has 1 entries for 2 parties"),
    (table(), {"columns": ("a", "z*")}, "unknown column of party 1 in config.parties.columns 'z*'"),
    (table(), {"columns": (("a", "b"), "[b-d]")}, "'b' is claimed by party 0 and party 1"),
    (table(), {"columns": ("a", "[bc]")}, "no party owns d, e, f"),
    (table(), {"columns": ("a", "*"), "shares": (2, 1)}, "config.parties.shares=(2.0, 1.0) divides col"),
    (table("ab"), {"columns": (("a", "b"), "*")}, "nothing is left for party 1"),
]  # fmt: skip


@pytest.mark.parametrize(("dataset", "changes", "says"), BAD, ids=[b[2][:40] for b in BAD])
def test_bad_divisions_are_one_clear_line(dataset, changes, says):
    one_line(lambda: divide(dataset, parties(**changes)), says)
