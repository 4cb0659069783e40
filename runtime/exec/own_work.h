// Python code that the script did not ask for, as torch's meta functions run it while a trace is compiled, and its capturing of CUDA graphs: nothing in it is traced.
#pragma once

#include <Python.h>

#include <utility>

namespace dynvm::runtime {

inline thread_local bool own_work = false;  // this thread's
inline int own_works = 0;                   // that are under way, in all threads

// While it lives, that is so here, and the script's exception, if one is under way, is put aside.
class OwnWork {
 public:
  OwnWork() {
    PyErr_Fetch(&type_, &value_, &traceback_);
    before_ = std::exchange(own_work, true);
    own_works++;
  }
  ~OwnWork() {
    own_work = before_;
    own_works--;
    PyErr_Restore(type_, value_, traceback_);
  }
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;

 private:
  bool before_ = false;
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

}  // namespace dynvm::runtime
