# A recording that a generator's effect dooms goes on for a while to learn more, and that may end where another generator, which a builtin
# consumes, yields: the value is the consumer's then and not the interpreter's, and the next recording must begin.
# expect: compiled>=0.7, traces>=4
import torch


def train(count):
    """Steps of a loop of its own; how many names a generator asks for decides at which instruction the doomed recording ends."""
    names = [f"name {i}" for i in range(count)]
    known = set(names)
    asked = "        x = x - x.mean() * (0.1 if all(name in known for name in names) else 0.2)\n"
    namespace = {"torch": torch, "names": names, "known": known}
    exec(compile(f"""
def loop():
    x = torch.ones(4)
    for step in range(150):
        x = x + 1.0
{asked * 40}
        known.add(str(step))
    return x
""", f"loop{count}.py", "exec"), namespace)
    print([round(value, 4) for value in namespace["loop"]().tolist()], len(known))


train(80)
train(66)
train(55)
train(33)
