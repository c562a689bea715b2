"""Judging in loops over lists of dicts: one number for each run, verdicts, costs and chosen operating points.

Rows and trials are records of the frames of ``vfljax.report.frames``. A missing number is None or NaN.
"""

import math
import statistics

from scipy import stats

PROTECTS, NOTHING = "protects from what was tried", "nothing to protect"


def finite(x):
    return x is not None and math.isfinite(x)


def quantile(level, n):
    return float(stats.t.ppf(level, n - 1))


def half_row(m):
    q = 0.5 / (m + 1)
    return math.sqrt(q * (1 - q) / m)


def lim(by_seed, h=0.0, level=0.95, fewest=3):
    """Number, mean, lower and upper limit of the values of a dict by seed."""
    x = [v for v in by_seed.values() if finite(v)]
    n = len(x)
    mean = statistics.fmean(x) if x else math.nan
    if n < fewest:
        return n, mean, math.nan, math.nan
    r = quantile(level, n) * max(statistics.stdev(x), h) / math.sqrt(n)
    return n, mean, mean - r, mean + r


def minus(a, b, weight=1.0):
    return {s: a[s] - weight * b[s] for s in a if s in b and finite(a[s]) and finite(b[s])}


def numbers(rows):
    """The K of the verdicts."""
    return sorted({r["known"] for r in rows if r["role"] == "attack" and r["known"] > 0}) or [0]


