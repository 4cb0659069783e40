"""The files for other viewers, by their formats' rules."""

import unittest

import made
from dynvm.profile import formats


class Timeline(unittest.TestCase):
    def test_events(self):
        profile = made.profile(made.data(traces=[made.trace(1), made.trace(2)]))
        events = formats.timeline(profile)["traceEvents"]
        spans = [event for event in events if event["ph"] == "X"]
        self.assertEqual(len(spans), len(profile.data["events"]))
        for event in spans:
            self.assertEqual({"ph", "pid", "tid", "cat", "name", "ts", "dur", "args"}, set(event))
            self.assertGreaterEqual(event["dur"], 0)
        rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertEqual(set(rows), {1, 2, 3, 4})
        self.assertTrue(all(event["tid"] in rows for event in spans))
        run = next(event for event in spans if event["args"].get("trace") == 2)
        self.assertEqual((run["name"], run["ts"], run["dur"], run["args"]["count"]), ("trace 2 script.py:4", 50000.0, 10000.0, 5))


class Speedscope(unittest.TestCase):
    def test_samples(self):
        profile = made.profile()
        file = formats.speedscope(profile)
        frames, flame = file["shared"]["frames"], file["profiles"][0]
        self.assertEqual(flame["type"], "sampled")
        self.assertEqual(len(flame["samples"]), len(flame["weights"]))
        self.assertAlmostEqual(flame["endValue"], sum(sample["count"] for sample in profile.data["samples"]))
        for sample in flame["samples"]:
            self.assertTrue(sample and all(0 <= number < len(frames) for number in sample))
        names = [[frames[number]["name"] for number in sample] for sample in flame["samples"]]
        self.assertIn(["train", "train", "save"], names)
        self.assertIn(["train", "train", "[trace 1]"], names)


if __name__ == "__main__":
    unittest.main()
