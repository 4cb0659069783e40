"""Recording: what arrives, in which order, with which arguments, and what is refused by name."""

import gc
import unittest

from bridge_case import driver, names, record
import torch
import torch.nn.functional as F


def unsupported(ops):
    return [op["unsupported"] for op in ops if op["unsupported"]]


class Recording(unittest.TestCase):
    def test_forward_backward_in_order(self):
        w = torch.randn(3, 4, requires_grad=True)
        x = torch.randn(2, 3)
        _, _, ops, _ = record(lambda: (x @ w).relu().sum().backward())
        self.assertEqual(names(ops)[0], "aten::mm")
        self.assertTrue(ops[0]["grad_mode"])
        self.assertFalse(ops[0]["in_backward"])
        self.assertTrue(ops[-1]["in_backward"])
        self.assertFalse(unsupported(ops))
        forward = [op["name"] for op in ops if not op["in_backward"]]
        self.assertEqual([n for n in forward if n != "aten::detach"][:3], ["aten::mm", "aten::relu", "aten::sum"])

    def test_nothing_after_disable(self):
        recorder, _, ops, _ = record(lambda: torch.zeros(2))
        torch.ones(3) + 1
        self.assertEqual(driver.list_records(driver.take(recorder)), [])
        self.assertEqual(len(ops), 1)

    def test_ids_follow_the_memory(self):
        x = torch.randn(4, 4)

        def step():
            a = x * 2
            return a, a.t().t(), a.view(16)

        recorder, _, ops, (a, tt, flat) = record(step)
        self.assertEqual(driver.tensor_id(recorder, a), ops[0]["results"][0])
        self.assertEqual(driver.tensor_id(recorder, tt), ops[0]["results"][0])
        self.assertNotEqual(driver.tensor_id(recorder, flat), ops[0]["results"][0])
        self.assertEqual(driver.tensor_id(recorder, x), ops[0]["args"][0]["ids"][0])
        meta_a, meta_flat = (driver.tensor_meta(recorder, driver.tensor_id(recorder, t)) for t in (a, flat))
        self.assertEqual(meta_a["storage"], meta_flat["storage"])
        self.assertEqual(meta_flat["sizes"], [16])

    def test_a_freed_address_is_not_taken_for_the_old_tensor(self):
        recorder = driver.recorder()
        seen = set()
        for i in range(20):
            _, _, ops, t = record(lambda: torch.zeros(5) + i, recorder)
            seen.add(driver.tensor_id(recorder, t))
            del t
        self.assertEqual(len(seen), 20)

    def test_only_weak_references(self):
        recorder, _, _, t = record(lambda: torch.randn(1000))
        storage = torch.multiprocessing.reductions.StorageWeakRef(t.untyped_storage())
        self.assertFalse(storage.expired())
        del t
        gc.collect()
        self.assertTrue(storage.expired())
        del recorder

    def test_wrapped_numbers_by_value(self):
        x = torch.randn(3)
        _, _, ops, _ = record(lambda: (x * 2.5, x + 3, torch.add(x, x, alpha=0.5)))
        self.assertEqual((ops[0]["args"][1]["kind"], ops[0]["args"][1]["f"]), ("number", 2.5))
        self.assertEqual((ops[1]["args"][1]["kind"], ops[1]["args"][1]["i"]), ("number", 3))
        self.assertEqual((ops[2]["args"][2]["kind"], ops[2]["args"][2]["f"]), ("float", 0.5))

    def test_aliases_and_writes(self):
        x = torch.randn(4, 3)
        running = torch.zeros(3)

        def step():
            x.add_(1)
            x.t()
            x.split(2)
            torch._foreach_mul_([x, running], 2.0)
            torch.add(x, 1, out=torch.empty(4, 3))
            F.batch_norm(x, running, torch.ones(3), training=True)

        _, _, ops, _ = record(step)
        by_name = {op["name"]: op for op in ops}
        self.assertEqual((by_name["aten::add_.Tensor"]["mutates"], by_name["aten::add_.Tensor"]["alias"]), ([0], [0]))
        self.assertEqual((by_name["aten::t"]["mutates"], by_name["aten::t"]["alias"]), ([], [0]))
        split = next(op for op in ops if op["name"].startswith("aten::split"))
        self.assertEqual(split["alias"], [0, 0])
        self.assertEqual(by_name["aten::_foreach_mul_.Scalar"]["mutates"], [0])
        self.assertEqual(by_name["aten::add.out"]["alias"], [by_name["aten::add.out"]["mutates"][0]])
        norm = next(op for op in ops if "batch_norm" in op["name"])
        self.assertEqual(norm["mutates"], [3, 4])

    def test_random(self):
        x = torch.randn(10)
        _, _, ops, _ = record(lambda: (torch.rand(3), F.dropout(x, 0.5), x.normal_(), F.dropout(x, 0.5, training=False)))
        self.assertEqual([op["name"] for op in ops if op["random"]], ["aten::rand", "aten::bernoulli_.float", "aten::normal_"])
        _, _, ops, _ = record(lambda: torch.native_dropout(x, 0.5, True))
        self.assertEqual([(op["random"], op["stream"], op["note"]) for op in ops if op["name"] == "aten::native_dropout"], [(True, False, "")])  # of a CPU: it draws in a way of its own

    def test_number_results(self):
        x = torch.tensor([1.5, 2.0])
        _, _, ops, _ = record(lambda: (x[0].item(), (x > 1).all().item(), torch.tensor(7).item()))
        self.assertEqual([op["number"] for op in ops if op["name"] == "aten::_local_scalar_dense"], [1.5, True, 7])

    def test_python_data_is_kept(self):
        _, _, ops, _ = record(lambda: (torch.tensor([1.0, 2.0]), torch.tensor(3.5)))
        self.assertEqual([op["name"] for op in ops], ["aten::lift_fresh", "aten::full"])
        self.assertEqual(ops[0]["args"][0]["kind"], "opaque")
        self.assertEqual((ops[1]["args"][1]["kind"], ops[1]["args"][1]["f"]), ("float", 3.5))

    def test_composites_decompose_under_inference_mode(self):
        x, w, b = torch.randn(2, 3), torch.randn(4, 3), torch.randn(4)

        def step():
            with torch.inference_mode():
                return F.linear(x, w, b).reshape(8)

        _, _, ops, _ = record(step)
        self.assertNotIn("aten::reshape", names(ops))
        self.assertIn("aten::addmm", names(ops))

    def test_composites_with_a_kernel_of_the_backend_are_seen(self):
        x = torch.randn(4, 3, requires_grad=True)
        for function, name in ((F.silu, "aten::silu_backward"), (F.mish, "aten::mish_backward")):
            _, _, ops, _ = record(lambda: function(x).sum().backward())
            self.assertIn(name, names(ops))

    def test_autocast_conversions_are_seen(self):
        x, w = torch.randn(2, 3), torch.randn(3, 3)

        def step():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return x @ w

        _, _, ops, _ = record(step)
        self.assertEqual(names(ops), ["aten::_to_copy", "aten::_to_copy", "aten::mm"])

    def test_an_operation_that_raises(self):
        recorder = driver.recorder()
        driver.enable(recorder)
        with self.assertRaises(RuntimeError):
            torch.mm(torch.zeros(2, 3), torch.zeros(2, 3))
        driver.disable(recorder)
        ops = driver.list_records(driver.take(recorder))
        self.assertTrue(ops[-1]["raised"])
        self.assertEqual(ops[-1]["results"], [])

    def test_profiler_marks_are_skipped(self):
        def step():
            with torch.autograd.profiler.record_function("mark"):
                return torch.zeros(2) + 1

        _, _, ops, _ = record(step)
        self.assertEqual(names(ops), ["aten::zeros", "aten::add.Tensor"])

    def test_data_that_decides_sizes(self):
        x = torch.randn(6)
        cases = {"aten::nonzero": lambda: x.nonzero(), "aten::index.Tensor": lambda: x[x > 0], "aten::masked_select": lambda: x.masked_select(x > 0),
                 "aten::_unique2": lambda: x.unique(return_counts=True), "aten::repeat_interleave.Tensor": lambda: torch.repeat_interleave(torch.tensor([2, 1]))}
        for name, function in cases.items():
            with self.subTest(name):
                _, _, ops, _ = record(function)
                self.assertEqual(unsupported(ops), [])
                self.assertIn(name, [op["name"] for op in ops if op["defines_sizes"]])
        _, _, ops, _ = record(lambda: x[torch.tensor([1, 2])] + x.sum())
        self.assertFalse(any(op["defines_sizes"] for op in ops))

    def test_refused_by_name(self):
        x, matrix = torch.randn(4), torch.randn(2, 3)
        cases = {
            "sparse": lambda: torch.eye(3).to_sparse() + torch.eye(3).to_sparse(),
            "meta": lambda: torch.empty(2, device="meta") + 1,
            "storage": lambda: torch.empty(2).resize_(5),
            "geometry": lambda: matrix.t_(),
            "explicit random generator": lambda: torch.rand(2, generator=torch.Generator()),
            "data-dependent result": lambda: torch.equal(x, x),
            "another library": lambda: torch.from_numpy(__import__("numpy").zeros(3)),
            "conjugated": lambda: torch.zeros(2, dtype=torch.complex64).conj() * 2,
            "quantized": lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
        }
        for reason, function in cases.items():
            with self.subTest(reason):
                _, _, ops, _ = record(function)
                self.assertTrue(any(reason in u for u in unsupported(ops)), unsupported(ops))
        self.assertEqual(unsupported(record(lambda: x[torch.tensor([0, 2])])[2]), [])

    def test_gradients_are_stolen_as_in_eager(self):
        w = torch.randn(3, requires_grad=True)
        _, _, ops, _ = record(lambda: (w * 2).sum().backward())
        self.assertEqual(ops[-1]["name"], "aten::detach")

    def test_other_threads_are_not_recorded(self):
        import threading

        def step():
            thread = threading.Thread(target=lambda: torch.zeros(3) + 1)
            thread.start()
            thread.join()
            torch.ones(2)

        self.assertEqual(names(record(step)[2]), ["aten::ones"])

    def test_counting(self):
        before = driver.ops_counted()
        driver.set_counting(True)
        torch.zeros(3) + 1
        driver.set_counting(False)
        torch.zeros(3) + 1
        self.assertEqual(driver.ops_counted() - before, 2)

    def test_counting_goes_on_after_recording(self):
        driver.set_counting(True)
        record(lambda: torch.zeros(1))
        before = driver.ops_counted()
        torch.zeros(3)
        driver.set_counting(False)
        self.assertEqual(driver.ops_counted() - before, 1)