class Sweep:
    def __init__(self, rows, trials, facts):
        diverged = {t["trial"] for t in trials if t["diverged"]}
        self.attacks = [r for r in rows if r["role"] == "attack" and r["trial"] not in diverged]
        self.by_point, self.learners = {}, {}
        for r in self.attacks:
            self.by_point.setdefault((r["panel"], r["configuration"]), []).append(r)
        for r in rows:
            if r["role"] == "learner" and finite(r["leak"]):
                at = r["known"], r["attackers"], r["seed"]
                self.learners.setdefault(at, []).append((r["draws"], r["leak"]))
        self.trials, self.facts, self.h = trials, facts, half_row(facts.scored_rows)

    def of(self, panel, cfg, k=math.inf):
        return [r for r in self.by_point.get((panel, cfg), []) if r["known"] <= k]

    def broken(self, panel, cfg):
        """Labels of attacks that are constant, or far below chance, on every seed with a figure."""
        chance, m = self.facts.chance, self.facts.scored_rows
        far = chance - 4 * math.sqrt(chance * (1 - chance) / m)
        by_label = {}
        for r in self.of(panel, cfg):
            if finite(r["leak"]):
                by_label.setdefault(r["label"], []).append(r["leak"])
        return {
            label
            for label, leaks in by_label.items()
            if all(abs(x - chance) < 1e-6 for x in leaks) or all(x < far for x in leaks)
        }

    def best(self, k, attackers, seed, draws=None):
        """What the best learner reads; NaN without one."""
        if k == 0:
            return self.facts.chance
        found = self.learners.get((k, attackers, seed), [])
        return max((leak for of, leak in found if draws in (None, of)), default=math.nan)

    def had(self, panel, cfg, k):
        """The pairs of seed and attack that were scored or settled."""
        broken = self.broken(panel, cfg)
        return {
            (r["seed"], r["label"])
            for r in self.of(panel, cfg, k)
            if (finite(r["leak"]) or r["settled_by"]) and r["label"] not in broken
        }

    def run(self, panel, cfg, k, keep=None):
        """Leak, e, leading labels and the learners' leak by seed."""
        broken, by_seed = self.broken(panel, cfg), {}
        for r in self.of(panel, cfg, k):
            kept = keep is None or (r["seed"], r["label"]) in keep
            if kept and finite(r["leak"]) and r["label"] not in broken:
                by_seed.setdefault(r["seed"], []).append(r)
        y, e, leads, local = {}, {}, {}, {}
        for s, scored in by_seed.items():
            learned = [x for r in scored if finite(x := self.best(k, r["attackers"], s))]
            y[s] = max([r["leak"] for r in scored] + learned)
            beyond = [r["leak"] - self.best(k, r["attackers"], s, r["draws"]) for r in scored]
            e[s] = math.nan if any(map(math.isnan, beyond)) else max(0.0, *beyond)
            leads[s] = {r["label"] for r in scored if r["leak"] == y[s]}
            local[s] = max(learned, default=math.nan)
            if local[s] == y[s]:
                leads[s].add("local-only")
        return y, e, leads, local

    def missing(self, panel, cfg, k):
        mine = self.of(panel, cfg, k)
        return {r["label"] for r in mine if not finite(r["leak"]) and not r["settled_by"]}

    def utility(self, panel, cfg, name="test_utility"):
        """By seed, of the honest federation."""
        mine = (t for t in self.trials if (t["federation"], t["configuration"]) == (panel, cfg))
        return {t["seed"]: t[name] for t in mine}

    def same(self, panel, cfg, bare):
        def equal(a, b):
            return a == b or (not finite(a) and not finite(b))

        for name in ("test_utility", "validation_utility"):
            ours, theirs = (self.utility(panel, x, name) for x in (cfg, bare))
            if not all(equal(u, theirs.get(s)) for s, u in ours.items()):
                return False
        theirs = {(r["seed"], r["label"]): r for r in self.of(panel, bare)}
        pairs = [(r, theirs.get((r["seed"], r["label"]))) for r in self.of(panel, cfg)]
        pairs = [
            (a["leak"], b["leak"])
            for a, b in pairs
            if b and not a["settled_by"] and not b["settled_by"]
        ]
        return any(finite(a) for a, _ in pairs) and all(equal(a, b) for a, b in pairs)

    def verdict(self, panel, cfg, bare, k):
        y, e, leads, local = self.run(panel, cfg, k)
        out = {"leak": lim(y, self.h, 0.975), "e": lim(e, self.h)}
        n, mean, lower, upper = out["leak"]
        if n >= 3:
            out["leak"] = n, mean, min(max(lower, 0), 1), min(max(upper, 0), 1)
        yu, eu, _, _ = self.run(panel, bare, k, self.had(panel, cfg, k))
        out["d"], out["c"] = lim(minus(y, yu), self.h), lim(minus(e, eu, 0.25), self.h)
        out["undefended_e"] = lim(self.run(panel, bare, k)[1], self.h)
        lacking = self.missing(panel, cfg, k)
        complete = not lacking
        whole_bare = not self.missing(panel, bare, k)
        (_, _, low, high), d, c = out["e"], out["d"][3], out["c"][3]
        if not out["e"][0] and n >= 3:
            said = "no baseline"
        elif not finite(high) or not finite(d):
            said = "no verdict"
        elif self.same(panel, cfg, bare):
            said = "is undefended"
        elif out["undefended_e"][3] < 0.05 and complete and whole_bare:
            said = NOTHING
        elif high < 0.05 and c < 0 and d < 0 and complete:
            said = PROTECTS
        elif low > 0.05:
            how = "much less" if d < -0.10 else "less" if d < -0.02 else "as before"
            said = f"still leaks, {how}"
        elif d < -0.02:
            said = "leaks less, what remains is unclear"
        else:
            said = "cannot say"
        tried = {label for _, label in self.had(panel, cfg, k)}
        names = {r["label"]: r["attack"] for r in self.of(panel, cfg, k)}
        figures = {"local-only": local}
        for r in self.of(panel, cfg, k):
            figures.setdefault(r["label"], {})[r["seed"]] = r["leak"]
        order = [r["label"] for r in self.attacks if r["panel"] == panel] + ["local-only"]
        rank = {
            label: (
                sum(label in of for of in leads.values()),
                round(lim(figures[label])[1], 12),
                -order.index(label),
            )
            for label in set().union(*leads.values())
        }
        leader = max(rank, key=lambda x: rank[x]) if rank else ""
        seeds = sorted({t["seed"] for t in self.trials if t["panel"] == panel})
        return out | {
            "verdict": said,
            "seeds_left_out": len(seeds) - len(y),
            "missing": lacking,
            "broken": {x for x in self.broken(panel, cfg) if x in names},
            "variants": len(tried),
            "families": len({names[label] for label in tried}),
            "leader": leader,
            "leader_seeds": rank[leader][0] if rank else 0,
            "local_only": lim(local)[1],
        }

    def cost(self, panel, cfg, bare):
        goal = self.facts.goal
        u, u0 = self.utility(panel, cfg), self.utility(panel, bare)
        alone = {s: a for s, a in self.utility(panel, bare, "alone_test").items() if finite(a)}
        seeds = [s for s in u if finite(u[s]) and finite(u0.get(s))]
        contrasts = []
        if alone:
            seeds = [s for s in seeds if s in alone]
            contrasts.append(
                {s: u[s] - alone[s] - goal.keep_gain * (u0[s] - alone[s]) for s in seeds}
            )
        if goal.max_cost < 1 or not alone:
            most = goal.max_cost if goal.max_cost < 1 else 0.02
            contrasts.append({s: u[s] - u0[s] + most for s in seeds})
        if len(seeds) < 3:
            said = "cost not known"
        elif alone and lim(minus(u0, alone))[1] <= 0:
            said = "no gain to keep"
        elif any(lim(c)[3] < 0 for c in contrasts):
            said = "costs too much"
        else:
            said = "kept" if all(lim(c)[2] >= 0 for c in contrasts) else "cost unclear"
        gain, share = lim(minus(u0, alone)), math.nan
        if gain[2] > 0.01 and seeds:
            kept = statistics.fmean(u[s] - alone[s] for s in seeds)
            share = kept / statistics.fmean(u0[s] - alone[s] for s in seeds)
        return {"cost": said, "share_kept": share, **self.qualifies(panel, cfg, bare)}

    def qualifies(self, panel, cfg, bare):
        goal, guess = self.facts.goal, self.facts.guess
        v, v0 = (self.utility(panel, x, "validation_utility") for x in (cfg, bare))
        alone = self.utility(panel, bare, "alone_validation")
        gained = lim(minus(v0, alone))[1]
        if finite(gained):
            allowed = min(max((1 - goal.keep_gain) * gained, 0), goal.max_cost)
        else:
            allowed = goal.max_cost if goal.max_cost < 1 else 0.02
        v, v0 = ({s: x if finite(x) else guess for s, x in of.items()} for of in (v, v0))
        n, mean, _, upper = lim(minus(v0, v), level=0.90, fewest=2)
        small = n > 0 and mean <= allowed + 1e-12
        small = small and (n == 1 or upper <= 2 * (allowed + 1e-12))
        return {"qualifies": small, "validation_loss": mean}


