// How a function of the shim fails: it returns 0, 1 when memory ran out, or 2 for any other error, whose text `shim_last_error`
// then holds.
#pragma once
#include <c10/util/Exception.h>

#include <string>

extern thread_local std::string last_error;

template <typename Work>
int guarded(Work work) {
  try {
    work();
    return 0;
  } catch (const c10::OutOfMemoryError &error) {
    last_error = error.what_without_backtrace();
    return 1;
  } catch (const c10::Error &error) {
    last_error = error.what_without_backtrace();
  } catch (const std::exception &error) {
    last_error = error.what();
  }
  return 2;
}
