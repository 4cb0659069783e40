# Operations whose data decides sizes, where the program asks for the size and not for the values: the size is another one in a later iteration.
# expect: traces>=2
import torch

torch.manual_seed(0)


def selected(x):
    found = x.masked_select(x > 2)
    if found.numel() == 0:
        return "none"
    return len(found)


def places(x):
    return "empty" if torch.nonzero(x > 1.5).size(0) == 0 else "some"


def chosen(x):
    return x[x < -2].shape


for ask in (selected, places, chosen):
    answers = []
    for i in range(80):
        x = torch.randn(6) * (0.2 if i < 30 else 1.5)
        answers.append(ask(x))
    print(ask.__name__, answers)

# What printing a tensor asks: is any element no whole number?
texts = []
for i in range(80):
    x = torch.tensor(0.0) if i < 40 else torch.tensor(float(i)) / 7
    texts.append(repr(x + 0))
print(texts)
