"""The workloads of bench/cuda.py: one function each, with random weights and inputs fixed by seed.

A workload's function makes its models and tensors and gives a Work: `step` runs one iteration and returns what is compared with eager's; `moved` is how many bytes
that must move at least, where that is what limits it; `repeats` is how many iterations one call of `step` stands for, where the loop itself belongs to the workload.
Models come from transformers, torchvision and timm; where one is missing the function raises ImportError and bench/cuda.py says so.
"""
import contextlib
import dataclasses
import importlib
from typing import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"


@dataclasses.dataclass
class Work:
    step: Callable
    moved: int = 0
    repeats: int = 1


def pointwise():
    n = 64 << 20
    x, w, b = (torch.randn(n, device=DEVICE) for _ in range(3))

    def step():
        return F.gelu(x * w + b) * torch.sigmoid(x) - torch.tanh(x)
    return Work(step, 4 * 4 * n)


def layer_norm():
    x, residual = (torch.randn(8192, 4096, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    norm = nn.LayerNorm(4096, device=DEVICE, dtype=torch.bfloat16)

    def step():
        with torch.no_grad():
            return F.gelu(norm(x + residual))
    return Work(step, 3 * 2 * x.numel())


def cross_entropy():
    logits = torch.randn(8192, 32000, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
    target = torch.randint(0, 32000, (8192,), device=DEVICE)

    def step():
        logits.grad = None
        loss = F.cross_entropy(logits, target)
        loss.backward()
        return loss
    return Work(step, 2 * 2 * logits.numel())


def mlp():
    model = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(1024, 1024), nn.GELU())]).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = torch.randn(256, 1024, device=DEVICE), torch.randn(256, 1024, device=DEVICE)

    def step():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return Work(step)


def inference(model, *inputs, **named):
    """A step that runs the model without gradients."""
    model = model.eval()

    def step():
        with torch.no_grad():
            output = model(*inputs, **named)
        return output if isinstance(output, torch.Tensor) else output[0]
    return Work(step)


def resnet50():
    from torchvision.models import resnet50 as make

    return inference(make().to(DEVICE), torch.randn(1, 3, 224, 224, device=DEVICE))


def resnet50_batch():
    from torchvision.models import resnet50 as make

    model = make().to(DEVICE, torch.bfloat16, memory_format=torch.channels_last)
    return inference(model, torch.randn(32, 3, 224, 224, device=DEVICE, dtype=torch.bfloat16).to(memory_format=torch.channels_last))


def resnet18_train():
    from torchvision.models import resnet18 as make

    model = make(num_classes=100).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    x, y = torch.randn(32, 3, 224, 224, device=DEVICE), torch.randint(0, 100, (32,), device=DEVICE)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return Work(step)


def bert():
    from transformers import BertConfig, BertModel

    return inference(BertModel(BertConfig()).to(DEVICE), torch.randint(0, 30000, (1, 128), device=DEVICE))


def bert_train():
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(BertConfig()).to(DEVICE).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens, labels = torch.randint(0, 30000, (16, 128), device=DEVICE), torch.randint(0, 2, (16,), device=DEVICE)

    def step():
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        optimizer.step()
        return loss
    return Work(step)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return inference(GPT2LMHeadModel(GPT2Config()).to(DEVICE), torch.randint(0, 50000, (1, 256), device=DEVICE), use_cache=False)


def gpt2_generate():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).to(DEVICE).eval()
    prompt = torch.randint(0, 50000, (1, 32), device=DEVICE)
    mask = torch.ones_like(prompt)

    def step():
        with torch.no_grad():
            return model.generate(prompt, attention_mask=mask, max_new_tokens=64, min_new_tokens=64, do_sample=False, pad_token_id=50256)
    return Work(step)


def lstm_loop():
    cell = nn.LSTMCell(256, 256).to(DEVICE)
    w_i, w_h, b_i, b_h = (p.detach() for p in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh))
    xs = torch.randn(256, 32, 256, device=DEVICE)

    def step():
        h = c = torch.zeros(32, 256, device=DEVICE)
        for t in range(256):
            gates = F.linear(xs[t], w_i, b_i) + F.linear(h, w_h, b_h)
            i, f, g, o = gates.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h
    return Work(step)


def branches():
    layers = [nn.Linear(256, 256, device=DEVICE) for _ in range(10)]
    x0 = torch.randn(64, 256, device=DEVICE)

    def step():
        x = x0
        with torch.no_grad():
            for layer in layers:
                x = layer(x)
                x = torch.relu(x) if x.mean().item() > 0 else torch.tanh(x)
        return x
    return Work(step)


def branches_loop():
    """The branch in the loop that a script would have at its top level."""
    layers = [nn.Linear(256, 256, device=DEVICE) for _ in range(10)]
    x0 = torch.randn(64, 256, device=DEVICE)

    def step():
        with torch.no_grad():
            for _ in range(20):
                x = x0
                for layer in layers:
                    x = layer(x)
                    if x.mean().item() > 0:
                        x = torch.relu(x)
                    else:
                        x = torch.tanh(x)
        return x
    return Work(step, repeats=20)


def vit():
    import timm

    return inference(timm.create_model("vit_small_patch16_224").to(DEVICE), torch.randn(1, 3, 224, 224, device=DEVICE))


def vit_batch():
    import timm

    return inference(timm.create_model("vit_small_patch16_224").to(DEVICE), torch.randn(64, 3, 224, 224, device=DEVICE))


# By the numbers that the comparison with torch.compile is kept under.
WORKLOADS = {
    "1": pointwise, "2": layer_norm, "3": cross_entropy, "4": mlp, "5": resnet50, "5b": resnet50_batch, "5c": resnet18_train, "6": bert, "6b": bert_train,
    "7": gpt2, "7b": gpt2_generate, "8": lstm_loop, "9": branches, "9b": branches_loop, "10": vit, "10b": vit_batch,
}
BY_NAME = {function.__name__: function for function in WORKLOADS.values()}


# What a workload's function imports, so that it can be there before the time is taken.
LIBRARIES = {
    "resnet50": ["torchvision.models"], "resnet50_batch": ["torchvision.models"], "resnet18_train": ["torchvision.models"],
    "bert": ["transformers.models.bert.modeling_bert"], "bert_train": ["transformers.models.bert.modeling_bert"],
    "gpt2": ["transformers.models.gpt2.modeling_gpt2"], "gpt2_generate": ["transformers.models.gpt2.modeling_gpt2"], "vit": ["timm"], "vit_batch": ["timm"],
}


def import_libraries(name):
    """Imports them, and what torch imports at its first use; those that are missing are skipped here."""
    for library in ("torch._dynamo", *LIBRARIES.get(name, ())):
        with contextlib.suppress(ImportError):
            importlib.import_module(library)


def workload(name):
    """By number or name; KeyError where there is none."""
    return WORKLOADS.get(name) or BY_NAME[name]