def judge(rows, trials, facts):
    """The verdicts by configuration, panel and K."""
    sweep, out = Sweep(rows, trials, facts), {}
    for panel in dict.fromkeys(t["panel"] for t in trials):
        mine = {t["configuration"]: t for t in trials if t["panel"] == panel}
        bare = min((c for c, t in mine.items() if t["defenses"] == ""), default=-1)
        for k in numbers(rows):
            found = {c: sweep.verdict(panel, c, bare, k) | sweep.cost(panel, c, bare) for c in mine}
            methods = {}
            for c, t in mine.items():
                if t["defenses"] and finite(found[c]["leak"][1]):
                    methods.setdefault(t["method"], []).append(c)
            chosen = set()
            for members in methods.values():
                others = [c for c in members if found[c]["verdict"] != "is undefended"]
                among = [c for c in others or members if found[c]["qualifies"]]
                if among:
                    key = {
                        c: (
                            bool(found[c]["missing"]),  # with figures of all attacks before others
                            found[c]["leak"][1],
                            found[c]["e"][3] if finite(found[c]["e"][3]) else math.inf,
                            found[c]["validation_loss"],
                            c,
                        )
                        for c in among
                    }
                    chosen.add(min(among, key=lambda c: key[c]))
            for c in mine:
                out[c, panel, k] = found[c] | {"chosen": c in chosen}
    return out
