"""Shapes: what is said of results' sizes from those of operands is what eager gave; for usual operations without running torch's own Python code."""

import sys
import unittest

from bridge_case import driver, record
import torch
import torch.nn.functional as F

torch.manual_seed(0)
M = torch.rand(6, 8)
B = torch.rand(3, 6, 8)
IMAGE = torch.rand(2, 4, 6, 6)
ROWS = torch.tensor([[1, 0, 3], [2, 2, 5]])
LABELS = torch.tensor([1, 0, 3, 2, 7, 4])

# Whose result's sizes are said without torch's help.
BY_RULES = {
    "sums": lambda: (M.sum(), M.sum(0), M.sum(-1, keepdim=True), B.sum((0, 2)), B.sum((0, 2), keepdim=True), M.sum(()), torch.tensor(2.0).sum(0)),
    "means": lambda: (M.mean(), B.mean(1), B.mean((-1, -2), True)),
    "products": lambda: (M.prod(), M.prod(1), M.prod(1, True)),
    "extremes": lambda: (M.amax(0), M.amin((0, 1), True), M.max(), M.min(), *M.max(1), *M.min(0, True), M.argmax(), M.argmax(1), M.argmin(-1, keepdim=True), M.amax(())),
    "medians": lambda: (M.median(), *M.median(1), *B.median(-1, True)),
    "truth": lambda: ((M > 0).any(), (M > 0).any(1), (M > 0).all(), (M > 0).all(0, True), (M > 0).all(dim=(0, 1)), (M > 0).any(dim=(0,), keepdim=True)),
    "counts": lambda: (M.count_nonzero(), M.count_nonzero(0), B.count_nonzero((0, 2))),
    "deviations": lambda: (M.std(), M.std(0), M.var(1, keepdim=True), *torch.var_mean(B, (0, 1)), *torch.std_mean(M), B.var((0, 2), correction=0)),
    "norms": lambda: (M.norm(), M.norm(dim=1), torch.linalg.vector_norm(B, dim=(0, 2), keepdim=True), M.norm(p=1, dim=0, keepdim=True)),
    "logsumexp": lambda: (M.logsumexp(0), M.logsumexp(1, True)),
    "softmax": lambda: (M.softmax(0), M.log_softmax(1)),
    "scans": lambda: (M.cumsum(1), M.cumprod(0)),
    "order": lambda: (M.flip(0), M.tril(), M.triu(1), *M.sort(), *M.sort(dim=0, stable=True), M.argsort(), *M.topk(3), *M.topk(2, 0)),
    "joined": lambda: (torch.cat([M, M]), torch.cat([M, M, M], 1), torch.cat([B, B], -1), torch.stack([M, M]), torch.stack([M, M, M], -1), torch.stack([B, B], 1)),
    "chosen": lambda: (M.index_select(1, LABELS), M.gather(0, ROWS), F.embedding(ROWS, M), F.embedding(LABELS % 6, M)),
    "scattered": lambda: (M.scatter_add(0, ROWS, M), M.scatter(1, ROWS, 2.0), M.index_add(0, LABELS % 6, M)),
    "elements": lambda: (M + 1, M * B, B.unsqueeze(1) - M.view(6, 1, 8), torch.where(M > 0.5, M, M[0]), M.masked_fill(M > 0.5, 0.0), F.gelu(M), M.clamp(0, 1), M > M[:1], torch.lerp(M, M, 0.5)),
    "matrices": lambda: (M @ M.t(), torch.addmm(M[:, :6], M, M.t()), B @ B.transpose(1, 2), torch.baddbmm(B[:, :, :6], B, B.transpose(1, 2)), M @ M[0], M[0] @ M[1],
                         torch.addmv(M[:, 0], M, M[0]), F.linear(M, M, M[:, 0])),
    "layer_norm": lambda: (F.layer_norm(M, (8,)), F.layer_norm(B, (6, 8), M, M)),
    "group_norm": lambda: (F.group_norm(IMAGE, 2, IMAGE[0, :, 0, 0].clone()),),
    "batch_norm": lambda: (F.batch_norm(M, None, None, training=True), F.batch_norm(IMAGE, torch.zeros(4), torch.ones(4)), F.batch_norm(IMAGE, torch.zeros(4), torch.ones(4), training=True)),
    "losses": lambda: (F.mse_loss(M, M), F.mse_loss(M, M[0].expand(6, 8).clone(), reduction="none"), F.smooth_l1_loss(M, M), F.huber_loss(M, M, reduction="sum"),
                       F.nll_loss(M, LABELS), F.nll_loss(M, LABELS, reduction="none"), F.cross_entropy(M, LABELS), F.binary_cross_entropy(M, M),
                       F.binary_cross_entropy_with_logits(M, M), F.binary_cross_entropy_with_logits(M, M, reduction="none"), F.kl_div(M, M, reduction="sum")),
    "made": lambda: (torch.rand(2, 3), torch.randn(4), torch.randint(5, (3, 2)), torch.randint(1, 5, (3,)), torch.zeros(2, 2), torch.ones(()), torch.full((2, 3), 1.5), M.new_zeros(3), M.new_ones((2, 1)),
                     M.new_full((1, 2), 7.0), torch.zeros_like(M), torch.ones_like(B), torch.full_like(M, 2.0), torch.rand_like(M), torch.randn_like(M), M.clone(), M.double(), torch.eye(3), torch.eye(2, 5)),
    "in order": lambda: (M[:, :3] + 1, M[0].expand(6, 8) * M[:, 2:3], M[0].expand(6, 8).exp(), M[:1].expand(6, 8).clone(), B[:, 1:4, ::2].softmax(1), M[:, ::2].sum(1), M[0].expand(6, 8).double()),
    "shaped": lambda: (F.pad(M, (1, 2)), F.pad(IMAGE, (1, 1, 2, 0), value=3.0), M.repeat(2, 3), M.repeat(4, 1, 2)),
    "random": lambda: (F.dropout(M), torch.bernoulli(M), M.multinomial(3), M.multinomial(20, True)),
}


