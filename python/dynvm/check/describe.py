"""What a run of an iteration has left, as a flat list of entries that another process can compare with its own.

Purpose: DYNVM_STRESS=check compares a trace's run with an interpreted one. Each of the two is described by this module,
  in a forked process that ends afterwards: so it may make instances' dicts, run `backward()` and leave references, and
  none of it is seen by the script.
Inputs:  describe(frames, exception): frames from the trace's loop inwards, each (code, slots, stack, globals), with
  `MISSING` for what is not there; the exception that is under way, or None.
Outputs: a list of entries (path, kind, value), of values that `marshal` takes. Paths are Python's:
  locals['loss'].grad_fn. Kinds are those of RULES in compare.py. Not said, since a trace need not do what eager does
  there: how much memory lies behind a tensor's elements (losses with a reduction keep that of their terms), what is
  behind a graph that is freed, or which hooks are; and which type an iterator has that only the evaluator holds, since an
  exit may make one of the items that are left: those are compared.
Invariants: the order of entries follows from the objects alone, so that two processes that were forked from one and did
  the same give the same list. The nearest objects come first, and at most `limit` of them are described. No code of the
  script runs but hooks of tensors, in the last step (Gradients).
Tests:   tests/check/test_describe.py.
"""

import collections
import ctypes
import functools
import itertools
import operator
import sys
import types
import weakref

GRAPH = ".grad_fn and what is behind it"  # ends the path of a tensor's graph (compare.py)

LIMIT = 3000  # objects
MOST_ELEMENTS = 1 << 14  # of a tensor that are kept; of a larger one so many, evenly spread
MOST_ITEMS = 1000  # of those that an iterator still gives
MOST_STEPS = 1 << 16  # of an iterator that are looked for
MOST_NODES = 400  # of an autograd graph
MOST_GRADIENTS = 3  # tensors whose graphs are run
MOST_WORK = 1 << 24  # elements of leaves that a graph may be run for

MISSING = type("Missing", (), {"__repr__": lambda self: "missing"})()

ATOMS = (type(None), bool, int, str, bytes, float, complex, type(Ellipsis), type(NotImplemented))
ITERATORS = tuple(
    {
        type(iter(each))
        for each in ([], (), range(0), range(1 << 70), {}, {}.values(), {}.items(), "", b"", set(), reversed([]))
    }
)
MAKERS = {type(iter(each())): each.__iter__ for each in (list, tuple, str, bytes)}
MAKERS[type(reversed([]))] = list.__reversed__
WRAPPERS = (enumerate, zip, map, filter, itertools.chain, itertools.islice, itertools.count, itertools.repeat)
VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
C_FUNCTIONS = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)


def slot_names(code):
    """The names of a frame's local variables, cells and free variables, in the order of their slots."""
    own = list(code.co_varnames)
    return own + [name for name in code.co_cellvars if name not in own] + list(code.co_freevars)


def name_of(cls):
    return f"{cls.__module__}.{cls.__qualname__}" if cls.__module__ != "builtins" else cls.__qualname__


