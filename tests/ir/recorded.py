"""Torch programs as cases for lower_run: each operation, or a whole program, as the text of a trace, with memory before and after.

Recorder records the operations one by one, WholeRecorder all of them as one trace; run() has lower_run (DYNVM_LOWER_RUN) do them.
"""

import os
import struct
import subprocess
import tempfile

import torch
from torch.utils._python_dispatch import TorchDispatchMode

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
         torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}


def number(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = repr(float(value))
    return text if any(c in text for c in ".en") else text + ".0"


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.cases = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        case = Case(func, args, kwargs)
        result = func(*args, **kwargs)
        case.finish(result)
        if case.usable:
            self.cases.append(case)
        return result


class Case:
    """One operation as trace text, with its memory before and after."""

    def __init__(self, func, args, kwargs):
        self.name = func._schema.name
        self.overload = func._schema.overload_name
        self.storages = {}     # data pointer -> (number, storage)
        self.before = []
        self.tensors = {}      # (id) -> name
        self.lines = []
        self.usable = True
        self.mutates = []
        self.mutated = []
        text, position = [], 0
        for i, formal in enumerate(func._schema.arguments):
            if formal.name in kwargs:
                value = kwargs[formal.name]
            elif not formal.kwarg_only and position < len(args):
                value = args[position]
                position += 1
            else:
                value = formal.default_value
            if not formal.kwarg_only and formal.name in kwargs:
                position += 1
            text.append(self.argument(value, str(formal.type)))
            if formal.alias_info is not None and formal.alias_info.is_write:
                self.mutates.append(i)
                self.mutated += value if isinstance(value, (list, tuple)) else [value]
        self.arguments = ", ".join(text)

    def storage(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.storages:
            self.storages[key] = (len(self.storages), storage)
            self.before.append(None)
        return self.storages[key][0]

    def meta(self, tensor):
        number = self.storage(tensor)
        if tensor.dtype not in NAMES or tensor.layout != torch.strided or tensor.device.type != "cpu":
            self.usable = False
            return "f32[]{} s0"
        sizes = ",".join(map(str, tensor.shape))
        strides = ",".join(map(str, tensor.stride()))
        offset = f" offset {tensor.storage_offset()}" if tensor.storage_offset() else ""
        return f"{NAMES[tensor.dtype]}[{sizes}]{{{strides}}} s{number}{offset}"

    def tensor(self, tensor):
        name = f"%t{len(self.tensors)}"
        meta = self.meta(tensor)
        self.tensors[name] = tensor
        self.lines.append(f"{name}:t = unbox_tensor %0 !snap0 -> {meta}")
        n = self.storage(tensor)
        if self.before[n] is None:
            self.before[n] = contents(tensor.untyped_storage())
        return name

    def argument(self, value, kind):
        if value is None:
            return "none"
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, (list, tuple)):
            if any(isinstance(v, torch.Tensor) for v in value):
                return "[" + ", ".join("undef" if v is None else self.tensor(v) for v in value) + "]"
            if value and isinstance(value[0], bool):
                return "bools[" + ",".join(str(int(v)) for v in value) + "]"
            if value and isinstance(value[0], float):
                return "floats[" + ",".join(number(v) for v in value) + "]"
            return "ints[" + ",".join(map(str, value)) + "]"
        if isinstance(value, (bool, int, float)):
            if "Tensor" in kind:
                return f"#f64 {number(float(value))}" if isinstance(value, float) else f"#i64 {int(value)}"
            return number(value)
        if isinstance(value, str):
            return f'"{value}"'
        return "opaque 0"

    def finish(self, result):
        flat = result if isinstance(result, (tuple, list)) else [result]
        flat = [r for r in flat if isinstance(r, torch.Tensor) or r is None]
        metas, values = [], []
        for k, tensor in enumerate(flat):
            if tensor is None or tensor.numel() == 0:
                metas.append("undef")
                continue
            metas.append(self.meta(tensor))
            values.append(f"%r{k}:t = result %call #{k} -> {metas[-1]}\n%w{k}:o = wrap %r{k}\nstore_value %0, %w{k} #0")
        self.outputs = [t for t in flat if t is not None and t.numel()] + self.mutated
        mutates = f" mutates [{','.join(map(str, self.mutates))}]" if self.mutates else ""
        name = f"{self.name}.{self.overload}" if self.overload else self.name
        call = f'%call = aten "{name}" ({self.arguments}) -> ({", ".join(metas)}){mutates} !snap0'
        self.text = call
        self.trace = "\n".join([f'trace 1 "" storages {len(self.storages)}', "%0:o = slot #0", *self.lines, call, *values,
                                "leave !snap0", "snap0: root unit 0 [=]"]) + "\n"
        self.after = [contents(storage) for _, storage in self.storages.values()]
        self.before = [b"\xa5" * len(after) if before is None else before for before, after in zip(self.before, self.after)]
        self.outputs = [(self.storage(t), t.detach().dtype, tuple(t.shape), tuple(t.stride()), t.storage_offset()) for t in self.outputs]
        if not self.outputs or all(n in (None,) for n in self.outputs):
            self.usable = False
        if not self.mutates and all(meta == "undef" or self.is_old(meta) for meta in metas):
            self.usable = False  # a view: nothing is computed
        self.tensors = self.mutated = None

    def is_old(self, meta):
        storage = int(meta.split(" s")[1].split()[0])
        return any(f" s{storage}" in line.split("->")[1] + " " for line in self.lines)


class WholeRecorder(TorchDispatchMode):
    """All operations of a program as one trace."""

    def __init__(self):
        super().__init__()
        self.storages, self.before, self.keep, self.names, self.lines, self.counter = {}, [], [], {}, [], 0
        self.text = "whole program"

    def key(self, tensor):
        return (tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)

    def meta(self, tensor):
        sizes, strides = (",".join(map(str, values)) for values in (tensor.shape, tensor.stride()))
        offset = f" offset {tensor.storage_offset()}" if tensor.storage_offset() else ""
        return f"{NAMES[tensor.dtype]}[{sizes}]{{{strides}}} s{self.storages[tensor.untyped_storage()._cdata]}{offset}"

    def tensor(self, tensor):
        self.keep.append(tensor.detach())
        if self.key(tensor) in self.names:
            return self.names[self.key(tensor)]
        self.counter += 1
        name = self.names[self.key(tensor)] = f"%v{self.counter}"
        storage = tensor.untyped_storage()
        if storage._cdata in self.storages:  # made by the program, seen another way without an operation
            base = next(n for key, n in self.names.items() if key[0] == storage._cdata)
            self.lines += [f'{name}c = aten "aten::alias" ({base}) -> ({self.meta(tensor)} alias 0) !snap0',
                           f"{name}:t = result {name}c #0 -> {self.meta(tensor)}"]
        else:
            self.storages[storage._cdata] = len(self.before)
            self.before.append(contents(storage))
            self.lines.append(f"{name}:t = unbox_tensor %0 !snap0 -> {self.meta(tensor)}")
        return name

    argument = Case.argument

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = func._schema
        if not schema.name.startswith("aten::"):
            return func(*args, **kwargs)  # the profiler's marks
        text, mutates, mutated = [], [], set()
        for i, formal in enumerate(schema.arguments):
            value = kwargs.get(formal.name, args[i] if i < len(args) else formal.default_value)
            text.append(self.argument(value, str(formal.type)))
            if formal.alias_info is not None and formal.alias_info.is_write:
                mutates.append(i)
                mutated |= {id(t) for t in (value if isinstance(value, (list, tuple)) else [value])}
        arguments = ", ".join(text)
        result = func(*args, **kwargs)
        flat = [r for r in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(r, torch.Tensor) or r is None]
        self.counter += 1
        call, metas, values = f"%c{self.counter}", [], []
        for k, tensor in enumerate(flat):
            if tensor is None or tensor.numel() == 0:
                metas.append("undef")
                continue
            self.keep.append(tensor.detach())
            key = tensor.untyped_storage()._cdata
            if key not in self.storages:
                self.storages[key] = len(self.before)
                self.before.append(b"\xa5" * tensor.untyped_storage().nbytes())
            metas.append(self.meta(tensor))
            self.counter += 1
            self.names[self.key(tensor)] = name = f"%v{self.counter}"
            values.append(f"{name}:t = result {call} #{k} -> {metas[-1]}")
        name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        suffix = f" mutates [{','.join(map(str, mutates))}]" if mutates else ""
        self.lines += [f'{call} = aten "{name}" ({arguments}) -> ({", ".join(metas)}){suffix} !snap0', *values]
        return result

    def finish(self, *tensors):
        """The tensors that the program leaves behind."""
        for k, tensor in enumerate(tensors):
            self.lines += [f"%w{k}:o = wrap {self.tensor(tensor)}", f"store_value %0, %w{k} #0"]
        self.trace = "\n".join([f'trace 1 "" storages {len(self.before)}', "%0:o = slot #0", *self.lines, "leave !snap0",
                                "snap0: root unit 0 [=]"]) + "\n"
        self.outputs = [(self.storages[t.untyped_storage()._cdata], t.dtype, tuple(t.shape), tuple(t.stride()), t.storage_offset())
                        for t in tensors]
        self.expected = [t.detach().clone() for t in tensors]


def contents(storage):
    n = storage.nbytes()
    if n == 0:
        return b""
    return bytes(torch.tensor([], dtype=torch.uint8).set_(storage, 0, (n,), (1,)).clone().numpy().tobytes())


def view(data, output):
    _, dtype, shape, stride, offset = output
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    whole = flat[:len(data) // dtype.itemsize * dtype.itemsize].view(dtype)
    return torch.as_strided(whole, shape, stride, offset)


def run(cases, *mode):
    """Runs all cases; gives (case, verdict, message, [(kind, output, expected, got)...])."""
    program = os.environ["DYNVM_LOWER_RUN"]
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "cases"), os.path.join(folder, "out")
        with open(path, "w") as text, open(path + ".memory", "wb") as memory:
            for case in cases:
                text.write(case.trace + "=== case\n")
                for data in case.before:
                    memory.write(struct.pack("<q", len(data)) + data)
        subprocess.run([program, path, out, *mode], check=True)
        with open(out, "rb") as file:
            data = file.read()
    at = 0

    def take(count):
        nonlocal at
        at += count
        return data[at - count:at]

    for case in cases:
        code = take(1)[0]
        message = take(struct.unpack("<q", take(8))[0]).decode()
        memories = []
        if code == 0:
            for _ in range(2):
                memories.append([take(struct.unpack("<q", take(8))[0]) for _ in case.before])
        yield case, code, message, memories
