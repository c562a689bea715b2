"""The direct attack: Fu et al. 2022, section 4.3.

Without model splitting each party receives g = (softmax(logits) - target) / B. The guess is the
first class with a negative entry (released), or the class with the most negative one; a row
without any negative entry has no guess (None).
"""


def first_negative(g):
    """[N] guesses."""
    return [next((c for c, value in enumerate(row) if value < 0), None) for row in g]


def most_negative(g):
    """[N] guesses."""
    out = []
    for row in g:
        c = min(range(len(row)), key=lambda j: row[j])
        out.append(c if row[c] < 0 else None)
    return out


def least_negative(g):
    """[N] guesses: the negative entry nearest 0."""
    out = []
    for row in g:
        negative = [c for c in range(len(row)) if row[c] < 0]
        out.append(max(negative, key=lambda c: row[c]) if negative else None)
    return out


def largest(g):
    """[N] guesses: the class with the entry of largest magnitude, where that is not 0."""
    out = []
    for row in g:
        c = max(range(len(row)), key=lambda j: abs(row[j]))
        out.append(c if row[c] != 0 else None)
    return out


def most_positive(g):
    """[N] guesses: the class with the largest entry, where that is above 0."""
    out = []
    for row in g:
        c = max(range(len(row)), key=lambda j: row[j])
        out.append(c if row[c] > 0 else None)
    return out
