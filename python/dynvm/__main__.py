"""`python -m dynvm ...`: the launcher `dynvm ...` of this environment, in this process.

It is started anew, not called, so that `__main__`, sys.argv and tracebacks are those of `python script.py`. Python's own
options given to this interpreter are passed on.
"""

import os
import subprocess
import sys


def main():
    launcher = os.path.join(sys.prefix, "bin", "dynvm")
    if not os.path.exists(launcher):
        sys.exit(f"dynvm: the launcher is not installed: there is no {launcher}")
    sys.stdout.flush()
    sys.stderr.flush()
    # The interpreter's options, as subprocess passes them to child interpreters.
    flags = subprocess._args_from_interpreter_flags()
    os.execv(launcher, [launcher, *flags, *sys.argv[1:]])


main()
