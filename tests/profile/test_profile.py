"""What a profile of a real script says: parts, counts, exits, stages, in the documented form; and that nothing is there without it."""

import os
import re
import sys
import time
import unittest

import made
from compare import DYNVM, PATIENCE, ROOT, CompareCase, row_names, run

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")

SCRIPT = """
import gc
import sys
import time
import torch
torch.set_num_threads(1)

def rest():
    time.sleep(0.002)

def shaped():
    w = torch.ones(32, 32)
    for i in range(300):
        n = 5 + i % 7 * 3
        x = torch.ones(n, 32)
        y = torch.relu(x @ w * 0.5 - 1)
        y.sum().item()

def steady():
    x = torch.ones(64)
    for i in range(200):
        x = torch.relu(x * 0.5 + 1.0)
        rest()
    return x

def branchy():
    x, total = torch.ones(64), 0.0
    for i in range(400):
        if i % 2 == 0:
            total += (x * 2).sum().item()
        else:
            total -= (x * 3).sum().item()
    return total

def products():
    x, w = torch.ones(16, 32), torch.ones(32, 8)
    for i in range(100):
        y = x @ w

def frames():
    x = torch.ones(64)
    for i in range(100):
        x = x + 1
        sys._getframe()

def busy():
    until = time.perf_counter() + 0.3
    while time.perf_counter() < until: pass

steady()
branchy()
shaped()
products()
frames()
busy()
for k in range(5):
    gc.collect()
print("done")
"""


def line_of(text):
    return SCRIPT[:SCRIPT.index(text)].count("\n") + 1


def keys_of(value, found):
    if isinstance(value, dict):
        for key, item in value.items():
            found.add(key)
            keys_of(item, found)
    elif isinstance(value, list):
        for item in value:
            keys_of(item, found)
    return found


def words_of(value, found):
    """All texts of one word."""
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(item, str) and item.isidentifier():
            found.add(item)
        words_of(item, found)
    return found


