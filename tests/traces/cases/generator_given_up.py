# A generator inside of a comprehension whose recording is given up in the middle: any() still sees all that it yields.
# expect: traces>=1
import torch
def main():
    irrelevant = ["decoder_", "cross_attn", "use_cache"]
    kwargs = {"a": 1, "decoder_x": 2, "use_cache": True, "b": 3}
    x = torch.ones(3); seen = []
    for i in range(20):
        d = {k: v for k, v in kwargs.items() if not any(seen.append(p) or k.startswith(p) for p in irrelevant)}
        x = x * len(d) * 0.5
    print(x, d, len(seen))
main()
