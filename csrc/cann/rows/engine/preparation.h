#pragma once

#include <memory>
#include <vector>

#include <c10/core/Scalar.h>

#include "aclnn/aclnn_base.h"
#include "cann/rows/engine/frame.h"
#include "host_cann/descriptors/executor.h"

namespace aclnn_host {

// Stage 1 of one call: checks and copies the arguments one by one, then makes the executor.
class Preparation {
 public:
  Preparation(const char* api, uint64_t* workspace_size, aclOpExecutor** executor);
  ~Preparation();

  enum class Access { kInput, kOutput, kInputAndOutput };
  void add_tensor(const char* name, const aclTensor* tensor, bool required, Access access);
  void add_list(const char* name, const aclTensorList* list, bool required, Access access);
  void add_sized(const char* name, aclTensor* tensor);
  void add_scalar(const char* name, const aclScalar* scalar, bool required);
  void add_scalars(const char* name, const aclScalarList* scalars);
  void add_any_number(const char* name, const aclScalar* scalar);
  void add_any_numbers(const char* name, const aclScalarList* scalars);
  void add_ints(const char* name, const aclIntArray* values, bool required);
  void add_floats(const char* name, const aclFloatArray* values, bool required);
  void add_bools(const char* name, const aclBoolArray* values, bool required);
  void add_text(const char* name, const char* text, bool required);
  void add_dtype(const char* name, aclDataType dtype);
  void add_value(const char* name, c10::Scalar value);
  void add_slot(const char* name, Slot value);
  // Keeps memory of a tensor alive until the call ends.
  void keep(std::shared_ptr<const void> memory);

  // Refuses an argument that is not null.
  void expect_null(const char* name, const void* argument, const char* reason);

  // Restricts the types of the tensors of the argument added last.
  enum class Types { kAny, kFloating, kFloatingOrComplex, kReal, kIntegral, kIndex };
  void expect(Types types);
  // Requires that these tensors have the dtype, the shape or both of the argument `other`.
  enum class Same { kDtype, kShape, kDtypeAndShape };
  void expect_same(Same same, const char* other);
  // Allows the tensors of the last argument to have private formats, private formats and types that
  // ATen lacks, or such types, which the row sees as bytes (see stored.h).
  enum class Allowed { kNone, kFormats, kFormatsAndTypes, kTypesInBytes };
  void allow(Allowed allowed);
  // States that the FRACTAL_NZ blocks of the tensor added last, if any, are those of its transpose,
  // as strides of 1 and the number of rows would indicate.
  void transpose_blocks();
  // States that all elements of the tensor added last get the same value, so that an element that
  // several share (a stride of 0) is written once.
  void write_once();

  aclnnStatus finish(RowFunction row);

 private:
  struct State;
  template <class Body>
  void add(const char* name, const void* pointer, bool required, Body body);
  template <class Value>
  void set_of_last(std::vector<Value>& values, Value value);
  template <class Value>
  void add_numbers(const char* name, const aclScalarList* scalars);

  std::unique_ptr<State> state_;
};

}  // namespace aclnn_host
