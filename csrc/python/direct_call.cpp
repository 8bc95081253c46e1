#include "python/direct_call.h"

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

// Converts a Python object to a C++ argument of type T: reads it into storage, then passes it on.
template <class T>
struct Argument;

// Holds a reference: while the GIL is released, the Python object may be assigned another tensor.
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

// Accepts a float, or an int without converting it.
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
  static constexpr Py_ssize_t kMost = 8;  // maximum number of dimensions in CANN
  c10::SmallVector<c10::SymInt, kMost> value;
  bool read(PyObject* object) {
    if (PyList_CheckExact(object)) {
      // Without the GIL, another thread may change the list; a tuple keeps its items alive.
      const auto items = py::reinterpret_steal<py::object>(PyList_AsTuple(object));
      if (!items) PyErr_Clear();
      return items && read(items.ptr());
    }
    if (!PyTuple_Check(object)) return false;
    const Py_ssize_t count = PyTuple_GET_SIZE(object);
    if (count > kMost) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      Argument<int64_t> size;
      if (!size.read(PyTuple_GET_ITEM(object, i)) || size.get() < 0) return false;
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

template <class Tensors>
constexpr size_t kResults = 1;
template <class... Tensors>
constexpr size_t kResults<std::tuple<Tensors...>> = sizeof...(Tensors);

// Calls operators of one signature. One object is the `self` of one Python function.
template <class Signature>
class DirectCall;

template <class Result, class... Arguments>
class DirectCall<Result(Arguments...)> {
 public:
  // Returns the Python function, or nothing if the operator has another signature.
  static py::object bind(const c10::OperatorHandle& op, const std::string& name,
                         py::handle otherwise) {
    if (!fits(op.schema(), std::index_sequence_for<Arguments...>())) return {};
    auto* const call = new DirectCall(op.typed<Result(Arguments...)>(), name, otherwise);
    const py::capsule self(call, [](void* pointer) { delete static_cast<DirectCall*>(pointer); });
    PyObject* const function = PyCFunction_New(&call->definition_, self.ptr());
    if (function == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(function);
  }

 private:
  DirectCall(c10::TypedOperatorHandle<Result(Arguments...)> op, const std::string& name,
             py::handle otherwise)
      : op_(std::move(op)),
        name_(name),
        otherwise_(py::reinterpret_borrow<py::object>(otherwise)),
        definition_{name_.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call)),
                    METH_FASTCALL, nullptr} {}

  template <size_t... I>
  static bool fits(const c10::FunctionSchema& schema, std::index_sequence<I...>) {
    return schema.arguments().size() == sizeof...(I) && !schema.is_mutable() &&
           schema.returns().size() == kResults<Result> &&
           (... && (*schema.arguments()[I].real_type() ==
                    *c10::getTypePtr<std::remove_cvref_t<Arguments>>()));
  }

  // No exception leaves this function; `otherwise` handles its own warnings.
  static PyObject* call(PyObject* capsule, PyObject* const* objects, Py_ssize_t count) {
    const auto& self = *static_cast<DirectCall*>(PyCapsule_GetPointer(capsule, /*name=*/nullptr));
    std::tuple<Argument<Arguments>...> arguments;
    const bool direct = count == sizeof...(Arguments) && !at::impl::torch_function_mode_enabled() &&
                        read(arguments, objects, std::index_sequence_for<Arguments...>());
    if (direct) return self.run(arguments);
    return PyObject_Vectorcall(self.otherwise_.ptr(), objects, static_cast<size_t>(count),
                               /*kwnames=*/nullptr);
  }

  PyObject* run(const std::tuple<Argument<Arguments>...>& arguments) const {
    HANDLE_TH_ERRORS
    at::Tensor result;
    {
      const py::gil_scoped_release released;
      result = first_of(std::apply(
          [this](const auto&... argument) { return op_.call(argument.get()...); }, arguments));
    }
    return THPVariable_Wrap(result);
    END_HANDLE_TH_ERRORS
  }

  template <size_t... I>
  static bool read(std::tuple<Argument<Arguments>...>& arguments, PyObject* const* objects,
                   std::index_sequence<I...>) {
    return (std::get<I>(arguments).read(objects[I]) && ...);
  }

  c10::TypedOperatorHandle<Result(Arguments...)> op_;
  std::string name_;
  py::object otherwise_;
  PyMethodDef definition_;
};

// Tries the signatures in order and uses the first that fits.
template <class... Signatures>
py::object bind(const c10::OperatorHandle& op, const std::string& name, py::handle otherwise) {
  py::object function;
  (... || static_cast<bool>(function = DirectCall<Signatures>::bind(op, name, otherwise)));
  return function;
}

py::object direct_call(const std::string& name, py::handle otherwise) {
  using at::Scalar;
  using OptionalTensor = std::optional<Tensor>;
  const auto op = c10::Dispatcher::singleton().findSchema({name, ""});
  if (!op) throw py::value_error("direct_call: no such operator: " + name);
  // Signatures of the functions whose time on small tensors is dominated by the call: elementwise
  // operators with zero, two and three scalars, LayerNorm, RMSNorm and cross entropy.
  const py::object function =
      bind<Tensor(const Tensor&), Tensor(const Tensor&, const Scalar&, const Scalar&),
           Tensor(const Tensor&, const Scalar&, const Scalar&, const Scalar&),
           std::tuple<Tensor, Tensor, Tensor>(const Tensor&, c10::SymIntArrayRef,
                                              const OptionalTensor&, const OptionalTensor&, double),
           std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, double),
           Tensor(const Tensor&, const Tensor&, const OptionalTensor&, std::string_view, int64_t,
                  double)>(*op, name, otherwise);
  if (!function) {
    throw py::value_error(c10::str(
        "direct_call: no signature of csrc/python/direct_call.cpp is that of ", op->schema()));
  }
  return function;
}

}  // namespace

void define_direct_calls(py::module_& m) {
  m.def("direct_call", &direct_call, py::arg("name"), py::arg("otherwise"));
}

}  // namespace aclnn_torch
