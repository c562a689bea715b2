"""Which jobs a cheaper attack settles, in loops over records."""


def panel(federation):
    return "no_split" if federation == "no_split" else "split"  # malicious federations are split


def settled_by(rows, jobs):
    """The label of the attack that settles each job, "" for a job that is to be run.

    An attack with k labels and a leak of at least .995 settles, in its configuration, panel and seed, every
    dearer attack by the same attackers that knows at least k labels. A trial's all-labels baseline is skipped
    with it. Oracles, diagnostics and learners neither settle nor are settled; untrained baselines always run.
    """
    out = []
    for job in jobs:
        names = []
        for row in rows:
            settles = row["role"] == "attack" and row["what"] == "attack" and row["leak"] >= 0.995
            if job["role"] != "attack" or job["what"] == "untrained" or not settles:
                continue
            if panel(row["federation"]) != panel(job["federation"]):
                continue
            if any(row[name] != job[name] for name in ("configuration", "seed", "attackers")):
                continue
            if row["cost"] < job["cost"] and row["known"] <= job["known"]:
                names.append((row["cost"], row["label"]))
        out.append(min(names)[1] if names else "")
    return out
