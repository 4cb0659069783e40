// Nodes of torch.autograd.Function in graphs that an exit builds.
//
// A trace holds what forward() of such a Function has computed, not its call. Where an exit needs a graph that goes through it, apply() runs once more, of a
// stand-in whose forward() computes nothing: it gives the context what the Function's own had put there, and returns the trace's values. So the node, its
// context, its edges and its outputs are made by torch, and a later backward() calls the Function's own.
//
// In a trace each output with a graph is the result of `dynvm::function_output(Tensor(a) output, Tensor[] outputs, Tensor[] inputs, int[] layout)`, a view
// of the value that forward() gave. layout: number of the call of apply(); position of the output in `outputs`; number of all results; of each, its position
// in `outputs` (-1: no tensor) and the argument that it was (-1: none); number of arguments; of each, its position in `inputs` (-1: no tensor).
// A tensor with a hook is the result of `dynvm::hooked(Tensor(a) tensor) -> Tensor(a)`; recipe: (function).
// recipe: (class, attributes of the context by name[, hooks: whether it comes before the node, the function, and so on]). In to_save and non_differentiable an int stands for that result of the call, -1 - k for its
// argument k.
// Tests: tests/traces/cases/function_exits.py.
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>

#include <functional>
#include <vector>

namespace dynvm::torch_bridge {

inline constexpr const char* kFunctionOutput = "dynvm::function_output";
inline constexpr const char* kHooked = "dynvm::hooked";

void register_function_output();

// A Python exception is set.
struct PythonRaised {};

void hook_again(PyObject* recipe, const at::Tensor& tensor);

// The tensors of `outputs`, with the node as their history. `value(k)` gives a tensor of `outputs` without one. Throws PythonRaised.
std::vector<at::Tensor> apply_again(PyObject* recipe, const std::function<at::Tensor(size_t)>& value, const std::vector<at::Tensor>& inputs,
                                    const std::vector<int64_t>& layout);

}  // namespace dynvm::torch_bridge
