# try/except/else/finally with return and continue inside, around parsing and normalising each record.
# expect: traces>=1
import torch


def parse(record, counts):
    try:
        values = torch.tensor([float(part) for part in record.split(",")])
        result = values / values.sum()
        if torch.isinf(result).any():
            raise ZeroDivisionError("sum is zero")
    except ValueError as error:
        counts["bad"] += 1
        counts["last"] = str(error)
        return None
    except ZeroDivisionError:
        counts["zero"] += 1
        return torch.zeros(3)
    else:
        counts["good"] += 1
        return result
    finally:
        counts["seen"] += 1


records = [f"{k},{k * 2 % 7},1" for k in range(60)]
for k in (25, 44):
    records[k] = "1,oops,2"
records[33] = "1,1,-2"
counts = {"bad": 0, "zero": 0, "good": 0, "seen": 0}
total = torch.zeros(3)
for record in records:
    try:
        parsed = parse(record, counts)
        if parsed is None:
            continue
        total = total + parsed
    finally:
        total = total * 0.99
print(counts, [f"{v:.4f}" for v in total.tolist()])