# As those, by way of their gradients.
GRADIENTS = {
    "softmax": lambda x: x.softmax(0).log_softmax(1).sum(),
    "layer_norm": lambda x: F.layer_norm(x, (8,), torch.ones(8, requires_grad=True), torch.zeros(8, requires_grad=True)).square().sum(),
    "batch_norm": lambda x: F.batch_norm(x, None, None, torch.ones(8, requires_grad=True), training=True).square().sum(),
    "group_norm": lambda x: F.group_norm(x.view(2, 4, 6), 2, torch.ones(4, requires_grad=True), torch.zeros(4, requires_grad=True)).square().sum(),
    "losses": lambda x: F.mse_loss(x, M) + F.smooth_l1_loss(x, M) + F.huber_loss(x, M) + F.cross_entropy(x, LABELS) + F.nll_loss(x, LABELS, reduction="none").sum(),
    "embedding": lambda x: F.embedding(LABELS % 6, x).square().sum(),
    "parts": lambda x: x[1].sum() + x[:, 2:5].square().sum() + x.std() + x.amax(1).sum() + x.norm(),
    "products": lambda x: ((x @ x.t()) @ x).relu().sum(),
}

# torch is asked, which may run Python code, or knows nothing.
BY_TORCH = {
    "convolutions": lambda: (F.conv2d(IMAGE, torch.rand(3, 4, 3, 3)), F.max_pool2d(IMAGE, 2), F.interpolate(IMAGE, scale_factor=2)),
    "strided": lambda: (M.t().sum(0), M.t().softmax(0), torch.cat([M.t(), M.t()])),
    "strides of ones": lambda: (torch.nonzero(M[0]).float(), torch.empty_strided((4, 1), (1, 9)).clone(), torch.empty_strided((4, 1), (1, 9)).fill_(1.0).softmax(0)),
    "attention": lambda: tuple(F.scaled_dot_product_attention(torch.rand(1, n, 4, 8).transpose(1, 2), torch.rand(1, 4, 7, 8), torch.rand(1, 4, 7, 8)) for n in (1, 3)),
    "index": lambda: (M[LABELS % 6],),
}


class Shapes(unittest.TestCase):
    def check(self, function, by_rules):
        recorder, records, ops, _kept = record(function)  # else their geometry would be gone
        self.assertGreater(len(ops), 0)
        for i, op in enumerate(ops):
            python = []
            sys.setprofile(lambda frame, event, _: python.append(frame.f_code.co_name) if event == "call" else None)
            try:
                answer = driver.shapes(recorder, records, i)
            finally:
                sys.setprofile(None)
            if by_rules:
                self.assertIsInstance(answer, list, op["name"])
                if "view" not in op["name"]:
                    self.assertEqual((op["name"], python[:3]), (op["name"], []))
            if isinstance(answer, str):
                continue
            for result, (sizes, strides) in zip(op["results"], answer):
                if result < 0:
                    continue
                meta = driver.tensor_meta(recorder, result)
                self.assertEqual((op["name"], sizes), (op["name"], meta["sizes"]))
                self.assertEqual((op["name"], strides), (op["name"], meta["strides"]))

    def test_by_rules(self):
        for name, function in BY_RULES.items():
            with self.subTest(name):
                self.check(function, True)

    def test_gradients(self):
        for name, function in GRADIENTS.items():
            def step():
                x = M.clone().requires_grad_()
                loss = function(x)
                loss.backward()
                return x, loss, x.grad
            with self.subTest(name):
                self.check(step, True)

    def test_by_torch(self):
        for name, function in BY_TORCH.items():
            with self.subTest(name):
                self.check(function, False)


if __name__ == "__main__":
    sys.exit(unittest.main())
