# Variables of the environment that are asked for in each iteration: missing, set, set and deleted later. os.environ.get raises and catches two KeyErrors on its way.
import os

import torch


def asks(steps):
    x, seen = torch.ones(4), []
    for step in range(steps):
        if os.environ.get("DYNVM_CASE_MISSING", "0") == "1":
            x = x * 2
        if "DYNVM_CASE_MISSING" in os.environ:
            x = x + 1
        x = torch.tanh(x) + 0.5
        seen.append(os.environ.get("DYNVM_CASE_SET"))
        if step == steps // 2:
            os.environ["DYNVM_CASE_MISSING"] = "1"
            os.environ["DYNVM_CASE_SET"] = "other"
        if step == steps * 3 // 4:
            del os.environ["DYNVM_CASE_MISSING"]
            os.environ.pop("DYNVM_CASE_SET")
    return x, seen


os.environ["DYNVM_CASE_SET"] = "set"
for steps in (40, 80, 200):
    x, seen = asks(steps)
    print(round(x.sum().item(), 4), [seen.count(value) for value in ("set", "other", None)])
    os.environ["DYNVM_CASE_SET"] = "set"


def strict(names):
    missing = 0
    for step in range(60):
        try:
            value = os.environ[names[step % 2]]
        except KeyError as error:
            missing += 1
            value = str(error)
        x = torch.full((2,), float(len(value))) * 0.5
    return missing, x.tolist(), value


print(strict(["DYNVM_CASE_SET", "DYNVM_CASE_MISSING"]))
