// What libtorch has and the Rust bindings do not: gradients with a seed, fused AdamW, norms, sums and products over lists,
// memory statistics, TF32, its version. Needs no CUDA headers.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Version.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <climits>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "guarded.h"

thread_local std::string last_error;

namespace {

using at::Tensor;

std::vector<Tensor> list(Tensor *const *tensors, size_t count) {
  std::vector<Tensor> all;
  all.reserve(count);
  for (size_t at = 0; at < count; ++at) all.push_back(*tensors[at]);
  return all;
}

c10::DeviceAllocator *cuda() { return c10::getDeviceAllocator(c10::DeviceType::CUDA); }

}  // namespace

extern "C" {

const char *shim_last_error() { return last_error.c_str(); }

const char *shim_built_for() { return TORCH_VERSION; }

// Of the libtorch that is loaded, which need not be the one of the headers; empty where it does not tell.
const char *shim_version() {
  static const std::string version = [] {
    const std::string key = "TORCH_VERSION=", settings = at::show_config();
    const size_t found = settings.find(key);
    if (found == std::string::npos) return std::string();
    const size_t begin = found + key.size();
    return settings.substr(begin, settings.find(',', begin) - begin);
  }();
  return version.c_str();
}

// glibc gives freed tensors back to the system and asks for the same pages again at the next update, which costs 2 % of
// training on a processor. What is smaller than 32 MiB, the most it allows here, is kept instead.
void shim_keep_freed_host_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

void shim_give_back_host_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// torch.autograd.grad(root, inputs, seed). An input that the root does not depend on gives a null pointer.
int shim_grad(const Tensor *root, const Tensor *seed, Tensor *const *inputs, size_t count, Tensor **gradients) {
  return guarded([&] {
    torch::autograd::edge_list roots{torch::autograd::impl::gradient_edge(*root)};
    torch::autograd::edge_list ends;
    for (size_t at = 0; at < count; ++at) ends.push_back(torch::autograd::impl::gradient_edge(*inputs[at]));
    auto &engine = torch::autograd::Engine::get_default_engine();
    auto all = engine.execute(roots, {*seed}, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/false, ends);
    for (size_t at = 0; at < count; ++at) gradients[at] = all[at].defined() ? new Tensor(all[at]) : nullptr;
  });
}

// torch.optim.AdamW(fused=True) on one parameter, in place. `step` is the number of updates including this one.
int shim_fused_adamw(Tensor *param, Tensor *grad, Tensor *exp_avg, Tensor *exp_avg_sq, Tensor *max_exp_avg_sq, double step,
                     double lr, double beta1, double beta2, double weight_decay, double eps) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    auto steps = at::full({}, step, at::TensorOptions().dtype(at::kFloat).device(param->device()));
    std::vector<Tensor> largest;
    if (max_exp_avg_sq != nullptr) largest.push_back(*max_exp_avg_sq);
    at::_fused_adamw_({*param}, {*grad}, {*exp_avg}, {*exp_avg_sq}, largest, {steps}, lr, beta1, beta2, weight_decay, eps,
                      /*amsgrad=*/max_exp_avg_sq != nullptr, /*maximize=*/false);
  });
}

// The norm over all tensors together, a scalar on their device.
int shim_global_norm(Tensor *const *tensors, size_t count, Tensor **norm) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    auto norms = at::_foreach_norm(list(tensors, count), 2, at::kFloat);
    *norm = new Tensor(at::linalg_vector_norm(at::stack(norms)));
  });
}

// sums[i] += values[i], in place. A value may be of a shorter type than its sum.
int shim_add(Tensor *const *sums, Tensor *const *values, size_t count) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    at::_foreach_add_(list(sums, count), list(values, count));
  });
}

// tensors[i] *= factor, in place.
int shim_scale(Tensor *const *tensors, size_t count, double factor) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    at::_foreach_mul_(list(tensors, count), factor);
  });
}

// allocated, its peak, reserved, its peak, retries after a failed allocation, failures.
int shim_memory(int device, int64_t *figures) {
  return guarded([&] {
    std::memset(figures, 0, 6 * sizeof(int64_t));
    auto *allocator = cuda();
    if (!allocator->initialized()) return;
    auto stats = allocator->getDeviceStats(static_cast<c10::DeviceIndex>(device));
    constexpr size_t all = 0;
    figures[0] = stats.allocated_bytes[all].current;
    figures[1] = stats.allocated_bytes[all].peak;
    figures[2] = stats.reserved_bytes[all].current;
    figures[3] = stats.reserved_bytes[all].peak;
    figures[4] = stats.num_alloc_retries;
    figures[5] = stats.num_ooms;
  });
}

int shim_empty_cache() { return guarded([] { cuda()->emptyCache(); }); }

// Matrix products in TF32 on devices that have it. Its names changed after 2.9.
int shim_tf32(int on) {
  return guarded([&] {
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 10
    at::globalContext().setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL,
                                            on ? at::Float32Precision::TF32 : at::Float32Precision::IEEE);
#else
    at::globalContext().setFloat32Precision("cuda", "matmul", on ? "tf32" : "ieee");
#endif
  });
}

}  // extern "C"
