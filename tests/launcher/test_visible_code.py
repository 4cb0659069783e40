"""What tools see of generated code: names for gdb and perf (--gdb, --perf-map, --perf-dump), dumps in files, frames while a trace runs."""

import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

from compare import CompareCase, DYNVM, PYTHON, run

HAS_TORCH = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0
SCRIPT = """
import os, sys
def steps(n):
    x = torch.ones(32, 32)
    for i in range(n):
        x = torch.tanh(x @ x) * 0.5 + i
    return x
def plain(n):
    total = 0.0
    for i in range(n):
        total = total + i * 0.5
    return total
for _ in range(40): plain(3000)
if "torch" in sys.argv:
    import torch
    steps(200)
if "fork" in sys.argv and os.fork() == 0:
    sys.stdout.write(f"{os.getpid()} ")
elif "fork" in sys.argv:
    os.wait()
sys.stdout.write(f"{os.getpid()}\\n")
sys.stdout.flush()
if "trap" in sys.argv: os.kill(os.getpid(), 5)
"""


def records(path):
    """The records of a jitdump file as (kind, body), behind its header, which is checked."""
    with open(path, "rb") as file:
        data = file.read()
    magic, version, size, machine, _, pid, _, flags = struct.unpack_from("<6I2Q", data)
    assert (magic, version, size, machine, flags) == (0x4A695444, 1, 40, 62, 0), path
    at, found = size, []
    while at < len(data):
        kind, total, time = struct.unpack_from("<IIQ", data, at)
        found.append((kind, data[at + 16:at + total]))
        at += total
    assert at == len(data)
    return pid, found


class CodeMap(CompareCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="dynvm-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.script = os.path.join(self.folder, "steps.py")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        self.words = ["torch"] if HAS_TORCH else []

    def start(self, *options, words=()):
        outcome = run(DYNVM, [*options, "--cache=off", "-W", "ignore:This process:DeprecationWarning", self.script, *self.words, *words], cwd=self.folder)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""))
        return outcome.stdout.split()

    def test_nothing_is_written_unless_asked(self):
        (pid,) = self.start()
        self.assertEqual(os.listdir(self.folder), ["steps.py"])
        self.assertFalse(os.path.exists(f"/tmp/perf-{pid}.map"))

    def test_perf_map(self):
        pids = self.start("--perf-map", words=["fork"])
        self.assertEqual(len(pids), 3 if len(pids) == 3 else 2)
        for pid in set(pids):
            path = f"/tmp/perf-{pid}.map"
            self.addCleanup(os.remove, path)
            with open(path, encoding="utf-8") as file:
                lines = [re.fullmatch(r"([0-9a-f]+) ([0-9a-f]+) (dynvm .+)", line.rstrip("\n")) for line in file]
            self.assertTrue(lines and all(lines), path)
            names = [line[3] for line in lines]
            self.assertIn("dynvm native plain", names)
            if HAS_TORCH:
                self.assertTrue(any(re.fullmatch(r"dynvm trace \d+ steps\.py:5 steps", name) for name in names), names)
                self.assertTrue(any(re.match(r"dynvm kernel .*tanh", name) for name in names), names)
            self.assertTrue(all(int(line[1], 16) > 4096 and 0 < int(line[2], 16) < 1 << 20 for line in lines))

    def test_perf_dump(self):
        (pid,) = self.start("--perf-dump")
        of, found = records(os.path.join(self.folder, f"jit-{pid}.dump"))
        self.assertEqual(of, int(pid))
        lines, codes = {}, []
        for kind, body in found:
            if kind == 2:  # lines of the code that comes next
                address, count, at, line, _ = struct.unpack_from("<QQQII", body)
                self.assertEqual((count, at), (1, address))
                lines[address] = (body[32:-1].decode(), line)
            else:
                self.assertEqual(kind, 0)
                process, _, vma, address, size, number = struct.unpack_from("<IIQQQQ", body)
                name, code = body[40:].split(b"\0", 1)
                self.assertEqual((process, vma, len(code), number), (int(pid), address, size, len(codes)))
                codes.append((name.decode(), address))
        where = {name: lines.get(address) for name, address in codes}
        self.assertEqual(where["dynvm native plain"][0], self.script)
        self.assertIn(where["dynvm native plain"][1], (9, 10, 11, 12))
        if HAS_TORCH:
            self.assertIn((self.script, 5), [place for name, place in where.items() if name.startswith("dynvm trace")])

    def test_dumps_in_files(self):
        self.start("--dump=ir,asm,bytecode,native", "--dump-to=dumps")
        names = sorted(os.listdir(os.path.join(self.folder, "dumps")))
        self.assertEqual([name[:5] for name in names], [f"{number:04}-" for number in range(1, len(names) + 1)])
        kinds = {name.split("-")[1] for name in names}
        self.assertEqual(kinds, {"ir", "asm", "bytecode", "native"} if HAS_TORCH else {"native"})
        for name in names:
            with open(os.path.join(self.folder, "dumps", name), encoding="utf-8") as file:
                self.assertGreater(len(file.read()), 20, name)
        if HAS_TORCH:
            self.assertTrue(any(re.fullmatch(r"\d+-ir-steps\.py_5_steps_recorded\.txt", name) for name in names), names)

    @unittest.skipUnless(HAS_TORCH, "there is no torch")
    def test_frames_can_be_walked_while_a_trace_runs(self):
        text = SCRIPT.split("def plain")[0] + "import faulthandler, torch\nfaulthandler.dump_traceback_later(2.0)\nimport time\nbegin = time.monotonic()\n"
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(text + "while time.monotonic() < begin + 4: steps(4000)\n")
        outcome = run(DYNVM, ["--cache=off", self.script], cwd=self.folder)
        self.assertEqual(outcome.status, 0)
        self.assertRegex(outcome.stderr, r"most recent call first\):\n  File \".*steps\.py\", line [56] in steps\n  File \".*steps\.py\", line \d+ in <module>\n\Z")

    def test_a_file_that_cannot_be_written(self):
        os.chmod(self.folder, 0o500)
        self.addCleanup(os.chmod, self.folder, 0o700)
        if os.geteuid() == 0:
            self.skipTest("root may write anywhere")
        outcome = run(DYNVM, ["--perf-dump", self.script], cwd=self.folder)
        self.assertEqual(outcome.status, 0)
        self.assertRegex(outcome.stderr, r"\Adynvm: jit-\d+\.dump: Permission denied\n\Z")

    @unittest.skipUnless(shutil.which("gdb"), "there is no gdb")
    def test_gdb(self):
        command = ["gdb", "-q", "-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "set debuginfod enabled off", "-ex", "run", "-ex", "info functions ^dynvm ",
                   "--args", DYNVM, "--gdb", "--cache=off", self.script, *self.words, "trap"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=300)
        if "ptrace" in done.stdout + done.stderr and "SIGTRAP" not in done.stdout:
            self.skipTest("gdb may not trace processes here")
        self.assertRegex(done.stdout, r"SIGTRAP")
        self.assertRegex(done.stdout, r"dynvm native plain\b")
        if HAS_TORCH:
            self.assertRegex(done.stdout, r"dynvm trace \d+ steps\.py:5 steps\b")
            self.assertRegex(done.stdout, r"dynvm kernel .*tanh")


if __name__ == "__main__":
    unittest.main()
