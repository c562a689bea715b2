"""Properties on a few or on many drawn examples; damage to files, and what a loader makes of it."""

import functools
import gzip
import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfljax.errors import UserError

NEW = st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from([b'"', b",", b"\n", b"\r", b"\0", b'""', b"\\n", b"\xff"]),
)
few_or_many = pytest.mark.parametrize(
    "examples", [pytest.param(40, id="few"), pytest.param(200, id="many", marks=pytest.mark.slow)]
)


def drawn(health=(), **strategies):
    """As hypothesis's ``given``, on a few examples and, among the slow tests, on many.

    ``health``: checks of hypothesis's that the strategies do not pass."""

    def decorate(test):
        left = inspect.signature(given(**strategies)(test)).parameters.values()
        examples = inspect.Parameter("examples", inspect.Parameter.KEYWORD_ONLY)

        @functools.wraps(test)
        def run(examples, **fixtures):
            many = settings(max_examples=examples, deadline=None, suppress_health_check=health)
            many(given(**strategies)(test))(**fixtures)

        signature = inspect.Signature([*left, examples])
        setattr(run, "__signature__", signature)  # noqa: B010
        return few_or_many(run)

    return decorate


def mutate(data, content):
    """``content`` with bytes flipped, cut off at the end, cut out or put in; of gzip now and then what it
    holds."""
    if content[:2] == b"\x1f\x8b" and data.draw(st.booleans(), "inside"):
        return gzip.compress(mutate(data, gzip.decompress(content)), mtime=0)
    way = data.draw(st.sampled_from(["flip", "flip", "truncate", "delete", "insert"]), "way")
    at = data.draw(st.integers(0, max(len(content) - 1, 0)), "at")
    if way == "truncate":
        return content[:at]
    if way == "delete":
        return content[:at] + content[at + data.draw(st.integers(1, 600), "length") :]
    if way == "insert":
        return content[:at] + data.draw(NEW, "new") + content[at:]
    out = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4), "flips")):
        if out:
            out[data.draw(st.integers(0, len(out) - 1), "place")] ^= data.draw(st.integers(1, 255))
    return bytes(out)


def loads_or_explains(loader, folder, **options):
    """The loaded data set, or None after exactly one clear line; anything else fails."""
    try:
        dataset = loader(str(folder), **options)
    except UserError as error:
        message = str(error)
        assert message.strip()
        assert len(message.splitlines()) == 1
        return None
    x = dataset.features
    rows = len(x.offsets) - 1 if dataset.kind == "text" else len(x)
    assert rows == len(dataset.labels) > 1
    assert dataset.labels.dtype == np.int32
    assert 0 <= dataset.labels.min() < dataset.labels.max() < dataset.num_classes
    for part in (dataset.test, dataset.groups):
        assert part is None or part.shape == dataset.labels.shape
    assert dataset.kind == "text" or x.dtype.kind != "f" or not np.isinf(x).any()
    return dataset


def damaged(data, loader, folder, **options):
    """Mutates, renames or removes one file below a folder, loads, and puts the file back."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    path = data.draw(st.sampled_from(files), "file")
    content, other = path.read_bytes(), None
    way = data.draw(st.integers(0, 19), "way")
    try:
        if way == 0:
            path.unlink()
        elif way == 1:
            name = data.draw(st.text(min_size=1, max_size=6), "name").encode("utf-8", "replace")
            name = name.decode().replace("/", "_").replace("\0", "_")
            other = path.rename(path.parent / f"{name}{path.suffix}")
        else:
            path.write_bytes(mutate(data, content))
        return loads_or_explains(loader, folder, **options)
    finally:
        if other is not None:
            other.unlink()
        path.write_bytes(content)
