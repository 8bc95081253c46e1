#pragma once

// The common header of the files of rows: the language of the rows, the checks of their arguments,
// ATen, and these headers of the standard library. A file includes others itself.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "cann/rows/checks.h"
#include "cann/rows/engine/language.h"
