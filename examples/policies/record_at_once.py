"""A policy that waits for nothing: a loop with tensor operations is recorded in its second iteration, a side trace at the first exit.

The first iteration is not recorded because it is the one whose tensor operations are counted. What runs a few times only is compiled for nothing.
    dynvm --policy examples/policies/record_at_once.py script.py
"""


class Policy:
    def record(self, facts):
        return None if facts.outer_first else True

    def side(self, facts):
        return True