class Whole(CompareCase):
    @classmethod
    def setUpClass(cls):
        cls.profiled = made.Run(SCRIPT)
        cls.profile, cls.outcome = cls.profiled.profile, cls.profiled.outcome
        cls.data = cls.profile.data

    @classmethod
    def tearDownClass(cls):
        cls.profiled.close()

    def traces(self, function):
        return [trace for trace in self.profile.traces if trace["function"] == function]

    def test_the_scripts_output_and_the_files(self):
        self.assertEqual((self.outcome.status, self.outcome.stdout), (0, "done\n"), self.outcome.stderr)
        self.assertIn("dynvm profile: ", self.outcome.stderr)
        for name in ("profile.json", "trace.json", "profile.speedscope.json", "index.html"):
            self.assertGreater(os.path.getsize(self.profiled.file(name)), 100, name)

    def test_documented(self):
        with open(os.path.join(ROOT, "docs", "profile.md"), encoding="utf-8") as file:
            rows = "".join(line for line in file if line.startswith("|"))
        documented = set(re.findall(r"`(\w+)`", rows))
        free = set(self.data["parts"]) | {value for trace in self.data["traces"] for exit in trace["exits"] for value in exit["values"]}
        self.assertEqual(keys_of(self.data, set()) - free - documented, set(), "keys that docs/profile.md does not have")

    def test_what_is_documented_is_there(self):
        """Keys; and words that a key may have as its value."""
        with open(os.path.join(ROOT, "docs", "profile.md"), encoding="utf-8") as file:
            documented = set(re.findall(r"`(\w+)`", "".join(line for line in file if line.startswith("|"))))
        words = {"none", "read", "interpreted"} | {"gpu", "missing", "works", "function"}  # other scripts'; where there is a GPU
        self.assertEqual(documented - keys_of(self.data, set()) - words_of(self.data, set()) - words, set())

    def test_program(self):
        program = self.data["program"]
        self.assertEqual(self.data["version"], 1)
        self.assertEqual(program["command"], self.profiled.script)
        self.assertEqual(program["torch"], torch.__version__)
        shown = run(DYNVM, ["-c", "import platform; print(platform.python_version())"]).stdout.strip()
        self.assertEqual(program["python"], shown)
        self.assertIn(program["dynvm"], run(DYNVM, ["--help"]).stdout + run(DYNVM, ["--version"]).stdout)

    def test_what_is_said_of_a_trace(self):
        trace = max(self.traces("steady"), key=lambda trace: trace["iterations"])
        self.assertEqual((trace["kind"], trace["place"][2], trace["from_cache"], trace["for_sizes"], trace["tensor_ops"]), ("loop", line_of("for i in range(200)"), False, False, 3))
        self.assertEqual(trace["entries"], 1)
        self.assertGreater(trace["record_ms"], 0)
        self.assertGreater(trace["compile_ms"], 0)
        self.assertEqual([trace["id"] for trace in self.data["traces"]], list(range(1, len(self.data["traces"]) + 1)))
        self.assertEqual(len({trace["number"] for trace in self.data["traces"]}), len(self.data["traces"]))
        kinds = {inst["kind"] for inst in trace["insts"]}
        self.assertEqual(kinds, {"inline", "guard", "kernel", "residual", "tensor", "end"})
        self.assertTrue(all("ms" in inst and "runs" in inst for inst in trace["insts"] if inst["kind"] in ("kernel", "residual", "tensor", "end")))
        for inst in trace["insts"]:
            self.assertIn(inst["op"], inst["text"])

    def test_a_kernel(self):
        kernel, = max(self.traces("steady"), key=lambda trace: trace["iterations"])["kernels"]
        self.assertEqual((kernel["name"], kernel["device"], kernel["reads"], kernel["writes"]), ("mul_add_relu", "cpu", ["s0 f32{1}"], ["s3 f32{1}"]))
        self.assertEqual([node["op"] for node in kernel["nodes"]], ["load s0 f32{1}", "0.5", "mul", "1", "add", "0", "max", "store s3 f32{1}"])
        self.assertEqual([node["args"] for node in kernel["nodes"]], [[], [], [0, 1], [], [2, 3], [], [5, 4], [6]])
        self.assertIn("n2 = mul f32 n0, n1", kernel["text"])
        self.assertGreater(len(bytes.fromhex(kernel["code"])), 40)

    def test_a_library_call(self):
        trace = max(self.traces("products"), key=lambda trace: trace["iterations"])
        product, = [inst for inst in trace["insts"] if inst["kind"] == "library"]
        self.assertEqual((product["name"], product["runs"], product["bytes"], product["flops"]), ("aten::mm", trace["iterations"], 4 * (16 * 32 + 32 * 8 + 16 * 8), 2 * 16 * 32 * 8))
        self.assertEqual(trace["places"][product["place"]][2], line_of("y = x @ w"))

    def test_samples(self):
        self.assertEqual(self.data["sample_ms"], 8)
        self.assertGreaterEqual(self.data["samples_lost"], 0)
        taken = sum(sample["count"] for sample in self.data["samples"])
        self.assertTrue(10 < taken <= self.data["wall_ms"] / self.data["sample_ms"] + 1, taken)
        sample = max((sample for sample in self.data["samples"] if sample["part"] == "trace"), key=lambda sample: sample["count"])
        self.assertEqual(self.profile.by_id[sample["trace"]]["function"], "steady")
        self.assertEqual([self.profile.codes[place[0]]["name"] for place in sample["frames"]][:2], ["<module>", "steady"])

    def test_parts_add_up(self):
        self.assertAlmostEqual(sum(self.data["parts"].values()) / (self.data["wall_ms"] + self.data["other_threads_ms"]), 1, delta=0.03)
        for trace in self.data["traces"]:
            parts = trace["guards_ms"] + trace["entry_ms"] + trace["exit_ms"] + sum(inst.get("ms", 0) for inst in trace["insts"])
            self.assertAlmostEqual(parts, trace["ms"], delta=0.001 + 1e-6 * trace["ms"])

    def test_a_line_in_the_interpreter(self):
        file = self.profile.files.index(self.profiled.script)
        line = self.profile.lines[file, line_of("while time.perf_counter")]
        self.assertGreater(line.python, 200)
        self.assertEqual(line.state, "interpreted")
        self.assertLess(line.python, 300 * 1.5 * PATIENCE + 100)

    def test_a_steady_loop(self):
        trace = max(self.traces("steady"), key=lambda trace: trace["iterations"])
        self.assertGreater(trace["iterations"], 150)
        self.assertLessEqual(trace["iterations"], 200)
        kernels = [inst for inst in trace["insts"] if inst["kind"] == "kernel"]
        self.assertTrue(kernels)
        for inst in kernels:
            self.assertEqual(inst["runs"], trace["iterations"])
            self.assertGreater(inst["ms"], 0)
        sleep = next(inst for inst in trace["insts"] if inst["kind"] == "residual" and "sleep" in inst["name"])
        self.assertGreaterEqual(sleep["ms"], 2 * sleep["runs"])
        # It stands in rest(), called by the loop.
        chain = [place[2] for place in self.profile.callers(trace, sleep["place"])]
        self.assertEqual(chain, [line_of("time.sleep"), line_of("rest()\n    return x")])
        kernel = trace["kernels"][kernels[0]["kernel"]]
        self.assertEqual((kernel["points"], kernel["bytes_read"], kernel["bytes_written"], kernel["flops"]), (64, 256, 256, 192))
        self.assertEqual({trace["places"][place][2] for place in kernel["places"]}, {line_of("x = torch.relu")})

    def test_exits_of_a_branch(self):
        exits = [exit for exit in self.profile.exits if exit["trace"] in [trace["id"] for trace in self.traces("branchy")] and exit["reason"] == "branch"]
        self.assertTrue(exits)
        self.assertEqual(exits[0]["at"][2], line_of("if i % 2"))
        self.assertEqual(exits[0]["what"], "i % 2 == 0")
        self.assertTrue(set(exits[0]["values"]) <= {"0", "1"} and exits[0]["values"], exits[0]["values"])
        linked = [to for exit in exits for to, _ in exit["to"]]
        self.assertTrue(any(self.profile.by_id[to]["kind"] == "side" for to in linked), "the side trace is linked to")

    def test_other_sizes(self):
        seen = [exit for exit in self.profile.exits if exit["trace"] in [trace["id"] for trace in self.traces("shaped")] and exit["reason"] in ("value", "sizes", "branch")]
        self.assertTrue(seen)
        self.assertTrue(any("n" in exit["what"] or "i" in exit["what"] for exit in seen), [exit["what"] for exit in seen])

    def test_stages(self):
        trace = max(self.traces("steady"), key=lambda trace: trace["iterations"])
        names = [stage["name"] for stage in trace["stages"]]
        self.assertEqual(names[0], "recorded")
        self.assertEqual(names[-1], "assembly")
        self.assertIn("fuse", names)
        for stage in trace["stages"]:
            lines = stage["text"].splitlines()
            self.assertEqual((len(stage["places"]), len(stage["insts"])), (len(lines), len(lines)), stage["name"])
            self.assertTrue(all(-1 <= place < len(trace["places"]) for place in stage["places"]))
        last = trace["stages"][-2]
        for line, inst in zip(last["text"].splitlines(), last["insts"]):
            if inst >= 0:
                self.assertEqual(line, trace["insts"][inst]["text"])
        # Below an instruction's comment stands its code.
        assembly = trace["stages"][-1]
        for line, inst in zip(assembly["text"].splitlines(), assembly["insts"]):
            if line.strip().startswith("; %") or line.strip().startswith("; kernel"):
                self.assertEqual(line.strip()[2:], trace["insts"][inst]["text"])
        relu = [line for line, place in zip(trace["stages"][0]["text"].splitlines(), trace["stages"][0]["places"]) if "aten::relu" in line and trace["places"][place][2] == line_of("x = torch.relu")]
        self.assertEqual(len(relu), 1)

    def test_bytecode(self):
        code = next(code for code in self.data["codes"] if code["name"] == "steady")
        self.assertEqual(code["line"], line_of("def steady"))
        texts = [text for _, _, text in code["bytecode"]]
        self.assertIn("LoadGlobal rest", texts)
        self.assertIn("StoreFast x", texts)
        lines = [line for _, line, _ in code["bytecode"]]
        self.assertTrue(all(line_of("def steady") <= line <= line_of("return x") for line in lines), lines)

    def test_collections(self):
        self.assertGreaterEqual(self.data["collections"], 5)
        self.assertGreater(self.data["parts"]["gc"], 0)
        full = [event for event in self.data["events"] if event["kind"] == "gc" and event["name"] == "generation 2"]
        self.assertGreaterEqual(len(full), 5)

    def test_events_are_inside_of_the_run(self):
        for event in self.data["events"]:
            self.assertGreaterEqual(event["start_ms"], 0)
            self.assertLessEqual(event["start_ms"] + event["ms"], self.data["wall_ms"] + 1)
        self.assertEqual({event["kind"] for event in self.data["events"]}, {"record", "compile", "run", "gc"})

    def test_recordings(self):
        kept = [recording for recording in self.data["recordings"] if recording["result"] == "kept"]
        self.assertTrue(kept)
        for recording in kept:
            self.assertIn(recording["trace"], self.profile.by_id)
            self.assertEqual(recording["side"], self.profile.by_id[recording["trace"]]["kind"] == "side")
            self.assertEqual((recording["sentence"], recording["detail"]), ("", ""))
        starts = [recording["start_ms"] for recording in self.data["recordings"]]
        self.assertEqual(starts, sorted(starts))
        self.assertAlmostEqual(sum(recording["ms"] for recording in self.data["recordings"]) / self.data["parts"]["recording"], 1, delta=0.2)
        cut = next(recording for recording in self.data["recordings"] if recording["result"] == "frame_introspection")
        self.assertEqual((cut["place"][2], cut["side"], self.profile.by_id[cut["trace"]]["function"]), (line_of("x = x + 1") - 1, False, "frames"))
        self.assertTrue(cut["sentence"].startswith("A call that looks at Python frames"), cut)
        self.assertIn(f"sys._getframe, in frames line {line_of('sys._getframe')}", cut["detail"])
        useless = next(recording for recording in self.data["recordings"] if recording["result"] == "no_tensor_work")
        self.assertEqual((useless["trace"], useless["side"], useless["place"][2]), (0, True, line_of("sys._getframe")))
        self.assertGreater(self.data["parts"]["recording"], 0)
        self.assertGreater(self.data["parts"]["compiling"], 0)

    def test_advice(self):
        texts = [finding["text"] for finding in self.data["advice"]]
        self.assertTrue(any(re.search(r"^\d+ % of the time is time\.sleep inside trace \d+ \(\d+ runs, script\.py:9\): it runs as it is", text) for text in texts), texts)
        self.assertTrue(any(f"script.py:{line_of('while time.perf_counter')} in the interpreter" in text for text in texts), texts)


