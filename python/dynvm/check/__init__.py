"""The two halves of DYNVM_STRESS=check that look at Python's side: `describe` says what a run of an iteration has left,
`compare` finds how two such descriptions differ.

The VM library (tracer/check.h) forks the process and runs these modules' files in the forked processes, by their paths,
so that nothing of them is seen by the script.
"""
