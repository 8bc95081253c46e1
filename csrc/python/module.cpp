// aclnn_torch._C: loads the operator registrations and exposes the runtime controls to Python.

#include <optional>
#include <string>

#include <pybind11/pybind11.h>
#include <torch/csrc/Exceptions.h>

#include "acl/acl_host.h"
#include "client/library.h"
#include "python/direct_call.h"
#include "torch_ops/device_product.h"
#include "torch_ops/error_translation.h"
#include "torch_ops/memory_pool.h"
#include "torch_ops/stage_span.h"

namespace py = pybind11;

namespace {

// Looks up a function of the embedded host CANN that CANN itself does not have.
template <class Function>
Function* host_function(const char* name) {
  return reinterpret_cast<Function*>(aclnn::Library::embedded().require(name));
}

// aclnn_torch.AclnnError; never released, because errors can occur until the interpreter has ended
PyObject* error_type = nullptr;

// Sets the error as Python's current exception.
void set_python_error(const aclnn::Error& error) {
  const auto type = py::reinterpret_borrow<py::object>(error_type);
  const py::object exception = type(error.what(), error.api(), error.status(), error.status_name());
  PyErr_SetObject(error_type, exception.ptr());
}

// torch forwards this exception to Python from any thread that runs an operator, including the
// autograd engine's threads.
void raise_in_python(const aclnn::Error& error) {
  const py::gil_scoped_acquire gil;
  set_python_error(error);
  python_error carried;
  carried.persist();
  throw carried;
}

void set_product(const std::string& name) {
  const aclError status =
      host_function<decltype(aclHostSetProduct)>("aclHostSetProduct")(name.c_str());
  if (status != ACL_SUCCESS) aclnn::Library::embedded().fail("aclHostSetProduct", status);
}

std::string get_product() {
  return host_function<decltype(aclHostGetProduct)>("aclHostGetProduct")();
}

std::optional<std::string> product_problem() {
  const char* problem = host_function<decltype(aclHostProductProblem)>("aclHostProductProblem")();
  return problem ? std::optional<std::string>(problem) : std::nullopt;
}

void set_cann_release(const std::string& name) {
  const aclError status =
      host_function<decltype(aclHostSetCannRelease)>("aclHostSetCannRelease")(name.c_str());
  if (status != ACL_SUCCESS) aclnn::Library::embedded().fail("aclHostSetCannRelease", status);
}

std::string get_cann_release() {
  return host_function<decltype(aclHostGetCannRelease)>("aclHostGetCannRelease")();
}

std::optional<std::string> cann_release_problem() {
  const char* problem =
      host_function<decltype(aclHostCannReleaseProblem)>("aclHostCannReleaseProblem")();
  return problem ? std::optional<std::string>(problem) : std::nullopt;
}

int64_t live_objects(const std::optional<std::string>& kind) {
  const char* name = kind ? kind->c_str() : nullptr;
  return host_function<decltype(aclHostLiveObjects)>("aclHostLiveObjects")(name);
}

void trace(const std::string& path) {
  const aclError status = host_function<decltype(aclHostTrace)>("aclHostTrace")(path.c_str());
  if (status != ACL_SUCCESS) aclnn::Library::embedded().fail("aclHostTrace", status);
}

void end_trace(const std::string& path) {
  const aclError status = host_function<decltype(aclHostTraceEnd)>("aclHostTraceEnd")(path.c_str());
  if (status != ACL_SUCCESS) aclnn::Library::embedded().fail("aclHostTraceEnd", status);
}

std::optional<std::string> trace_problem() {
  const char* problem = host_function<decltype(aclHostTraceProblem)>("aclHostTraceProblem")();
  return problem ? std::optional<std::string>(problem) : std::nullopt;
}

// Keys follow torch.cuda.memory_stats: "allocated_bytes.peak" and so on.
py::dict memory_stats() {
  const aclnn_torch::MemoryStats stats = aclnn_torch::memory_stats();
  py::dict result;
  const auto add = [&](const std::string& name, const aclnn_torch::MemoryCount& count) {
    result[py::str(name + ".current")] = count.current;
    result[py::str(name + ".peak")] = count.peak;
    result[py::str(name + ".allocated")] = count.allocated;
    result[py::str(name + ".freed")] = count.freed;
  };
  add("allocations", stats.allocations);
  add("allocated_bytes", stats.allocated_bytes);
  add("reserved_bytes", stats.reserved_bytes);
  result["num_reuses"] = stats.num_reuses;
  result["num_alloc_retries"] = stats.num_alloc_retries;
  result["limit_bytes"] = stats.limit_bytes;
  return result;
}

}  // namespace

// A Python without the GIL stays without it: what threads share in these functions is atomic or has
// a lock.
PYBIND11_MODULE(_C, m, py::mod_gil_not_used()) {
  error_type =
      py::object(py::module_::import("aclnn_torch.errors").attr("AclnnError")).release().ptr();
  aclnn_torch::raise_in_python = raise_in_python;
  py::register_exception_translator([](std::exception_ptr pending) {
    try {
      if (pending) std::rethrow_exception(pending);
    } catch (const aclnn::Error& error) {
      set_python_error(error);
    }
  });
  m.def("set_product", &set_product, py::arg("name"));
  m.def("get_product", &get_product);
  m.def(
      "product_of",
      [](const std::string& device) { return aclnn_torch::product_of(c10::Device(device)); },
      py::arg("device"));
  m.def("product_problem", &product_problem);
  m.def("set_cann_release", &set_cann_release, py::arg("name"));
  m.def("get_cann_release", &get_cann_release);
  m.def("cann_release_problem", &cann_release_problem);
  m.def("live_objects", &live_objects, py::arg("kind") = py::none());
  m.def("trace", &trace, py::arg("path"));
  m.def("end_trace", &end_trace, py::arg("path"));
  m.def("trace_problem", &trace_problem);
  m.def("get_profile_stages", [] { return aclnn_torch::profile_stages.load(); });
  m.def("set_profile_stages", [](bool on) { aclnn_torch::profile_stages = on; }, py::arg("on"));
  m.def("memory_stats", &memory_stats);
  m.def("reset_peak_memory_stats", &aclnn_torch::reset_peak_memory_stats);
  m.def("empty_cache", &aclnn_torch::empty_cache, py::call_guard<py::gil_scoped_release>());
  m.def("set_memory_limit", &aclnn_torch::set_memory_limit, py::arg("bytes"),
        py::call_guard<py::gil_scoped_release>());
  aclnn_torch::define_direct_calls(m);
}
