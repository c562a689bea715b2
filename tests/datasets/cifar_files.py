"""Format-true files of CIFAR-10 and CIFAR-100, small."""

import numpy as np
import pytest

from tests.datasets import small
from vfljax.errors import UserError


def binary10(prefix="cifar-10-batches-bin/", rows=(12, 4, 2, 1, 3, 10)):
    """{path: bytes} of five training batches and the test batch, and their pixels and labels."""
    files, xs, ys = {}, [], []
    names = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
    for seed, (name, many) in enumerate(zip(names, rows)):
        files[prefix + name], x, y = small.binary_rows(seed, many, 1, (10,))
        xs.append(x)
        ys.append(y[:, 0])
    return files, np.concatenate(xs), np.concatenate(ys)


def binary100(prefix="cifar-100-binary/"):
    files, xs, ys = {}, [], []
    for seed, name in enumerate(("train.bin", "test.bin")):
        files[prefix + name], x, y = small.binary_rows(seed, 110, 2, (20, 100))
        xs.append(x)
        ys.append(y)
    return files, np.concatenate(xs), np.concatenate(ys)


def refused(loader, folder, **options):
    with pytest.raises(UserError) as error:
        loader(str(folder), **options)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)
