# An instruction that there is not raises SystemError; from 3.12 on the message says which it is and where.
import sys


def broken(a): x = a; return x


units = bytearray(broken.__code__.co_code)
units[2] = 135 if sys.version_info >= (3, 13) else 200  # behind RESUME
broken.__code__ = broken.__code__.replace(co_code=bytes(units))
for i in range(3):
    try:
        broken(i)
    except SystemError as error:
        print(str(error).replace(broken.__code__.co_filename, "FILE"), error.__traceback__.tb_next.tb_lineno)