class Describer:
    def __init__(self, limit=LIMIT):
        self.limit = limit
        self.entries = []
        self.waiting = collections.deque()
        self.seen = {}  # id -> path
        self.kept = []  # so that no id comes twice
        self.unnamed = set()  # paths of what only the evaluator holds
        self.storages = {}
        self.graphs = []  # (path, tensor) of those with a graph
        self.leaves = {}  # id -> path, of tensors without one
        self.torch = sys.modules.get("torch")
        self.numpy = sys.modules.get("numpy")
        if self.torch is not None and not hasattr(self.torch, "autograd"):
            self.torch = None  # it is being imported
        # What lies beside these is no script's.
        self.library = tuple(
            filter(None, (getattr(sys.modules.get(name), "__file__", None) for name in ("os", "torch")))
        )
        self.library = tuple(path.rsplit("/", 1)[0] + "/" for path in self.library) + ("<frozen",)

    # ---- entries

    def put(self, path, kind, value):
        self.entries.append((path, kind, value))

    def push(self, path, value):
        """To be described after all that is nearer."""
        if value is MISSING:
            return self.put(path, "is", "missing")
        if issubclass(type(value), ATOMS):  # isinstance would ask the object
            self.atom(path, value)
        else:
            self.waiting.append((path, value))

    def atom(self, path, value):
        kind = type(value)
        if kind is float:
            self.put(path, "float", value)
        elif kind is complex:
            self.put(path, "complex", value)
        elif kind is str:
            self.put(path, "text", value if len(value) <= 4096 else value[:4096])
        elif kind is int:
            self.put(path, "int", value if abs(value) < 1 << 4000 else str(value.bit_length()))
        elif kind is bytes:
            self.put(path, "bytes", value if len(value) <= 4096 else value[:4096])
        elif kind in ATOMS:
            self.put(path, "is", repr(value))
        else:  # a subclass, such as an enumeration's member
            self.put(
                path, "is", f"{name_of(kind)} {next(base for base in ATOMS if issubclass(kind, base)).__repr__(value)}"
            )

    def run(self):
        while self.waiting and len(self.kept) < self.limit:
            self.of_object(*self.waiting.popleft())
        self.put("objects", "is", "all" if not self.waiting else f"the first {self.limit}")

    def of_object(self, path, value):
        if id(value) in self.seen:
            self.put(path, "same", self.seen[id(value)])
            if (
                self.seen[id(value)] in self.unnamed
                and path not in self.unnamed
                and issubclass(type(value), (*ITERATORS, *WRAPPERS))
            ):
                self.put(path + ".__class__", "is", name_of(type(value)))
            return
        self.kept.append(value)
        kind = type(value)
        if (
            kind is tuple
            or kind is frozenset
            or kind is slice
            or kind is range
            or kind in C_FUNCTIONS
            or kind is types.MethodType
            or (self.torch is not None and kind in (self.torch.Size, self.torch.ScriptObject))
        ):
            pass  # made anew or not, nobody cares
        else:
            self.seen[id(value)] = path
        if self.torch is not None and issubclass(kind, self.torch.Tensor):
            try:
                return self.of_tensor(path, value)
            except (NotImplementedError, RuntimeError) as error:  # one that wraps others, and gives its parts to nobody
                return self.put(path + " is described by", "text", f"{type(error).__name__}: {error}")
        for base, describe in KINDS:
            if issubclass(kind, base):
                return describe(self, path, value)
        return self.of_instance(path, value)

    # ---- containers

    def items(self, path, value, kind=None):
        items = list(kind.__iter__(value) if kind else value)
        self.put(path, "is", f"{name_of(type(value))} of {len(items)}")
        for i, item in enumerate(items):
            self.push(f"{path}[{i}]", item)

    def of_list(self, path, value):
        self.items(path, value, list)
        self.attributes(path, value)

    def of_tuple(self, path, value):
        self.items(path, value, tuple)
        self.attributes(path, value)

    def of_deque(self, path, value):
        self.items(path, value, collections.deque)
        self.attributes(path, value)

    def of_dict(self, path, value):
        items = list(dict.items(value))
        self.put(path, "is", f"{name_of(type(value))} of {len(items)}")
        if items:
            self.pairs(path, items)
        if issubclass(type(value), collections.defaultdict):
            self.push(path + ".default_factory", value.default_factory)
        self.attributes(path, value)

    def pairs(self, path, items):
        names = []
        for i, (key, item) in enumerate(items):
            if type(key) in ATOMS:
                at = (
                    f"{path}[{key!r}]"
                    if not isinstance(key, (str, bytes)) or len(key) < 80
                    else f"{path}[{key[:77]!r}...]"
                )
                names.append(f"{key!r:.80}")
            else:
                at = f"{path}[key {i}]"
                names.append(f"a {name_of(type(key))}")
                self.push(f"{path} key {i}", key)
            self.push(at, item)
        self.put(path + " keys", "text", " ".join(names)[:4096])

    def of_set(self, path, value):
        atoms = sorted((f"{name_of(type(item))} {item!r}" for item in value if type(item) in ATOMS))
        self.put(path, "is", f"{name_of(type(value))} of {len(value)}")
        if value:
            self.put(path + " items", "is", " ".join(atoms)[:4096])

    def of_view(self, path, value):
        self.items(path, value)

    def of_iterator(self, path, value):
        """What is still to come. Of one that no variable holds nobody sees its type: an exit may make another there,
        of the items alone, be it for an iterator over another one (zip) or for one of another kind of container."""
        if path not in self.unnamed:
            self.put(path + ".__class__", "is", name_of(type(value)))
        items = to_come(value)
        if items is not None:
            self.put(path, "is", f"iterator of {len(items)}")
            for i, item in enumerate(items[:MOST_ITEMS]):
                self.push(f"rest of {path}[{i}]", item)
            return
        try:
            rest = value.__reduce__()
        except (TypeError, AttributeError, NotImplementedError, RuntimeError):
            rest = ()
        self.put(path, "is", name_of(type(value)))
        self.push(path + " state", tuple(rest[1:]))

    def of_generator(self, path, value):
        frame = getattr(value, "gi_frame", None) or getattr(value, "cr_frame", None) or getattr(value, "ag_frame", None)
        code = getattr(value, "gi_code", None) or getattr(value, "cr_code", None) or getattr(value, "ag_code", None)
        self.put(path, "is", f"{name_of(type(value))} {code.co_qualname if code else ''}")
        # Where a frame stands that runs is known of its instruction, not of the generator.
        running = any(getattr(value, kind + "_running", False) for kind in ("gi", "cr", "ag"))
        self.put(path + " position", "is", "running" if running else repr(frame.f_lasti) if frame is not None else "over")
        if frame is not None and frame.f_lasti >= 0:
            for name, item in sorted(frame.f_locals.items()):
                if name.startswith("."):
                    self.unnamed.add(f"{path} locals[{name!r}]")
                self.push(f"{path} locals[{name!r}]", item)

    # ---- code

    def of_function(self, path, value):
        code = value.__code__
        self.put(path, "is", f"function {value.__qualname__}")
        if code.co_filename.startswith(self.library):
            return
        self.put(path + ".__code__", "is", f"{code.co_filename}:{code.co_firstlineno}")
        for i, item in enumerate(value.__defaults__ or ()):
            self.push(f"{path}.__defaults__[{i}]", item)
        for name, item in sorted((value.__kwdefaults__ or {}).items()):
            self.push(f"{path}.__kwdefaults__[{name!r}]", item)
        for name, cell in zip(code.co_freevars, value.__closure__ or ()):
            self.push(f"{path}.{name}", cell)
        self.attributes(path, value)

    def of_cell(self, path, value):
        try:
            content = value.cell_contents
        except ValueError:
            self.put(path, "is", "empty")
            return
        self.push(path, content)

    def of_method(self, path, value):
        self.put(path, "is", "method")
        self.push(path + ".__self__", value.__self__)
        self.push(path + ".__func__", value.__func__)

    def of_c_function(self, path, value):
        self.put(path, "is", f"{name_of(type(value))} {getattr(value, '__qualname__', '')}")
        of = getattr(value, "__self__", None)
        if of is not None and not issubclass(type(of), (type, types.ModuleType)):
            self.push(path + ".__self__", of)

    def of_partial(self, path, value):
        self.put(path, "is", name_of(type(value)))
        for name in ("func", "args", "keywords"):
            self.push(f"{path}.{name}", getattr(value, name))

    def of_property(self, path, value):
        self.put(path, "is", name_of(type(value)))

    def of_module(self, path, value):
        self.put(path, "is", f"module {value.__name__}")

    def of_code(self, path, value):
        self.put(path, "is", f"code {value.co_qualname}")

    def of_type(self, path, value):
        self.put(path, "is", f"class {name_of(value)}")
        if not isinstance(value.__dict__, types.MappingProxyType) or self.is_library(sys.modules.get(value.__module__)):
            return
        for name, item in value.__dict__.items():
            if not name.startswith("__") and not issubclass(
                type(item), (types.FunctionType, staticmethod, classmethod, property, *C_FUNCTIONS)
            ):
                self.push(f"{path}.{name}", item)

    def is_library(self, module):
        path = getattr(module, "__file__", None)
        return module is None or module.__name__ != "__main__" and (path is None or path.startswith(self.library))

    def of_weak(self, path, value):
        self.put(path, "is", "weak reference" + (" to nothing" if value() is None else ""))
        if value() is not None:
            self.push(path + "()", value())

    def of_exception(self, path, value):
        self.put(path, "is", name_of(type(value)))
        self.push(path + ".args", value.args)
        self.attributes(path, value)
        for name in ("__cause__", "__context__"):
            if getattr(value, name) is not None:
                self.push(f"{path}.{name}", getattr(value, name))

    def of_frame(self, path, value):
        self.put(path, "is", "frame")

    def of_constant(self, path, value):
        self.put(path, "is", repr(value))

    # ---- instances

    def attributes(self, path, value):
        """What its dict and its slots hold, without a call of anything in Python."""
        attributes = self.dict_of(value)
        if attributes:
            self.put(path + " attributes", "is", " ".join(map(str, attributes))[:4096])
            for name, item in list(attributes.items()):
                self.push(f"{path}.{name}", item)
        for cls in type(value).__mro__:
            if not cls.__flags__ & 1 << 9:  # written in C
                continue
            for name, descriptor in list(cls.__dict__.items()):
                if isinstance(descriptor, types.MemberDescriptorType):
                    try:
                        self.push(f"{path}.{name}", descriptor.__get__(value))
                    except AttributeError:
                        self.put(f"{path}.{name}", "is", "missing")

    @staticmethod
    def dict_of(value):
        for cls in type(value).__mro__:
            descriptor = cls.__dict__.get("__dict__")
            if isinstance(descriptor, types.GetSetDescriptorType):
                try:
                    attributes = descriptor.__get__(value)
                except (AttributeError, TypeError):
                    return None
                return attributes if isinstance(attributes, dict) else None
        return None

    def of_instance(self, path, value):
        torch, kind = self.torch, type(value)
        if torch is not None:
            if issubclass(kind, (torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format)):
                return self.of_constant(path, value)
            if issubclass(kind, torch.Generator):
                self.put(path, "is", "generator")
                return self.put(path + ".get_state()", "bytes", raw(value.get_state()))
            if hasattr(kind, "next_functions"):
                return self.put(path, "is", f"node {value.name()}")
        numpy = self.numpy
        if numpy is not None and hasattr(numpy, "ndarray"):
            if issubclass(kind, numpy.ndarray):
                return self.of_array(path, value)
            if issubclass(kind, numpy.generic):
                self.put(path, "is", name_of(type(value)))
                return self.push(path + ".item()", value.item())
            if issubclass(kind, numpy.dtype):
                return self.of_constant(path, value)
        self.put(path, "is", f"a {name_of(type(value))}")
        self.attributes(path, value)

    def of_array(self, path, value):
        self.put(path, "is", f"{name_of(type(value))} {value.dtype} {value.shape} {value.strides}")
        if value.dtype.hasobject:
            return self.push(path + ".tolist()", value.tolist() if value.size <= 100 else None)
        data = self.numpy.ascontiguousarray(value).reshape(-1)
        data = data[:: max(1, data.size // MOST_ELEMENTS)]
        self.put(path + " values", "array", (str(value.dtype), data.tobytes()))

    # ---- tensors

    def of_tensor(self, path, value):
        torch = self.torch
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            cls = type(value)
            if cls is not torch.Tensor and cls is not torch.nn.Parameter:
                self.put(path + ".__class__", "is", name_of(cls))
                if "__torch_dispatch__" in vars(cls) or hasattr(cls, "__tensor_flatten__"):
                    return
            self.put(path, "is", f"{value.dtype} {tuple(value.shape)} {value.layout} on {value.device}")
            self.put(path + ".requires_grad", "is", repr(value.requires_grad))
            self.put(path + ".is_leaf", "is", repr(value.is_leaf))
            if value.is_inference():
                self.put(path + ".is_inference()", "is", "True")
            else:
                self.put(path + "._version", "int", value._version)
            if value.layout is torch.strided:
                self.strided(path, value)
            elif value.layout is torch.sparse_coo:
                self.put(path + ".is_coalesced()", "is", repr(value.is_coalesced()))
                self.push(path + "._indices()", value._indices())
                self.push(path + "._values()", value._values())
            attributes = self.dict_of(value)
            if value.is_leaf and value._backward_hooks:  # others are part of the graph
                self.push(path + "._backward_hooks", value._backward_hooks)
            if value.grad_fn is not None:
                self.put(path + ".grad_fn", "is", value.grad_fn.name())
                self.graphs.append((path, value))
            elif value.requires_grad:
                self.leaves[id(value)] = path
            if value._is_view() and value.grad_fn is None:  # else the base's graph is part of its own
                self.push(path + "._base", value._base)
            if value.is_leaf or value.retains_grad:
                self.push(path + ".grad", value.grad)
        if attributes:
            for name, item in list(attributes.items()):
                self.push(f"{path}.{name}", item)

    def strided(self, path, value):
        torch = self.torch
        self.put(path + ".stride()", "is", repr(value.stride()))
        self.put(path + ".storage_offset()", "is", repr(value.storage_offset()))
        if value.is_conj() or value.is_neg():
            self.put(path + " is", "is", f"conj {value.is_conj()} neg {value.is_neg()}")
        if value.device.type != "cpu" or value.is_quantized or value.dtype.itemsize == 0:
            return
        storage = value.untyped_storage()
        at = storage.data_ptr()
        if at:
            first = self.storages.setdefault(at, path)
            self.put(path + " shares memory with", "is", "" if first == path else first)
        self.kept.append(storage)
        self.put(path + " values", "values", self.values(value))

    def values(self, value):
        """The element type's name, how many elements, and as many of them as are kept."""
        flat = value.detach().resolve_conj().resolve_neg().reshape(-1)
        step = max(1, flat.numel() // MOST_ELEMENTS)
        return str(value.dtype).removeprefix("torch."), value.numel(), raw(flat[::step].contiguous())

    # ---- what is not reached from objects

    def random(self):
        if self.torch is not None:
            self.put("torch's random state", "bytes", raw(self.torch.random.default_generator.get_state()))
        module = sys.modules.get("random")
        if module is not None and hasattr(module, "_inst"):
            self.put("random's state", "is", repr(hash(module._inst.getstate())))
        module = sys.modules.get("numpy.random")
        if module is not None and hasattr(module, "get_state"):
            _, key, *rest = module.get_state()
            self.put("numpy's random state", "is", f"{hash(key.tobytes())} {rest}")

    def modes(self):
        torch = self.torch
        if torch is None:
            return
        self.put(
            "torch's modes",
            "is",
            f"grad {torch.is_grad_enabled()}, inference {torch.is_inference_mode_enabled()}, "
            f"autocast {torch.is_autocast_enabled('cpu')} {torch.get_autocast_dtype('cpu')}, "
            f"default {torch.get_default_dtype()}, deterministic {torch.are_deterministic_algorithms_enabled()}, "
            f"warn always {torch.is_warn_always_enabled()}",
        )

    @staticmethod
    def nodes_behind(root):
        """The nodes behind a tensor in the order of their meeting, and each with the edges to those behind it, as
        text."""
        numbers, nodes, lines = {root: 0}, collections.deque([root]), []
        while nodes and len(lines) < MOST_NODES:
            node = nodes.popleft()
            edges = []
            for behind, output in node.next_functions:
                if behind is None:
                    edges.append("-")
                    continue
                if behind not in numbers:
                    numbers[behind] = len(numbers)
                    nodes.append(behind)
                edges.append(f"{numbers[behind]}.{output}")
            lines.append(f"{numbers[node]} {node.name()}({' '.join(edges)})")
        return list(numbers), tuple(lines)

    def gradients(self):
        """The graphs, and what they give: the last step, since hooks run and saved tensors may be found to have been
        written. Of a graph that is freed nobody can have more than the error, and, where it is freed in part, the
        gradients by those leaves that are not behind what is freed."""
        torch = self.torch
        runs = 0
        for path, value in self.graphs:
            nodes, lines = self.nodes_behind(value.grad_fn)
            leaves = [node.variable for node in nodes if hasattr(node, "variable")]
            if (
                runs >= MOST_GRADIENTS
                or len(nodes) >= MOST_NODES
                or sum(leaf.numel() for leaf in leaves) + value.numel() > MOST_WORK
            ):
                self.put(path + GRAPH, "unknown", None)  # it may be one that is freed
                continue
            runs += 1
            found = []
            try:
                if leaves:
                    found = self.gradients_by(value, leaves)
                # A node behind which there is nothing may be one that is freed: only running it tells.
                if any(not node.next_functions and not hasattr(node, "variable") for node in nodes):
                    with torch.enable_grad(), torch._C.DisableTorchFunctionSubclass():
                        torch.autograd.backward(value, torch.ones_like(value), retain_graph=True)
            except (
                Exception
            ) as error:  # a graph that is freed, or memory that has been written: the interpreter's says the same
                if "a second time" in str(error):
                    self.put(path + GRAPH, "is", "freed")
                    self.put_gradients(path, *self.without_error(value, leaves))
                    continue
                self.put(f"gradient of {path}", "text", f"{type(error).__name__}: {error}")
            self.put(path + GRAPH, "lines", lines)
            self.put_gradients(path, leaves, found)

    def gradients_by(self, value, leaves):
        torch = self.torch
        with torch.enable_grad(), torch._C.DisableTorchFunctionSubclass():
            return torch.autograd.grad(value, leaves, torch.ones_like(value), retain_graph=True, allow_unused=True)

    def without_error(self, value, leaves):
        """The leaves that the value's gradient by can be had, and these gradients."""
        reached, found = [], []
        for leaf in leaves:
            try:
                (gradient,) = self.gradients_by(value, [leaf])
            except Exception:
                continue
            reached.append(leaf)
            found.append(gradient)
        return reached, found

    def put_gradients(self, path, leaves, found):
        for i, (leaf, gradient) in enumerate(zip(leaves, found)):
            of = f"gradient of {path} by {self.seen.get(id(leaf), f'leaf {i}')}"
            if gradient is None or gradient.layout is not self.torch.strided or gradient.device.type != "cpu":
                self.put(of, "is", repr(gradient is None))
            else:
                self.put(of, "values", self.values(gradient))


def plain_copy(iterator, copies):
    """Another iterator over what this one still gives, which runs no code of the script's; TypeError where there is
    none. One that is read by several others is copied once for all of them."""
    if id(iterator) in copies:
        return copies[id(iterator)]
    kind = type(iterator)
    if kind in ITERATORS:
        _, arguments, *state = iterator.__reduce__()
        copy = MAKERS.get(kind, iter)(*arguments)  # those that have no maker are reduced to lists
        if state:
            copy.__setstate__(state[0])
    elif kind is enumerate:
        _, (inner, number) = iterator.__reduce__()
        copy = enumerate(plain_copy(inner, copies), number)
    elif kind is zip:
        _, inner, *strict = iterator.__reduce__()
        copy = zip(*(plain_copy(each, copies) for each in inner), strict=bool(strict))
    elif kind in (map, filter) and any(ended(each) for each in iterator.__reduce__()[1][1:]):
        copy = iter(())
    else:
        raise TypeError(f"no copy of {kind}")
    copies[id(iterator)] = copy
    return copy


def to_come(iterator):
    """The items that an iterator still gives; None where that cannot be known without running code of the script's,
    or where they are too many."""
    try:
        items = list(itertools.islice(plain_copy(iterator, {}), MOST_STEPS))
    except (TypeError, AttributeError, NotImplementedError, RuntimeError, ValueError):
        return None
    return items if len(items) < MOST_STEPS else None


def ended(iterator):
    """Is it known to give nothing more?"""
    return to_come(iterator) == []


KINDS = (
    (dict, Describer.of_dict),
    (list, Describer.of_list),
    (tuple, Describer.of_tuple),
    (collections.deque, Describer.of_deque),
    ((set, frozenset), Describer.of_set),
    (VIEWS, Describer.of_view),
    ((*ITERATORS, *WRAPPERS), Describer.of_iterator),
    ((types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType), Describer.of_generator),
    (types.FunctionType, Describer.of_function),
    (types.CellType, Describer.of_cell),
    (types.MethodType, Describer.of_method),
    (C_FUNCTIONS, Describer.of_c_function),
    (functools.partial, Describer.of_partial),
    ((property, staticmethod, classmethod, super), Describer.of_property),
    (types.ModuleType, Describer.of_module),
    (types.CodeType, Describer.of_code),
    (type, Describer.of_type),
    (weakref.ReferenceType, Describer.of_weak),
    (BaseException, Describer.of_exception),
    ((types.FrameType, types.TracebackType), Describer.of_frame),
    ((range, slice), Describer.of_constant),
    (ATOMS, Describer.atom),
)


def raw(tensor):
    """The bytes of a contiguous tensor in host memory."""
    size = tensor.numel() * tensor.element_size()
    return ctypes.string_at(tensor.data_ptr(), size) if size else b""


def describe(frames, exception=None, limit=LIMIT, callers=True):
    describer = Describer(limit)
    describer.modes()
    namespaces = {}
    for depth, (code, slots, stack, namespace) in enumerate(frames):
        where = "" if depth == 0 else f"{code.co_name}: "
        for name, value in zip(slot_names(code), slots):
            if name.startswith("."):  # what a comprehension is over
                describer.unnamed.add(f"{where}locals[{name!r}]")
            describer.push(f"{where}locals[{name!r}]", value)
        for i, value in enumerate(calls_as_pairs(stack)):
            describer.unnamed.add(f"{where}stack[{i}]")
            describer.push(f"{where}stack[{i}]", value)
        namespaces.setdefault(id(namespace), namespace)
    describer.push("exception", exception)
    describer.push("handled exception", sys.exc_info()[1])
    outer = sys._getframe().f_back if callers else None
    main = getattr(sys.modules.get("__main__"), "__dict__", None)
    if main is not None:
        namespaces.setdefault(id(main), main)
    for namespace in namespaces.values():
        if namespace is main or not describer.is_library(sys.modules.get(namespace.get("__name__"))):
            describer.push(
                f"{namespace.get('__name__')}: globals" if namespace is not main else "globals",
                {name: value for name, value in namespace.items() if not is_plumbing(name, value)},
            )
    while outer is not None:  # callers of the loop's frame hold what its caller passed on
        code = outer.f_code
        if (
            outer.f_locals is not outer.f_globals
            and not code.co_filename.startswith(describer.library)
            and all(code is not frame[0] for frame in frames)
        ):
            for name, value in outer.f_locals.items():
                describer.push(f"{code.co_name} (caller): locals[{name!r}]", value)
        outer = outer.f_back
    describer.run()
    describer.random()
    if describer.torch is not None:
        describer.gradients()
    return describer.entries


def calls_as_pairs(stack):
    """A value stack where each bound method that is to be called alone stands as its function and what it is bound to:
    which of both ways it is does not matter."""
    values = list(stack)
    for i in range(len(values) - 1):
        first, second = values[i], values[i + 1]
        for method, other in ((second, first), (first, second)):
            if other is MISSING and type(method) is types.MethodType:
                values[i], values[i + 1] = method.__func__, method.__self__
                break
    return values


def is_plumbing(name, value):
    """Is it a module variable that no iteration changes, or that dynvm's own work does?"""
    return issubclass(type(value), (types.ModuleType, *C_FUNCTIONS)) or name in (
        "__builtins__",
        "__loader__",
        "__spec__",
        "__cached__",
    )


def prepare():
    """In a forked process, before it does anything else: torch's threads have not come along, and what is dropped when
    is no concern."""
    import gc

    gc.disable()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)


def disturb():
    """In the second interpreted run: memory that comes next is elsewhere and has other contents than in the first, and
    numbers that the script has are rounded otherwise, so that what two runs do not agree in is what an iteration does
    not determine."""
    kept = []
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "full"):
        sizes = (*range(4, 256, 4), *(1 << k for k in range(8, 18)))
        kept += [torch.full((size,), 7.5) for size in sizes]
        for size in sizes:
            torch.full((size,), 7.5)  # and away again
        round_otherwise(torch)
    # The last step: what has been freed most recently is given out first, and would be where the first run's objects are.
    sizes = (*(size for size in range(15, 512, 16) for _ in range(32)), *(1 << k for k in range(9, 21)))
    kept += [bytearray(b"\xa5" * size) for size in sizes]
    kept += [object() for _ in range(64)] + [[] for _ in range(64)] + [{} for _ in range(64)]
    return kept


def round_otherwise(torch):
    """Changes the last place of each number in a tensor that is no integer, at most once for each memory."""
    import gc

    generator = torch.Generator().manual_seed(1)
    done = set()
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        for value in gc.get_objects():
            if (
                type(value) not in (torch.Tensor, torch.nn.Parameter)
                or value.layout is not torch.strided
                or value.device.type != "cpu"
                or not value.dtype.is_floating_point
            ):
                continue
            if (
                value.dtype.itemsize < 2
                or value.is_inference()
                or value.numel() > MOST_WORK
                or not value.is_contiguous()
            ):
                continue
            memory = value.untyped_storage().data_ptr()
            if memory == 0 or memory in done:
                continue
            done.add(memory)
            data = value.data  # has a version counter of its own
            signs = torch.empty(data.shape, dtype=data.dtype).bernoulli_(0.5, generator=generator).mul_(2).sub_(1)
            data.copy_(torch.where(data == data.round(), data, data * (1 + torch.finfo(data.dtype).eps * signs)))
