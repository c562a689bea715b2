"""Controls: what a sweep recommends, on permuted labels, and a table of both."""

import shutil

from vfljax.report import controls
from vfljax.report.sweep_answers import judge_sweep
from vfljax.scheduling import running
from vfljax.scheduling.work import Outcome


def test_controls_train_undefended_on_permuted_labels_and_stand_beside_the_true_ones(
    tiny_sweep, workdir, monkeypatch
):
    asked = []

    def finish(experiment, folder, *rest):
        asked.append((folder.name, experiment))
        shutil.copytree(tiny_sweep, folder)
        return Outcome({})

    monkeypatch.setattr(running, "finish", finish)
    assert not len(controls.control_table(judge_sweep(workdir)))
    running.control(workdir, "test", lambda line: None)
    data = {name: (of.data.permute_labels, of.data.permute_groups) for name, of in asked}
    assert data == {"scores": (1.0, controls.GROUPS), "all": (1.0, 0)}
    assert all(next(iter(of.grid)) == "undefended" for _, of in asked)
    assert all(of.seeds == 2 for _, of in asked)
    table = controls.control_table(judge_sweep(workdir))
    panel = table[table["configuration"] == "undefended"].groupby("federation")
    for _, of in panel:
        assert of["labels"].tolist() == [controls.TRUE, *controls.LABELS.values()]
        assert len({*of["leaks"]}) == 1  # the folders are copies of the sweep
