// The functions of C11's annex K that torch_npu's torchair takes from CANN's libc_sec.so. A
// function writes a terminated string within the buffer, and the empty string if it fails.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#pragma GCC visibility push(default)

extern "C" {

// Returns 0, EINVAL for a null pointer or a buffer of no bytes, ERANGE if the string does not fit.
int strcpy_s(char* dest, size_t size, const char* src) {
  if (dest == nullptr || size == 0) return EINVAL;
  *dest = '\0';
  if (src == nullptr) return EINVAL;
  const size_t length = std::strlen(src);
  if (length >= size) return ERANGE;
  std::memmove(dest, src, length + 1);
  return 0;
}

// Writes up to `count` characters. Returns their number, and -1 if the text is longer, or does not
// fit into the buffer, of which nothing is then kept.
int vsnprintf_s(char* dest, size_t size, size_t count, const char* format, va_list arguments) {
  if (dest == nullptr || size == 0) return -1;
  *dest = '\0';
  if (format == nullptr) return -1;
  const bool is_cut = count < size;
  const size_t space = is_cut ? count + 1 : size;
  const int length = std::vsnprintf(dest, space, format, arguments);
  if (length >= 0 && static_cast<size_t>(length) < space) return length;
  if (length < 0 || !is_cut) *dest = '\0';
  return -1;
}

int snprintf_s(char* dest, size_t size, size_t count, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf_s(dest, size, count, format, arguments);
  va_end(arguments);
  return length;
}

}  // extern "C"

#pragma GCC visibility pop
