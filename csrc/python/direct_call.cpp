#include "python/direct_call.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "torch_ops/autograd.h"

namespace aclnn_torch {
namespace {

namespace py = pybind11;

// What a Python object is read into, and how it is passed on.
template <class T>
struct Argument;

// Owned: while the interpreter's lock is released, the Python object may be given another tensor.
template <>
struct Argument<const Tensor&> {
  Tensor value;
  bool read(PyObject* object) {
    if (!THPVariable_CheckExact(object)) return false;
    value = THPVariable_Unpack(object);
    return true;
  }
  const Tensor& get() const { return value; }
};

template <>
struct Argument<const std::optional<Tensor>&> {
  std::optional<Tensor> value;
  bool read(PyObject* object) {
    if (object == Py_None) return true;
    Argument<const Tensor&> tensor;
    if (!tensor.read(object)) return false;
    value = std::move(tensor.value);
    return true;
  }
  const std::optional<Tensor>& get() const { return value; }
};

template <>
struct Argument<int64_t> {
  int64_t value = 0;
  bool read(PyObject* object) {
    if (!PyLong_CheckExact(object)) return false;
    int overflow = 0;
    value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
  }
  int64_t get() const { return value; }
};

// A float, or an int as it is.
template <class Number>
bool read_number(PyObject* object, Number& value) {
  if (PyFloat_CheckExact(object)) {
    value = PyFloat_AS_DOUBLE(object);
    return true;
  }
  Argument<int64_t> whole;
  if (!whole.read(object)) return false;
  value = whole.get();
  return true;
}

template <>
struct Argument<double> {
  double value = 0;
  bool read(PyObject* object) { return read_number(object, value); }
  double get() const { return value; }
};

template <>
struct Argument<const at::Scalar&> {
  at::Scalar value;
  bool read(PyObject* object) { return read_number(object, value); }
  const at::Scalar& get() const { return value; }
};

template <>
struct Argument<std::string_view> {
  std::string_view value;
  bool read(PyObject* object) {
    if (!PyUnicode_CheckExact(object)) return false;
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == nullptr) {
      PyErr_Clear();
      return false;
    }
    value = {text, static_cast<size_t>(size)};
    return true;
  }
  std::string_view get() const { return value; }
};

template <>
struct Argument<c10::SymIntArrayRef> {
  static constexpr Py_ssize_t kMost = 8;  // dimensions of a tensor in CANN
  c10::SmallVector<c10::SymInt, kMost> value;
  bool read(PyObject* object) {
    if (!PyTuple_Check(object) && !PyList_CheckExact(object)) return false;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
    if (count > kMost) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      Argument<int64_t> size;
      if (!size.read(PySequence_Fast_GET_ITEM(object, i)) || size.get() < 0) return false;
      value.emplace_back(size.get());
    }
    return true;
  }
  c10::SymIntArrayRef get() const { return value; }
};

Tensor first_of(Tensor&& result) {
  return std::move(result);
}

template <class... Tensors>
Tensor first_of(std::tuple<Tensors...>&& results) {
  return std::get<0>(std::move(results));
}

// The name of an operator, as an argument of a template.
template <size_t kSize>
struct Name {
  char text[kSize];
  constexpr Name(const char (&literal)[kSize]) { std::copy_n(literal, kSize, text); }
};

template <Name kName, class Signature>
struct DirectCall;

template <Name kName, class Result, class... Arguments>
struct DirectCall<kName, Result(Arguments...)> {
  // Nothing here throws, and `otherwise` handles its own warnings.
  static PyObject* call(PyObject* otherwise, PyObject* const* objects, Py_ssize_t count) {
    std::tuple<Argument<Arguments>...> arguments;
    const bool direct = count == sizeof...(Arguments) && !at::impl::torch_function_mode_enabled() &&
                        read(arguments, objects, std::index_sequence_for<Arguments...>());
    if (direct) return run(arguments);
    return PyObject_Vectorcall(otherwise, objects, static_cast<size_t>(count), /*kwnames=*/nullptr);
  }

  static constexpr const char* name() { return kName.text; }

  static PyObject* bind(py::handle otherwise) {
    static PyMethodDef definition{kName.text,
                                  reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call)),
                                  METH_FASTCALL, nullptr};
    return PyCFunction_New(&definition, otherwise.ptr());
  }

 private:
  static PyObject* run(const std::tuple<Argument<Arguments>...>& arguments) {
    HANDLE_TH_ERRORS
    static const auto op = find_operator<Result(Arguments...)>(kName.text);
    at::Tensor result;
    {
      const py::gil_scoped_release released;
      result = first_of(std::apply(
          [](const auto&... argument) { return op.call(argument.get()...); }, arguments));
    }
    return THPVariable_Wrap(result);
    END_HANDLE_TH_ERRORS
  }

  template <size_t... I>
  static bool read(std::tuple<Argument<Arguments>...>& arguments, PyObject* const* objects,
                   std::index_sequence<I...>) {
    return (std::get<I>(arguments).read(objects[I]) && ...);
  }
};

using at::Scalar;
using OptionalTensor = std::optional<Tensor>;

// Those of functions whose time on few elements is that of the call, and not of the arithmetic.
using DirectCalls = std::tuple<
    DirectCall<"aclnn::elu", Tensor(const Tensor&, const Scalar&, const Scalar&, const Scalar&)>,
    DirectCall<"aclnn::hardswish", Tensor(const Tensor&)>,
    DirectCall<"aclnn::selu", Tensor(const Tensor&)>,
    DirectCall<"aclnn::silu", Tensor(const Tensor&)>,
    DirectCall<"aclnn::softplus", Tensor(const Tensor&, const Scalar&, const Scalar&)>,
    DirectCall<"aclnn::layer_norm", std::tuple<Tensor, Tensor, Tensor>(
                                        const Tensor&, c10::SymIntArrayRef, const OptionalTensor&,
                                        const OptionalTensor&, double)>,
    DirectCall<"aclnn::rms_norm", std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, double)>,
    DirectCall<"aclnn::_cross_entropy", Tensor(const Tensor&, const Tensor&, const OptionalTensor&,
                                               std::string_view, int64_t, double)>>;

py::object direct_call(const std::string& name, py::handle otherwise) {
  PyObject* found = nullptr;
  std::apply(
      [&]<class... Call>(const Call&...) {
        ((found == nullptr && name == Call::name() ? found = Call::bind(otherwise) : nullptr), ...);
      },
      DirectCalls());
  if (found == nullptr) {
    if (PyErr_Occurred()) throw py::error_already_set();
    throw py::value_error("direct_call: no such operator: " + name);
  }
  return py::reinterpret_steal<py::object>(found);
}

}  // namespace

void define_direct_calls(py::module_& m) {
  m.def("direct_call", &direct_call, py::arg("name"), py::arg("otherwise"));
}

}  // namespace aclnn_torch
