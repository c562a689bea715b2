"""Write a table like Telco churn's, which the three-minute audits of ``analysis/results/audits`` are run on.

    python -m analysis.telco_like --out=telco.csv

7,000 rows and 20 columns: an id, categories in words, yes and no, two numbers and one that is blank where no
month was billed, and the label ``Churn``. All of it is drawn at random, by one fixed seed.
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np
import pandas as pd

ROWS = 7000
SERVICES = (
    *("OnlineSecurity", "OnlineBackup", "DeviceProtection", "TechSupport"),
    *("StreamingTV", "StreamingMovies"),
)
PAYMENTS = ["Electronic check", "Mailed check", "Bank transfer", "Credit card"]


def table() -> pd.DataFrame:
    """Returns the table; the label depends on tenure, contract, internet, payment, age and two services."""
    random = np.random.default_rng(0)

    def choice(values: list[str], shares: list[float] | None = None) -> np.ndarray:
        return random.choice(values, ROWS, p=shares)

    def yes(share: float) -> np.ndarray:
        return np.where(random.random(ROWS) < share, "Yes", "No")

    tenure = random.integers(0, 73, ROWS)
    contract = choice(["Month-to-month", "One year", "Two year"], [0.55, 0.21, 0.24])
    internet = choice(["DSL", "Fiber optic", "No"], [0.34, 0.44, 0.22])
    fiber, offline = internet == "Fiber optic", internet == "No"
    monthly = np.round(18 + random.gamma(4, 8, ROWS) + 25 * fiber, 2)
    billed = np.round(tenure * monthly * random.normal(1, 0.03, ROWS), 2).astype(str)
    payment = choice(PAYMENTS)
    senior = random.integers(0, 2, ROWS) * (random.random(ROWS) < 0.32)
    letters = list("ABCDEFGH")
    numbers = [
        f"{random.integers(1000, 9999)}-{''.join(random.choice(letters, 5))}" for _ in range(ROWS)
    ]
    columns = {
        "customerID": numbers,
        "gender": choice(["Male", "Female"]),
        "SeniorCitizen": senior,
        "Partner": yes(0.48),
        "Dependents": yes(0.3),
        "tenure": tenure,
        "PhoneService": yes(0.9),
        "MultipleLines": yes(0.42),
        "InternetService": internet,
    }
    for service in SERVICES:
        columns[service] = np.where(offline, "No internet service", yes(0.4))
    columns |= {
        "Contract": contract,
        "PaperlessBilling": yes(0.59),
        "PaymentMethod": payment,
        "MonthlyCharges": monthly,
        "TotalCharges": np.where(tenure == 0, " ", billed),
    }
    logit = -0.7 - 0.045 * tenure + 0.9 * fiber - 0.6 * offline + 0.3 * senior
    logit = logit + 1.1 * (contract == "Month-to-month") - 0.9 * (contract == "Two year")
    logit = (
        logit
        + 0.45 * (payment == "Electronic check")
        + 0.3 * (columns["PaperlessBilling"] == "Yes")
    )
    logit = logit - 0.4 * (
        (columns["OnlineSecurity"] == "Yes") * 1.0 + (columns["TechSupport"] == "Yes")
    )
    columns["Churn"] = yes(1 / (1 + np.exp(-logit)))
    return pd.DataFrame(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a table like Telco churn's.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("telco.csv"))
    table().to_csv(parser.parse_args().out, index=False)


if __name__ == "__main__":
    main()