class Parts(CompareCase):
    """Each part of profile_parts.def has what it is for: code that sleeps there."""

    SLEEPS = {"start": 0.34, "interpreter": 0.31, "recording": 0.32, "compiling": 0.33, "gc": 0.35, "finish": 0.3}
    TEXT = """
import gc, sys, time, torch
torch.set_num_threads(1)
class Late:
    def __init__(self, seconds): self.seconds = seconds
    def __del__(self, sleep=time.sleep): sleep(self.seconds)
def helper(x):
    return x * 2
def train(n):
    x = torch.ones(4)
    for i in range(n):
        x = torch.relu(helper(x) * 0.5 + 1.0)
train(100)
time.sleep({interpreter})
gc.disable()
ring = Late({gc})
ring.self = ring
del ring
gc.collect()
sys.late = Late({finish})  # not a module that a collection takes apart
"""
    POLICY = """
import time
class Policy:
    slept = set()
    def once(self, seconds):
        if seconds not in self.slept:
            self.slept.add(seconds)
            time.sleep(seconds)
    def inline(self, facts): self.once({recording})
    def fuse(self, facts): self.once({compiling})
"""

    def parts(self, *options, env=None):
        done = made.Run(self.TEXT.format(**self.SLEEPS), *options, env=env)
        self.addCleanup(done.close)
        self.assertEqual(done.outcome.status, 0, done.outcome)
        return done.profile.parts

    def test_each(self):
        self.script("import time\ntime.sleep({start})\n".format(**self.SLEEPS), "sitecustomize.py")
        policy = self.script(self.POLICY.format(**self.SLEEPS), "mine.py")
        parts = self.parts(f"--policy={policy}", "--cache=off", env={"PYTHONPATH": f"{self.folder}:{os.path.join(ROOT, 'python')}"})
        names = row_names("profile_parts.def")
        self.assertEqual(set(parts), {*names, "traces"})
        self.assertEqual(set(names) - set(self.SLEEPS), {"cache", "profile"})
        for name, seconds in self.SLEEPS.items():
            with self.subTest(part=name):
                self.assertGreaterEqual(parts[name], 1000 * seconds, parts)
        for name in ("traces", "profile"):
            self.assertGreater(parts[name], 0)
        folder = os.path.join(self.folder, "cache")
        os.mkdir(folder, 0o700)
        kept = self.parts(f"--cache={folder}")
        self.assertGreater(kept["cache"], 20 * parts["cache"])  # without a folder it only says so


