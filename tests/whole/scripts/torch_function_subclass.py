# A tensor subclass with __torch_function__ carries a unit through operations, and refuses to add what does not fit.
# expect: compiled>=0.5, traces>=1
import torch


class Quantity(torch.Tensor):
    @staticmethod
    def __new__(cls, data, unit=""):
        result = torch.as_tensor(data, dtype=torch.float32).as_subclass(cls)
        result.unit = unit
        return result

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        units = [a.unit for a in args if isinstance(a, Quantity) and hasattr(a, "unit")]
        if func in (torch.Tensor.add, torch.add) and len(set(units)) > 1:
            raise ValueError(f"cannot add {units[0]} and {units[1]}")
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, Quantity):
            result.unit = "*".join(units) if func is torch.Tensor.mul else units[0] if units else ""
        return result


distance, speed = Quantity([1.0, 2.0, 3.0], "m"), Quantity([0.5, 0.25, 2.0], "m/s")
refused = 0
total = torch.zeros(3)
for step in range(60):
    seconds = torch.full((3,), 0.1 * step)
    moved = distance + Quantity((speed * seconds).as_subclass(torch.Tensor), "m")
    try:
        torch.add(distance, speed)
    except ValueError as error:
        refused += str(error) == "cannot add m and m/s"
    total = total + moved.as_subclass(torch.Tensor)
print(type(moved).__name__, moved.unit, refused, (distance * speed).unit)
print([f"{v:.4f}" for v in total.tolist()])
