#pragma once

#include "cann/rows/row.h"

namespace aclnn_host {

// Refuses one of two arguments without the other.
inline void expect_both_or_none(const char* first, bool has_first, const char* second,
                                bool has_second) {
  EXPECT(has_first == has_second, has_first ? first : second, " is given and ",
         has_first ? second : first, " is null, expected both or none");
}

}  // namespace aclnn_host