class Command(CompareCase):
    def profiled(self, text, *options, env=None):
        done = made.Run(text, *options, env=env)
        self.addCleanup(done.close)
        return done

    def test_status_and_exceptions(self):
        done = self.profiled("import sys\nprint(sys.argv[1:], sys.stdin.read())\n1 / 0\n")
        self.assertEqual((done.outcome.status, done.outcome.stdout), (1, "[] \n"))
        self.assertIn("ZeroDivisionError", done.outcome.stderr)
        self.assertIsNotNone(done.profile)

    def test_a_process_that_ends_at_once_leaves_none(self):
        done = self.profiled("import os\nos._exit(3)\n")
        self.assertEqual(done.outcome.status, 3)
        self.assertIn("no profile was written", done.outcome.stderr)

    def test_forked_children_write_nothing(self):
        done = self.profiled("import os, sys\nif os.fork() == 0:\n    exec('x = 1')\n    sys.exit(0)\nos.wait()\nprint(1)\n")
        self.assertEqual((done.outcome.status, done.outcome.stdout), (0, "1\n"), done.outcome.stderr)

    def test_other_threads(self):
        done = self.profiled("import threading, torch\ntorch.set_num_threads(1)\ndef work():\n    x = torch.ones(64)\n    for i in range(4000):\n        x = torch.relu(x * 0.5 + 1)\n"
                             "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n")
        data = done.profile.data
        self.assertGreater(data["other_threads_ms"], 0)
        self.assertAlmostEqual(sum(data["parts"].values()) / (data["wall_ms"] + data["other_threads_ms"]), 1, delta=0.03)

    def test_the_wall_time_is_the_process_s(self):
        with made.tempfile.TemporaryDirectory() as folder:
            before = time.perf_counter()
            outcome = run(DYNVM, [f"--profile={folder}", "-c", "import time; time.sleep(1)"])
            elapsed = 1000 * (time.perf_counter() - before)
            self.assertEqual(outcome.status, 0)
            with open(os.path.join(folder, "profile.json"), encoding="utf-8") as file:
                wall = made.json.load(file)["wall_ms"]
        self.assertLessEqual(wall, elapsed)
        self.assertGreater(wall, 1000)
        self.assertLess(elapsed - wall, 250 * PATIENCE)  # of which the loader and the shell's work are most

    def test_a_script_of_that_name(self):
        with made.tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "profile"), "w", encoding="utf-8") as file:
                file.write("print('mine')\n")
            self.assertEqual(run(DYNVM, ["./profile"], cwd=folder).stdout, "mine\n")
            env = {"PYTHONPATH": os.path.join(ROOT, "python")}
            self.assertIn("usage: dynvm profile", run(DYNVM, ["profile", "--help"], cwd=folder, env=env).stdout)
            self.assertEqual(run(DYNVM, ["profile"], cwd=folder, env=env).status, 2)

    def test_help(self):
        self.assertRegex(run(DYNVM, ["--help"]).stdout, r"Commands:\n  profile \[-o DIR\]")

    def test_shown_once_more(self):
        done = self.profiled("print(1)\n")
        os.remove(done.file("index.html"))
        outcome = run(DYNVM, ["profile", "--show", done.out], env={"PYTHONPATH": os.path.join(ROOT, "python")})
        self.assertEqual((outcome.status, outcome.stdout), (0, ""))
        self.assertTrue(os.path.exists(done.file("index.html")))
        self.assertIn("Where the time went", outcome.stderr)

    def test_traces_of_an_earlier_process(self):
        with made.tempfile.TemporaryDirectory() as cache:
            os.chmod(cache, 0o700)
            text = "import torch\nx = torch.ones(64)\nfor i in range(200):\n    x = torch.relu(x * 0.5 + 1.0)\n"
            again = self.profiled(text, f"--cache={cache}")
            again.begin(f"--cache={cache}")
        self.assertEqual([trace["from_cache"] for trace in again.profile.traces], [True])
        trace = again.profile.traces[0]
        self.assertEqual([stage["name"] for stage in trace["stages"]], ["read", "assembly"])
        self.assertGreater(trace["iterations"], 150)
        self.assertGreater(sum(inst["ms"] for inst in trace["insts"] if inst["kind"] == "kernel"), 0)
        self.assertGreater(again.profile.parts["cache"], 0)

    def test_a_folder_that_is_none(self):
        outcome = run(DYNVM, ["--profile=/dev/null/x", "-c", "print(1)"])
        self.assertEqual((outcome.status, outcome.stdout), (0, "1\n"))
        self.assertIn("dynvm: cannot write the profile /dev/null/x/profile.json", outcome.stderr)

    def test_nothing_is_there_without_it(self):
        text = "import torch\nx = torch.ones(8)\nfor i in range(60):\n    x = x * 0.5 + 1\nprint(x.sum().item())\n"
        with made.tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "s.py")
            with open(script, "w", encoding="utf-8") as file:
                file.write(text)
            plain = run(DYNVM, ["--dump=asm", script])
            profiled = run(DYNVM, [f"--profile={folder}", "--dump=asm", script])
        self.assertEqual(plain.stdout, profiled.stdout)
        self.assertIn("--- asm", plain.stderr)
        self.assertNotIn("rdtsc", plain.stderr)
        self.assertIn("rdtsc", profiled.stderr)

    def test_every_guard_fails_once(self):
        done = self.profiled(SCRIPT, env={"DYNVM_STRESS": "exit"})
        self.assertEqual((done.outcome.status, done.outcome.stdout), (0, "done\n"), done.outcome.stderr)
        data = done.profile.data
        self.assertAlmostEqual(sum(data["parts"].values()) / data["wall_ms"], 1, delta=0.03)


if __name__ == "__main__":
    unittest.main()
