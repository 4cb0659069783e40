// A call of autograd's engine that goes on behind the trace's part of the graph (outside_graphs.cpp).
#pragma once

#include <memory>
#include <vector>

#include "tracer/recorder.h"

namespace dynvm::tracer {

struct Recorder::EngineOutside {
  Recorder* recorder;
  PyObject* callee;                     // run_backward
  PyObject* names;                      // of its keyword arguments
  const std::vector<V>& inputs;         // its arguments
  bool* error;
  std::vector<V> outsiders{};           // where the first step stops
  std::unique_ptr<bridge::GraphCut> cut{};
  std::vector<PyObject*> gradients{};   // that have come to them
  bool due = false;                     // the first step has been taken, the second one has not

  void stopped();
  ~EngineOutside();                     // takes it, where nothing of it has been recorded
};

}  // namespace dynvm::tracer
