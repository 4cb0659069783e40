"""`dynvm lab`: runs a script under many settings of the numbers and policies that steer the JIT, and compares what they cost. docs/lab.md shows how.

settings.py: which settings; runs.py: one run, in a process of its own, and its measures; search.py: which runs; noise.py: is a difference more than noise;
table.py, plot.py: what is printed and saved. __main__.py is the command line. Tests: tests/lab/.
"""
