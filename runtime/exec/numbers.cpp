// Boxing and unboxing, and what arithmetic on unboxed numbers leaves to C (helpers.h).
#include <cerrno>
#include <cmath>
#include <cstring>

#include "runtime/exec/helpers.h"

namespace dynvm::runtime::helpers {
namespace {

double from_bits(int64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

PyObject* box_int(int64_t value) { return PyLong_FromLongLong(value); }
PyObject* box_float(int64_t bits) { return PyFloat_FromDouble(from_bits(bits)); }

// Python's float_pow agrees with C99's pow wherever it neither raises nor turns to complex numbers.
int pow_float(int64_t base, int64_t exponent, int64_t* result) {
  double x = from_bits(base), y = from_bits(exponent);
  if (x == 0 && y < 0 && std::isfinite(y)) return 1;                                                         // ZeroDivisionError
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::floor(y)) return 1;       // complex
  errno = 0;
  double value = std::pow(x, y);
  if (std::isinf(value) && std::isfinite(x) && std::isfinite(y)) return 1;                 // OverflowError
  if (errno == ERANGE && value != 0) return 1;                                             // Python decides
  std::memcpy(result, &value, sizeof value);
  return 0;
}

int unbox_int(PyObject* exact_int, int64_t* result) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(exact_int, &overflow);
  *result = value;
  return overflow != 0;
}

}  // namespace dynvm::runtime::helpers
