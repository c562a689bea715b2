"""``launch.audit``: requests that cannot be meant."""

import pytest

from tests.auditing.survey_test import values, written

AUDIT = ["--data=t.csv", "--label=y", "--parties=bank: age, job; telco: pay*"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--data is needed"),
        (["--workdir=w", *AUDIT[:2]], "--parties is needed"),
        (["--workdir=w", *AUDIT[1:]], "--data is needed"),
        (["--workdir=w", *AUDIT, "--label=z"], "column in --label 'z'"),
        (["--workdir=w", *AUDIT, "--budget=soon"], "--budget='soon' is no time"),
        (["--workdir=w", *AUDIT, "--federation=some"], "--federation"),
        (["--workdir=w", *AUDIT, "--known=one"], "known"),
        (["--workdir=w", *AUDIT, "--label_party=shop"], "party in --label_party 'shop'"),
        (["--workdir=w", *AUDIT, "--attackers=bank"], "has the labels"),
        (["--workdir=w", *AUDIT, "--option=drop=zz*"], "--option=drop="),
        (["--workdir=w", *AUDIT, "--known=500"], "error: --known=500 labels are more than the 72"),
        (["--workdir=w", *AUDIT, "--seeds=20000"], "error: --seeds=20000 is beyond the limit"),
        (["--workdir=w", *AUDIT, "--max_leak=nan"], "--max_leak=nan: give a number"),
        (["--workdir=w", *AUDIT, "--data=absent.csv"], "absent.csv is missing"),
        (
            ["--workdir=w", *AUDIT, "--atackers=telco"],
            "error: Unknown command line flag 'atackers'",
        ),
        (["--workdir=t.csv", *AUDIT], "--workdir=t.csv is a file: name a folder"),
    ],
)
def test_an_audit_that_cannot_be_meant_is_one_line(
    refused, tmp_path, monkeypatch, arguments, message
):
    written(tmp_path / "t.csv", values())
    monkeypatch.chdir(tmp_path)
    assert message in refused("audit", *arguments)
    assert not (tmp_path / "w").exists()
