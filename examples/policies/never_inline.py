"""A policy that follows no call: each call of a Python function stays a call in the trace, as the interpreter would carry it out.

What is inside such a function is none of the trace's: its operations are neither compiled with the others nor fused. It shows what following calls is worth.
    dynvm --policy examples/policies/never_inline.py script.py
"""


class Policy:
    def inline(self, facts):
        return False
