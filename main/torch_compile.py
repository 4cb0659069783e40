"""torch.compile as a hint: what it is given runs as it is, and dynvm's traces do the work.

Purpose:  nothing of Dynamo or Inductor is imported or run for a script that only wants to be fast; what torch.compile gives
  looks like torch's own (`_orig_mod`, `_torchdynamo_orig_callable`, keys of state_dict(), pickles).
Inputs:   the module torch, imported. Outputs: torch.compile and the functions of torch.compiler that go with it, replaced.
Invariants: torch's own compiler runs where a script asks for what only it does: another backend, torch's operators of higher
  order but torch.cond, an unknown mode, whose error it raises. It is not replaced for code that holds it already (`from torch import compile` in torch itself).
Tests:    tests/dynamo/test_hint.py.
"""

import functools
import sys

BACKENDS = (None, "inductor")
MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
OWN_COMPILER = ("torch.nn.attention.flex_attention", "torch._higher_order_ops")  # modules whose functions need torch's own


def module_class(torch):
    """The class of compiled modules. Attributes are the compiled module's but for `own`; isinstance() takes its objects for
    torch's OptimizedModule once that is loaded."""

    base, own = torch.nn.Module, frozenset(("_orig_mod", "_torchdynamo_orig_callable", "_again"))

    class OptimizedModule(base):  # without super(), which would take `__class__` for a variable
        def __init__(self, module, again):
            base.__init__(self)
            self._modules["_orig_mod"] = module
            self.__dict__.update(_torchdynamo_orig_callable=module.forward, _again=again)

        @property
        def __class__(self):
            loaded = sys.modules.get("torch._dynamo.eval_frame")
            return getattr(loaded, "OptimizedModule", OptimizedModule)

        def forward(self, *args, **kwargs):
            return self._orig_mod(*args, **kwargs)

        @property
        def training(self):
            return self._orig_mod.training

        @training.setter
        def training(self, value):
            if "_modules" in self.__dict__:  # else Module.__init__ says what a new module is
                self._orig_mod.training = value

        def __getattr__(self, name):
            module = self.__dict__.get("_modules", {}).get("_orig_mod")
            return module if name == "_orig_mod" else getattr(module, name)

        def __setattr__(self, name, value):
            if name in own or hasattr(OptimizedModule, name):
                base.__setattr__(self, name, value)
            else:
                setattr(self._orig_mod, name, value)

        def __delattr__(self, name):
            if name in own or hasattr(OptimizedModule, name):
                base.__delattr__(self, name)
            else:
                delattr(self._orig_mod, name)

        def __len__(self):
            return len(self._orig_mod)

        def __bool__(self):
            return not hasattr(type(self._orig_mod), "__len__") or bool(len(self._orig_mod))

        def __dir__(self):
            return list(dict.fromkeys([*dir(self._orig_mod), *base.__dir__(self)]))

        def __reduce__(self):
            return functools.partial(torch.compile, **self._again), (self._orig_mod,)

        def __deepcopy__(self, memo):
            import copy

            return OptimizedModule(copy.deepcopy(self._orig_mod, memo), self._again)

        def get_compiler_config(self):
            return None

    OptimizedModule.__module__ = "torch._dynamo.eval_frame"
    OptimizedModule.__qualname__ = "OptimizedModule"
    return OptimizedModule


def innermost(function):
    """What was compiled, where it has been before; functools.wraps() may have copied the mark to another function."""
    while getattr(function, "_torchdynamo_wrapper_id", None) == id(function):
        function = function._torchdynamo_orig_callable
    return function


def compiled_function(function):
    function = innermost(function)

    @functools.wraps(function)
    def compiled(*args, **kwargs):
        return function(*args, **kwargs)

    compiled._torchdynamo_orig_callable = function
    compiled._torchdynamo_wrapper_id = id(compiled)
    compiled.get_compiler_config = lambda: None
    return compiled


def direct_cond(torch, own_runs):
    """torch.cond that calls the branch which the data choose, where torch's own would have Dynamo compile both. Inside of tracers and transforms, and where anything but tensors is given, it is torch's own."""
    own, plain = torch.cond, (torch.Tensor, torch.nn.Parameter)
    modes, level = torch._C._len_torch_dispatch_stack, torch._C._functorch.maybe_current_level

    @functools.wraps(own)
    def cond(pred, true_fn, false_fn, operands=()):
        traced = torch.compiler.is_compiling() or own_runs() or modes() > 0 or level() is not None
        given = not traced and type(pred) is torch.Tensor and pred.numel() == 1 and callable(true_fn) and callable(false_fn) and isinstance(operands, (tuple, list))
        if not given or any(type(operand) not in plain for operand in operands):
            return own(pred, true_fn, false_fn, operands)
        return (true_fn if pred else false_fn)(*operands)

    return cond


def install(torch):
    made, own_runs = module_class(torch), False

    def real(*args, _own=torch.compile, **kwargs):
        nonlocal own_runs
        own_runs = True
        return _own(*args, **kwargs)

    @functools.wraps(torch.compile)
    def compile(model=None, **options):
        mode, backend = options.get("mode"), options.get("backend")
        if model is None:
            return functools.partial(compile, **options) if options else compile
        needs_own = backend not in BACKENDS or mode not in MODES or (mode is not None and options.get("options") is not None)
        if needs_own or (getattr(model, "__module__", None) or "").startswith(OWN_COMPILER):
            return real(model, **options)
        if options.get("disable") or isinstance(model, type):
            return model
        if isinstance(model, torch.nn.Module):
            return made(model._orig_mod if type(model) is made else model, options)
        if not callable(model):
            return real(model, **options)  # for its error
        return compiled_function(model)

    compiler, own_disable = torch.compiler, torch.compiler.disable

    def replace(name):
        """Of torch.compiler: torch's own as soon as its own compiler has been asked for."""
        own = getattr(compiler, name, None)

        def with_hint(hint):
            if own is None:
                return

            @functools.wraps(own)
            def function(*args, **kwargs):
                return own(*args, **kwargs) if own_runs else hint(*args, **kwargs)

            setattr(compiler, name, function)

        return with_hint

    @replace("disable")
    def disable(fn=None, recursive=True, *, reason=None):
        if fn is None:
            return functools.partial(compiler.disable, recursive=recursive, reason=reason)
        if isinstance(fn, (type, torch.nn.Module)) or not callable(fn):
            return own_disable(fn, recursive, reason=reason)

        @functools.wraps(fn)
        def disabled(*args, **kwargs):
            return fn(*args, **kwargs)

        disabled._torchdynamo_disable = True
        disabled._torchdynamo_orig_callable = fn
        return disabled

    @replace("reset")
    def reset():
        return None

    @replace("cudagraph_mark_step_begin")
    def cudagraph_mark_step_begin():
        return None

    @replace("allow_in_graph")
    def allow_in_graph(fn):
        return fn

    @replace("assume_constant_result")
    def assume_constant_result(fn):
        fn._dynamo_marked_constant = True
        return fn

    torch.compile = compile
    if hasattr(torch, "cond"):
        torch.cond = direct_cond(torch, lambda: own_runs)
