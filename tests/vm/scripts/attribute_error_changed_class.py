# A getter or __getattr__ that changes its class and then raises AttributeError: the error stays, and the class is seen as it is now.
import sys

# From 3.12 on, CPython's specialised forms leave name and object out.
named = sys.version_info < (3, 12)


class Missing:
    def __getattr__(self, name):
        Missing.count = getattr(Missing, "count", 0) + 1
        raise AttributeError(f"no {name} ({Missing.count})")


class Property:
    asked = 0

    @property
    def value(self):
        Property.asked += 1
        raise AttributeError("raised by the getter")


class Both(Property):
    def __getattr__(self, name):
        return f"instead of {name}"


class Getattribute:
    def __getattribute__(self, name):
        Getattribute.name = name
        raise AttributeError(f"not even {name}")


class Late:
    """Gets its __getattr__ while the getter runs."""

    @property
    def value(self):
        Late.__getattr__ = lambda self, name: "late " + name
        raise AttributeError("early")


def attribute(make):
    try:
        return make().value
    except AttributeError as error:
        return type(error).__name__, str(error), *((error.name, type(error.obj).__name__) if named else ())


def method(make):
    try:
        return make().value()
    except (AttributeError, TypeError) as error:
        return type(error).__name__, str(error)


def fresh():
    """A class of its own for each object, as unittest.mock makes them."""
    class Fresh:
        def __getattr__(self, name):
            raise AttributeError("fresh " + name)
    return Fresh()


for turn in range(30):
    for make in (Missing, Property, Both, Getattribute, fresh):
        print(turn, attribute(make), method(make))
print(attribute(Late), attribute(Late))
print({attribute(fresh) for turn in range(5000)})
