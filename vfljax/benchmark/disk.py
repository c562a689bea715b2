"""How long it takes to read a table in each form it could be prepared in: a suite of
``vfljax benchmark``. What leaves: the figures and their table.

100,000 rows of 39 float32 numbers: our prepared form (.npy mapped from disk, all rows copied once), the
same rows in random order, Parquet (pyarrow), and TFDS's array_record a row at a time (a fifth of the
rows, times five).
"""

from __future__ import annotations

import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, COLUMNS, SHARE = 100_000, 39, 5


def _array_record(folder: str, x: np.ndarray) -> Callable[[], Any]:
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core import registered

    with registered.skip_registration():

        class Rows(tfds.core.GeneratorBasedBuilder):
            VERSION = tfds.core.Version("1.0.0")
            name = "rows"

            def _info(self) -> Any:
                row = tfds.features.Tensor(shape=(COLUMNS,), dtype=np.float32)
                return tfds.core.DatasetInfo(
                    builder=self, features=tfds.features.FeaturesDict({"x": row})
                )

            def _split_generators(self, dl_manager: Any) -> Any:
                return {"train": self._generate_examples()}

            def _generate_examples(self) -> Iterator[tuple[int, dict[str, Any]]]:
                yield from ((i, {"x": row}) for i, row in enumerate(x))

    make: Any = Rows
    builder = make(data_dir=folder, file_format="array_record")
    builder.download_and_prepare()
    source: Any = builder.as_data_source("train")
    return lambda: np.stack([row["x"] for row in source])


def measured(repeats: int) -> tuple[dict[str, Any], str]:
    """Figures and table: every form in turn, ``repeats`` times."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    order = rng.permutation(ROWS)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        np.save(path / "x.npy", x)
        pq.write_table(pa.table({f"c{j}": x[:, j] for j in range(COLUMNS)}), path / "x.parquet")

        def mapped() -> np.ndarray:
            return np.load(path / "x.npy", mmap_mode="r", allow_pickle=False)

        def parquet() -> np.ndarray:
            table = pq.read_table(path / "x.parquet")
            return np.stack([column.to_numpy() for column in table.columns], axis=1)

        forms: dict[str, tuple[Callable[[], Any], int]] = {
            ".npy, mapped": (lambda: np.array(mapped()), 1),
            ".npy, mapped, random order": (lambda: mapped()[order], 1),
            "Parquet": (parquet, 1),
            "array_record, row by row": (_array_record(folder, x[: ROWS // SHARE]), SHARE),
        }
        for name, (read, times) in forms.items():
            seconds = []
            for _ in range(repeats if times == 1 else 1):
                began = time.perf_counter()
                dataset = read()
                seconds.append((time.perf_counter() - began) * times)
            assert dataset.shape == (ROWS // times, COLUMNS)
            rows.append({"form": name, "milliseconds": statistics.median(seconds) * 1e3})
    lines = ["| form | ms to read 100,000 x 39 float32 |", "|---|---|"]
    lines += [f"| {row['form']} | {row['milliseconds']:,.1f} |" for row in rows]
    return {"rows": rows}, "\n".join(lines)
