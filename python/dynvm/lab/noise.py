"""Is a difference more than noise? The rank-sum test of Mann and Whitney, and medians.

Source: H. B. Mann, D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than the other", Annals of Mathematical Statistics
18 (1947), 50-60. Ranks, not values, because times have outliers and no normal distribution. Up to EXACT runs together the distribution of the rank sum
is found by going through all ways to choose the first sample's ranks from those that there are, so ties are counted exactly; beyond, it is the normal
approximation with the variance corrected for ties and a continuity correction of one half.
"""

import itertools
import math
import statistics

EXACT = 18
SIGNIFICANT = 0.05


def median(values):
    return statistics.median(values)


def spread(values):
    """The median distance from the median."""
    middle = median(values)
    return median([abs(value - middle) for value in values])


def ranks(values):
    """From 1 on; equal values share the mean of theirs."""
    order = sorted(values)
    first = {}
    for position, value in enumerate(order, 1):
        first.setdefault(value, position)
    return [first[value] + (order.count(value) - 1) / 2 for value in values]


def p_value(a, b):
    """How likely ranks at least as uneven are, if a and b are of one distribution (two-sided); 1.0 where one is empty."""
    if not a or not b:
        return 1.0
    all_ranks = ranks([*a, *b])
    mean = len(a) * (len(all_ranks) + 1) / 2
    distance = abs(sum(all_ranks[:len(a)]) - mean)
    if len(all_ranks) <= EXACT:
        choices = [abs(sum(chosen) - mean) for chosen in itertools.combinations(all_ranks, len(a))]
        return sum(choice >= distance - 1e-9 for choice in choices) / len(choices)
    count = len(all_ranks)
    ties = sum(tied ** 3 - tied for tied in (all_ranks.count(rank) for rank in set(all_ranks)))
    variance = len(a) * len(b) / 12 * (count + 1 - ties / (count * (count - 1)))
    return 1.0 if variance == 0 else math.erfc(max(0.0, distance - 0.5) / math.sqrt(2 * variance))


def least_p_value(a, b):
    """The least that samples of these sizes can give."""
    return 2 / math.comb(a + b, a)
