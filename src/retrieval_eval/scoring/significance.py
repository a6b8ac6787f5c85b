"""Exact paired tests, and how small a change they can see. Owns the mathematics, not what is compared.

Every p-value is two-sided and exact: nothing is sampled, so nothing needs a seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

ALPHA = 0.05
"""The level at which a change gets a word. It decides nothing but the word."""


def mcnemar_p(gained: int, lost: int) -> float:
    """Exact McNemar test: are questions as likely to be gained as to be lost?

    Two-sided binomial test with 1/2 on the questions that changed sides; 1.0 where none did.
    Source: McNemar, Psychometrika 12 (1947).
    """
    changed = gained + lost
    tail = sum(math.comb(changed, count) for count in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << changed))


def sign_flip_p(steps: Sequence[int]) -> float:
    """Exact sign-flip (Fisher's randomisation) test of a mean difference.

    `steps` holds each question's difference in whole units of one size; zeros change nothing. Of all 2^m ways to give
    the m other differences a sign, the share whose sum is at least as far from 0 as the one seen; 1.0 where m is 0,
    0.0 where that share is too small for a float. All ways are counted at once over the sums that they can reach
    (Pagano and Tritchler, Journal of the American Statistical Association 78, 1983), so the time grows with m times
    the sum of the absolute steps. Source of the test: Smucker, Allan and Carterette, CIKM 2007.
    """
    divisor = math.gcd(*steps) or 1
    sizes = [abs(step) // divisor for step in steps if step]
    total = sum(sizes)
    share = np.zeros(total + 1)  # share[s]: of all ways, those whose negative steps add up to s
    share[0] = 1.0
    for size in sizes:
        share /= 2
        share[size:] = share[size:] + share[:-size]
    sums = total - 2 * np.arange(total + 1)
    far = np.abs(sums) >= abs(sum(steps)) // divisor
    return min(1.0, math.fsum(share[far].tolist()))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for being several, in the order given (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for done, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - done) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def detectable_questions(n: int, tests: int) -> int | None:
    """The fewest of `n` questions that must move, all the same way, to be significant at one k of `tests`.

    The smallest m for which 2^(1-m), times `tests`, is below ALPHA: m questions moved in one direction at this k, none
    in the other and none at any other k, which is Holm's hardest case. It holds for both tests, whatever the size of
    the moves.
    None where even all n would not do.
    """
    return next((moved for moved in range(1, n + 1) if tests * mcnemar_p(moved, 0) < ALPHA), None)
