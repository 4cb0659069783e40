# An exception whose frame or traceback cannot be made for lack of memory is still that exception.
try:
    import _testcapi
except ImportError:
    _testcapi = None


class C:
    pass


def fail(count):
    _testcapi.set_nomemory(0, count)
    C()


def deeper(depth, count):
    if depth:
        deeper(depth - 1, count)
    else:
        fail(count)


for depth in (0, 5) if _testcapi else ():
    for count in range(1, 7):
        try:
            deeper(depth, count)
        except BaseException as error:
            _testcapi.remove_mem_hooks()
            assert type(error) is MemoryError, (depth, count, error)
        else:
            _testcapi.remove_mem_hooks()
            raise AssertionError((depth, count))
print("done")