class Objects(unittest.TestCase):
    def test_describe(self):
        w = torch.nn.Parameter(torch.randn(3))
        y = (w * 2).unbind()[1]
        self.assertEqual(driver.describe(y)["grad_fn"], "UnbindBackward0")
        self.assertEqual(driver.describe(y)["output_nr"], 1)
        self.assertTrue(driver.describe(y)["is_view"])
        self.assertTrue(driver.describe(w)["exact_type"])
        self.assertTrue(driver.describe(w)["is_leaf"])
        self.assertFalse(driver.describe(w)["has_hooks"])
        handle = w.register_hook(lambda g: g)
        self.assertTrue(driver.describe(w)["has_hooks"])
        handle.remove()
        w.register_post_accumulate_grad_hook(lambda p: None)
        self.assertTrue(driver.describe(w)["has_hooks"])
        self.assertTrue(driver.is_tensor(w))
        self.assertFalse(driver.is_tensor(3))

        class Sub(torch.Tensor):
            pass

        self.assertFalse(driver.describe(torch.zeros(2).as_subclass(Sub))["exact_type"])
        t = torch.zeros(2)
        t.add_(1)
        self.assertEqual(driver.describe(t)["version"], 1)

    def test_storage_key(self):
        x = torch.randn(4)
        self.assertEqual(driver.storage_key(x), driver.storage_key(x[1:]))
        self.assertNotEqual(driver.storage_key(x), driver.storage_key(x.clone()))

    def test_grad(self):
        w = torch.randn(3, requires_grad=True)
        self.assertIsNone(driver.get_grad(w))
        g = torch.ones(3)
        driver.set_grad(w, g)
        self.assertIs(w.grad, g)
        self.assertIs(driver.get_grad(w), g)
        driver.set_grad(w, None)
        self.assertIsNone(w.grad)
        for wrong in (torch.ones(4), torch.ones(3, dtype=torch.float64), 3, w):
            with self.subTest(str(wrong)):
                eager = mine = None
                try:
                    w.grad = wrong
                except Exception as e:
                    eager = e
                try:
                    driver.set_grad(w, wrong)
                except Exception as e:
                    mine = e
                self.assertIsNotNone(mine)
                self.assertEqual((type(mine), str(mine)), (type(eager), str(eager)))
        with self.assertWarns(UserWarning):
            driver.get_grad(w * 2)

    def test_torch_state(self):
        self.assertTrue(driver.torch_state()["clean"])
        self.assertTrue(driver.torch_state()["grad_mode"])
        with torch.no_grad():
            self.assertFalse(driver.torch_state()["grad_mode"])
        with torch.inference_mode():
            self.assertTrue(driver.torch_state()["inference_mode"])
            self.assertTrue(driver.torch_state()["clean"])
        with torch.autocast("cpu"):
            self.assertTrue(driver.torch_state()["autocast_cpu"])
            self.assertTrue(driver.torch_state()["clean"])
        from torch.utils._python_dispatch import TorchDispatchMode
        from torch.overrides import TorchFunctionMode
        with TorchDispatchMode():
            self.assertFalse(driver.torch_state()["clean"])
        with TorchFunctionMode(), TorchFunctionMode():
            self.assertTrue(driver.torch_state()["clean"])
            self.assertEqual(driver.torch_state()["function_modes"], 2)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            self.assertFalse(driver.torch_state()["clean"])
        with torch.profiler.profile():
            self.assertTrue(driver.torch_state()["clean"])
        self.assertFalse(torch.vmap(lambda x: x * int(driver.torch_state()["clean"]))(torch.ones(2)).any())
        self.assertTrue(driver.torch_state()["clean"])

        with torch._C.DisableTorchFunctionSubclass():
            self.assertFalse(driver.torch_state()["overrides"])
            self.assertTrue(driver.torch_state()["clean"])
        with torch._C.DisableTorchFunction():
            self.assertFalse(driver.torch_state()["clean"])
        self.assertTrue(driver.torch_state()["overrides"])

    def test_overrides(self):
        called = []

        class Sub(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                called.append(func)
                return super().__torch_function__(func, types, args, kwargs)

        class Disabled(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl

        plain, sub = torch.zeros(2), torch.ones(2).as_subclass(Sub)
        self.assertEqual([driver.overrides(o) for o in (plain, sub, torch.nn.Parameter(plain), plain.as_subclass(Disabled), 3)], [False, True, False, False, False])
        passed = NotImplemented  # stands for what the call passes on
        parts = [plain, sub]
        for call, expected, override, args, keywords in (
            (lambda: sub + plain, passed, torch.Tensor.add, (sub, plain), None),
            (lambda: torch.cat(parts, dim=0), passed, torch.cat, (parts,), {"dim": 0}),
            (lambda: sub.shape, passed, torch.Tensor.shape.__get__, (sub,), None),
            (lambda: sub.__setitem__(0, 5.0), None, torch.Tensor.__setitem__, (sub, 0, 5.0), None),
        ):
            result, asked = driver.ask_override(call)
            self.assertIs(result, expected)
            self.assertEqual(asked[:2], (override, (Sub,)))
            self.assertEqual([id(o) for o in asked[2]], [id(o) for o in args])
            self.assertEqual(asked[3] if len(asked) > 3 and asked[3] else None, keywords)
        self.assertNotIn(driver.ask_override(lambda: len(sub))[0], (passed, None))
        self.assertEqual((called, sub.tolist()), ([torch.Tensor.tolist], [1.0, 1.0]))  # nothing was done
        result, asked = driver.ask_override(lambda: sub.as_subclass(torch.Tensor))  # which nothing overrides
        self.assertIs(type(result), torch.Tensor)
        self.assertIsNone(asked)
        with self.assertRaises(ZeroDivisionError):
            driver.ask_override(lambda: 1 // 0)

    def test_versions_must_agree(self):
        import os
        with self.assertRaises(ImportError):
            driver.load(os.environ["DYNVM_TEST_BRIDGE"], 99)

    def test_parallel_for(self):
        self.assertEqual(driver.parallel_sum(100000), 100000 * 99999 // 2)


if __name__ == "__main__":
    unittest.main()
