"""typing at run time, __class_getitem__, unions, NewType, protocols, Annotated: metaclass-heavy library code."""
import typing, types, collections.abc
T = typing.TypeVar("T")
class Stack(typing.Generic[T]):
    def __init__(self): self.items: list[T] = []
    def push(self, x: T) -> "Stack[T]": self.items.append(x); return self
print(Stack[int]().push(1).items, Stack[int], typing.get_type_hints(Stack.push), typing.Optional[int], int | None, list[int] | str)
class P(typing.Protocol):
    def m(self) -> int: ...
@typing.runtime_checkable
class R(typing.Protocol):
    def m(self): ...
class Impl:
    def m(self): return 1
print(isinstance(Impl(), R), isinstance(5, R), typing.cast(int, "x"), typing.NewType("N", int)(5), typing.Annotated[int, "meta"])
class TD(typing.TypedDict, total=False): a: int
class NT(typing.NamedTuple): x: int; y: str = "y"
print(TD(a=1), NT(1), NT(1)._asdict(), typing.get_args(dict[str, int]), typing.get_origin(typing.List[int]), isinstance([], collections.abc.Sequence), issubclass(dict, collections.abc.Mapping))
@typing.overload
def o(a: int) -> int: ...
def o(a): return a
print(o(3), types.new_class("Dyn", (), {}, lambda ns: ns.update(v=1)).v, types.SimpleNamespace(a=1), typing.Literal["a", 1], typing.Callable[[int], str], tuple[int, ...], type[int])
for i in range(5):
    try: Stack[int, str]
    except TypeError as e: m = str(e)
print(m)
