"""Time of a step with rows that stay on the host, against rows on the device, in turns.

    python -m analysis.streaming --turns=9

The first shard of configs/large_synthetic.py:million, six of its trials on two cores, is trained for an epoch
of 100,000 of its 1,004,000 rows, once with its rows on the device and once streamed, in each turn. It prints
the times and their ratio.
"""

from __future__ import annotations

import argparse
import functools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

import vfljax
from analysis.benchmark.measuring import in_turn, markdown, ratios, times
from configs.large_synthetic import get_config
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import make_plan
from vfljax.sweep.shard_trainer import Orders, Trainer

ROWS = 100_000  # of an epoch
RESIDENT_GB = {"resident": 4.0, "streamed": 0.0}


def timed(config: Any, rows: int, resident_gb: float) -> Any:
    """Returns ``measure() -> microseconds per trial and step`` of an epoch.

    Args:
      config: of the sweep.
      rows: of an epoch.
      resident_gb: above which rows stay on the host.
    """
    data = {**config["data"], "train": rows, "resident_gb": resident_gb}
    plan = make_plan(parse({**config, "data": data}))
    shard, spec = plan.shards[0], plan.groups[0].spec
    with ThreadPoolExecutor(1) as pool:
        trainer = Trainer(plan, shard, pool, Orders(plan))
    start = trainer.start(shard)

    def measure() -> float:
        began = time.perf_counter()
        jax.block_until_ready(next(trainer.epochs(*start)))
        return (time.perf_counter() - began) / (len(shard.trials) * spec.steps_per_epoch) * 1e6

    measure()  # compiles
    return measure


def measured(config: Any, rows: int, turns: int) -> str:
    """Returns the table.

    Args:
      config: of the sweep.
      rows: of an epoch.
      turns: in which both are measured.
    """
    every = in_turn(
        {name: timed(config, rows, resident_gb) for name, resident_gb in RESIDENT_GB.items()}, turns
    )
    to_resident = functools.partial(ratios, those=every["resident"])
    cells = [
        [name, times(each).shown(",.0f"), to_resident(each).shown(".2f")]
        for name, each in every.items()
    ]
    return markdown(("rows", "µs per trial and step (median; range)", "to resident"), cells)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=9)
    vfljax.use_this_machine()
    print(measured(get_config("million"), ROWS, parser.parse_args().turns))
