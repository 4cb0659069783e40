# Exceptions re-raised, chained with `from`, and nested handlers, with the context that each one carries.
# expect: compiled>=0.85, traces>=1
import torch


class StepError(RuntimeError):
    pass


def inner(x, step):
    if step % 14 == 13:
        raise ValueError(f"value {step}")
    return torch.sqrt(x.abs() + step)


def middle(x, step):
    try:
        return inner(x, step)
    except ValueError as error:
        if step > 30:
            raise StepError(f"step {step}") from error
        raise


x = torch.linspace(-2, 2, 6)
seen = []
for step in range(60):
    try:
        try:
            x = middle(x, step) - 1
        except ValueError as error:
            seen.append((type(error).__name__, error.__cause__, type(error.__context__).__name__))
            try:
                {}["missing"]
            except KeyError as second:
                seen.append((type(second).__name__, type(second.__context__).__name__))
    except StepError as error:
        seen.append((str(error), type(error.__cause__).__name__, error.__suppress_context__))
print(*seen, sep="\n")
print([f"{v:.4f}" for v in x.tolist()])
