"""Every real set, as it was read when its sum was written here.

``PINS`` has the loader, the path below the folder of real data, the options, and the first 16 digits of
``core.checksum`` (values, shapes, types) and of ``core.identity`` (also columns, test rows and groups).
A change of either changes what every stored sweep on that set was trained on.
"""

import pytest

from tests.conftest import real_data
from vfljax import datasets
from vfljax.datasets.core import checksum, identity

HEAD = "criteo/train_head10k.txt.gz"
SPREAD = "criteo/train_spread.csv.gz"
AVAZU = "avazu/train_head9999.csv.gz"
CREDIT = "default_credit/UCI_Credit_Card.csv.gz"
HASHED = {"form": "hashed", "buckets": 8192, "crosses": True, "counts": True}
FEW = {"numbers": "raw", "rows": 600, "positive_ratio": 0.45}
CREDIT_OPTIONS = {
    "label": "default.payment.next.month",
    "drop": ("ID",),
    "categorical": ("SEX", "EDUCATION", "MARRIAGE"),
}
BANK = "bank_marketing/bank-full.csv.gz"

PINS = (
    ("synthetic", "", {"rows": 30, "columns": 4}, "5c373ff2af897722", "a9e0364093751102"),
    ("digits", "", {}, "f2904bd3d48220f3", "571b948ad0a576a4"),
    ("breast_cancer", "", {}, "831157eee0ed06d5", "e7190c8b85bdc619"),
    ("spambase", "spambase", {}, "e8383ecddd97098a", "e70935147c6f406f"),
    ("criteo", SPREAD, {"form": "unique", "balanced": True}, "1d415c85825b2af5", "c97f7df23a808913"),
    ("criteo", SPREAD, {"form": "frequent"}, "a25dd3d38f538dfe", "33446d6e94ec0b54"),
    ("criteo", HEAD, FEW, "85d943ad055b2bd7", "bfcf4d4c2143bca6"),
    ("avazu", AVAZU, {}, "e2edbbe7aa404b42", "9343643da6b6e9a3"),
    ("table", CREDIT, {**CREDIT_OPTIONS, "encoding": "codes"}, "9962e4598dcda924", "3f0816d155c82efe"),
    ("table", BANK, {"label": "y"}, "0a0e279b43385cc8", "11d91f4b9cfd7756"),
    ("bhi", "bhi", {"patches": 2}, "0adb1e2e98a0f4dd", "e8eedb2c3912fee0"),
    ("ham10000", "ham10000", {"size": 32}, "b8402b9646ffb5a1", "1929b4ccdf7eb3ed"),
    ("cifar10", "cifar10_exact", {}, "e85d6834dabb2955", "0b1c1c8478e9b6b1"),
    ("cifar100", "cifar100_exact", {}, "086dae247a7ec340", "6ebe58a4a8905713"),
)  # fmt: skip
SLOW = (
    ("criteo", HEAD, HASHED, "18c78cfd2976291f", "b64a728da37c89ff"),
    ("cifar10", "cifar10_jpeg", {}, "ebd7d56b8ec5937c", "057f152c8690c94e"),
    ("imdb", "imdb", {}, "94b148a91ae96071", "e13687788b25c94a"),
    ("imdb", "imdb", {"form": "wordpiece"}, "a5b77a0f65f0f3ec", "de32d8b20a52cd51"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "path", "options", "values", "all_of_it"),
    [*PINS, *(pytest.param(*pin, marks=pytest.mark.slow) for pin in SLOW)],
)
def test_a_real_set_is_read_as_it_was(name, path, options, values, all_of_it):
    folder, _, file = path.partition("/")
    data = datasets.load(name, path and str(real_data(folder) / file), options)
    assert (checksum(data)[:16], identity(data)[:16]) == (values, all_of_it)
