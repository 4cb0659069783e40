# What an iteration puts into containers that hold each other is what a script finds in them where a trace is left: the same objects, as they are then.
# expect: compiled>=0.5, side_exits>=1
import torch


def main():
    x = torch.ones(4)
    for i in range(300):
        items = []
        table = {"items": items}
        pair = (items, table)
        size = (x * i).sum()
        if size > 1000:
            items.append("large")
        late = lambda: (items, size)  # noqa: E731
        items.append(i)
        table["more"] = [items]
        items[0] = -i
        first = x * 2
        held = [first]
        first.add_(1)
        total = (first * i).sum()
        if total > 3300:
            print(i, pair, pair[0] is items, pair[1] is table, table["more"][0] is items, late()[0] is items, held[0] is first, held[0].tolist())
    print(total.item(), items)


main()
