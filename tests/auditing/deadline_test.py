"""Attacks are begun in their order until the time is up."""

import math
from types import SimpleNamespace
from typing import Any

from vfljax.auditing import deadline


def test_what_has_led_is_begun_first_and_what_is_stored_is_finished(monkeypatch):
    names = ("norm", "mean", "residual", "reader", "median", "probe")
    plans = [SimpleNamespace(variant=SimpleNamespace(name=n), every_job=["a job"]) for n in names]
    stored = SimpleNamespace(keys=lambda variant: ["a row"] * (variant.name == "median"))
    monkeypatch.setattr(deadline, "run_variants", lambda todo, stored: list(todo))
    left_out = {"residual"}
    ran: Any = deadline.until(math.inf, left_out)(plans, stored)
    assert [plan.variant.name for plan in ran] == ["reader", "probe", "mean", "norm", "median"]
    assert left_out == {"residual"}
    ran = deadline.until(0.0, left_out)(plans, stored)
    assert [plan.variant.name for plan in ran] == ["reader", "probe", "median"]
    assert left_out == {"residual", "mean", "norm"}
