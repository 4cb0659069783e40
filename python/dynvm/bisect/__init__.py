"""`dynvm bisect`: from "the result is wrong" to the loop, pass, operation or kernel that makes it so. docs/bisect.md shows how.

runs.py: one run of the script, and whether it is right; search.py: the smallest set of switches that makes it right; stages.py: what is tried, in which order;
reproducer.py: the folder that `dynvm replay` runs again; tolerant.py: texts that differ by rounding. __main__.py is the command line. Tests: tests/bisect/.
"""
