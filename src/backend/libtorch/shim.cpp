// What libtorch has and the Rust bindings do not: gradients with a seed, fused AdamW, norms, sums and products over lists,
// memory statistics, TF32, its version. Needs no CUDA headers. Every function that can fail returns 0, 1 when memory ran out, or 2 for any other error, whose text
// `shim_last_error` then holds.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

using at::Tensor;

thread_local std::string last_error;

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

std::vector<Tensor> list(Tensor *const *tensors, size_t count) {
  std::vector<Tensor> all;
  all.reserve(count);
  for (size_t at = 0; at < count; ++at) all.push_back(*tensors[at]);
  return all;
}

// Floats that are summed side by side, as many as a processor adds at once.
constexpr int64_t lanes = 8;

double sum_of(const float (&partial)[lanes]) {
  double sum = 0;
  for (float part : partial) sum += part;
  return sum;
}

// A matrix that lies row after row, in blocks of whole rows that do not depend on the number of threads: so its sums repeat.
struct Blocks {
  int64_t rows, columns, height, count;
  Blocks(int64_t rows, int64_t columns) : rows(rows), columns(columns) {
    height = std::max<int64_t>(16, 65536 / std::max<int64_t>(columns, 1));
    count = (rows + height - 1) / height;
  }
  template <typename Work>
  void each(Work work) const {
    at::parallel_for(0, count, 1, [&](int64_t first, int64_t end) {
      for (int64_t block = first; block < end; ++block) work(block, block * height, std::min(rows, (block + 1) * height));
    });
  }
};

// Calls `work` for every place in a line with the lane of its sums.
template <typename Work>
void along(int64_t length, Work work) {
  int64_t at = 0;
  for (; at + lanes <= length; at += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) work(at + lane, lane);
  }
  for (int64_t lane = 0; at < length; ++at, ++lane) work(at, lane);
}

double sum_of(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum;
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

// What one update by Adafactor needs besides its tensors.
struct AdafactorScalars {
  int64_t lead, rows, columns;
  double decay, eps1, rate, eps2, clip_threshold, weight_decay;
  int scale_parameter;
};

// transformers.optimization.Adafactor on matrices of f32 in host memory, in place, in three passes over them. `rms` becomes
// the root mean square of the parameter before the update.
int shim_adafactor(Tensor *param, const Tensor *grad, Tensor *row, Tensor *col, const AdafactorScalars *with, double *rms) {
  return guarded([&] {
    const auto [lead, rows, columns, decay, eps1, rate, eps2, clip_threshold, weight_decay, scale_parameter] = *with;
    float *p = param->data_ptr<float>(), *r = row->data_ptr<float>(), *c = col->data_ptr<float>();
    const float *g = grad->const_data_ptr<float>();
    const Blocks blocks(rows, columns);
    const double count = static_cast<double>(lead * rows * columns);
    std::vector<double> squares(blocks.count);
    std::vector<float> by_row(lead * rows), by_col(lead * columns), partial(blocks.count * columns);
    double param_squares = 0, update_squares = 0;
    for (int64_t matrix = 0; matrix < lead; ++matrix) {
      const float *gradient = g + matrix * rows * columns, *value = p + matrix * rows * columns;
      float *row_means = r + matrix * rows, *col_means = c + matrix * columns;
      float *row_factor = by_row.data() + matrix * rows, *col_factor = by_col.data() + matrix * columns;
      blocks.each([&](int64_t block, int64_t first, int64_t end) {
        float *__restrict columns_of = partial.data() + block * columns;
        std::fill(columns_of, columns_of + columns, 0.0f);
        double of_block = 0;
        for (int64_t at = first; at < end; ++at) {
          const float *__restrict line = gradient + at * columns, *__restrict old = value + at * columns;
          float of_row[lanes] = {}, of_param[lanes] = {};
          along(columns, [&](int64_t i, int64_t lane) {
            const float square = line[i] * line[i];
            columns_of[i] += square;
            of_row[lane] += square;
            of_param[lane] += old[i] * old[i];
          });
          of_block += sum_of(of_param);
          row_means[at] = static_cast<float>(decay * row_means[at] + (1 - decay) * (sum_of(of_row) / columns + eps1));
        }
        squares[block] = of_block;
      });
      param_squares += sum_of(squares);
      for (int64_t i = 0; i < columns; ++i) {
        double sum = 0;
        for (int64_t block = 0; block < blocks.count; ++block) sum += partial[block * columns + i];
        col_means[i] = static_cast<float>(decay * col_means[i] + (1 - decay) * (sum / rows + eps1));
        col_factor[i] = 1 / std::sqrt(col_means[i]);
      }
      double mean = 0;
      for (int64_t at = 0; at < rows; ++at) mean += row_means[at];
      mean /= rows;
      for (int64_t at = 0; at < rows; ++at) row_factor[at] = static_cast<float>(1 / std::sqrt(row_means[at] / mean));
      blocks.each([&](int64_t block, int64_t first, int64_t end) {
        double of_block = 0;
        for (int64_t at = first; at < end; ++at) {
          const float *line = gradient + at * columns;
          const float factor = row_factor[at];
          float of_row[lanes] = {};
          along(columns, [&](int64_t i, int64_t lane) {
            const float update = line[i] * factor * col_factor[i];
            of_row[lane] += update * update;
          });
          of_block += sum_of(of_row);
        }
        squares[block] = of_block;
      });
      update_squares += sum_of(squares);
    }
    *rms = std::sqrt(param_squares / count);
    const double alpha = scale_parameter ? rate * std::max(eps2, *rms) : rate;
    const double shrink = std::max(1.0, std::sqrt(update_squares / count) / clip_threshold);
    const float scale = static_cast<float>(alpha / shrink), left = static_cast<float>(1 - alpha * weight_decay);
    for (int64_t matrix = 0; matrix < lead; ++matrix) {
      const float *gradient = g + matrix * rows * columns;
      float *value = p + matrix * rows * columns;
      const float *row_factor = by_row.data() + matrix * rows, *col_factor = by_col.data() + matrix * columns;
      blocks.each([&](int64_t, int64_t first, int64_t end) {
        for (int64_t at = first; at < end; ++at) {
          const float *line = gradient + at * columns;
          const float factor = row_factor[at];
          float *__restrict now = value + at * columns;
          for (int64_t i = 0; i < columns; ++i) now[i] = now[i] * left - line[i] * factor * col_factor[i] * scale;
        }
      });
    }
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
