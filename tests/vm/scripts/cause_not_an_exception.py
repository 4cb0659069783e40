# `raise ... from` a class that makes something else than an exception: an error from 3.13 on.
class MakesNone(BaseException):
    @classmethod
    def __new__(*arguments): return None


class MakesInt(BaseException):
    def __new__(cls): return 5


class Fails(BaseException):
    def __new__(cls): raise KeyError("k")


for raised in IndexError, IndexError("given"), MakesInt, 5:
    for cause in MakesNone, MakesInt, Fails, KeyError, 5, None:
        try:
            raise raised from cause
        except BaseException as error:
            made = getattr(error, "__cause__", None)
            print(type(error).__name__, error, made if made is None or isinstance(made, BaseException) else "no exception", error.__suppress_context__)
            error.__cause__ = None
