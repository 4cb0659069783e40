"""codes.py: a code object taken apart and built again is the same; jumps find their way when there is more between."""

import dis
import sys
import types
import unittest
from os.path import abspath, dirname

sys.path.insert(0, dirname(abspath(__file__)))
import codes  # noqa: E402
from generate import generate  # noqa: E402


def all_codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from all_codes(constant)


class Codes(unittest.TestCase):
    def test_the_same_again(self):
        for seed in range(6):
            for code in all_codes(compile(generate(seed), "<program>", "exec", dont_inherit=True)):
                again = codes.Body(code).build()
                self.assertEqual(again.co_code, code.co_code)
                self.assertEqual(list(again.co_positions()), list(code.co_positions()))
                self.assertEqual(dis._parse_exception_table(again), dis._parse_exception_table(code))

    def test_depths_fit(self):
        for seed in range(6):
            for code in all_codes(compile(generate(seed), "<program>", "exec", dont_inherit=True)):
                body = codes.Body(code)
                self.assertLessEqual(max(body.depths().values()), code.co_stacksize)

    def test_long_jumps(self):
        def count(n):
            total = 0
            for i in range(n):
                if i % 3:
                    continue
                try: total += i
                finally: total += 1
            return total
        body = codes.Body(count.__code__)
        for place in range(len(body.insts) - 1, 0, -1):
            if not codes.is_glued(body.insts[place - 1], body.insts[place]):
                body.insts[place:place] = [body.insts[place].like("NOP") for _ in range(300)]
        code = body.build()
        self.assertGreater(len(code.co_code), 10000)
        self.assertEqual(types.FunctionType(code, {"range": range})(10), count(10))


if __name__ == "__main__":
    unittest.main()
