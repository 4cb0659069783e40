# Submodules that a package has or has not got yet, imported in loops: `from package import module` imports them then, with their own effects.
# expect: compiled>=0.3, traces>=1
import sys
import xml.dom

import torch


def last(i):
    from xml.dom import minicompat

    return len(minicompat.__all__) + i


def loop(n, forget):
    x, total, loaded = torch.ones(4, 4), 0, 0
    for i in range(n):
        x = torch.tanh(x * 0.5 + 0.25)
        if forget(i):
            sys.modules.pop("xml.dom.minicompat", None)
            vars(xml.dom).pop("minicompat", None)
        before = "xml.dom.minicompat" in sys.modules
        total += last(i)
        loaded += not before
        from xml.dom import NodeFilter, minicompat as again
        assert again is sys.modules["xml.dom.minicompat"]
    print(f"{x.sum().item():.4f}", total, loaded, NodeFilter.__name__)


loop(60, lambda i: True)
loop(60, lambda i: i % 7 == 0)
loop(60, lambda i: i == 40)
try:
    for i in range(40):
        y = torch.ones(2) + i
        if i > 20:
            from xml.dom import nothing_of_that_name
except ImportError as error:
    print(type(error).__name__, str(error).split(" (")[0], i)
