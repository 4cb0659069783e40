# Levels of recursion through C are counted, not measured: as deep as CPython goes, dynvm goes without running out of stack.
import os
import sys
import threading


def through_map(n):
    global left
    left = n
    if n:
        list(map(through_map, (n - 1,)))


def collected(n, *rest, **named):
    global left
    left = n
    if n:
        list(map(lambda rest: collected(n - 1, *rest, **named), (rest,)))


def main():
    for function in through_map, collected:
        try:
            function(90_000)
        except RecursionError as error:
            print(function.__name__, error, sys.version_info < (3, 12) or 90_000 - left)


sys.setrecursionlimit(100_000 if sys.version_info >= (3, 12) else 1000)  # 3.11 has one count for Python and C
# The usual size; where programs run slower than usual, they are sanitized and need more.
threading.stack_size((8 << 20) * (8 if "DYNVM_TEST_PATIENCE" in os.environ else 1))
thread = threading.Thread(target=main)
thread.start()
thread.join()
