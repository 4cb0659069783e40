# Another owner of the interpreter's frame evaluation function is told of each call of a Python function while it is there.
import torch
from torch._dynamo.eval_frame import set_eval_frame
from torch._dynamo.types import ConvertFrameReturn, FrameAction, FrameExecStrategy

told = []


def inner(x):
    return x + 1


def work(x):
    return inner(x) * 2


def callback(frame, hooks, frame_state):
    told.append(frame.f_code.co_name)
    return ConvertFrameReturn(frame_exec_strategy=FrameExecStrategy(FrameAction.DEFAULT, FrameAction.DEFAULT))


callback.recursive_callback = None
total = torch.zeros(2)
counts = []
for i in range(80):
    prior = set_eval_frame(callback if i % 2 and i > 20 else None)
    try:
        total = total + work(torch.ones(2))
    finally:
        set_eval_frame(prior)
    counts.append(len(told))
    told.clear()
print(total, counts)
