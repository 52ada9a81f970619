// transformers.optimization.Adafactor on matrices of f32 in host memory: three passes over them, where a chain of operations
// takes some fifteen. What it computes stands in src/optim/adafactor.rs.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "guarded.h"

namespace {

// Floats that are summed side by side, as many as a processor adds at once.
constexpr int64_t lanes = 8;

double sum_of(const float (&partial)[lanes]) {
  double sum = 0;
  for (float part : partial) sum += part;
  return sum;
}

double sum_of(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum;
}

// Calls `work` for every place in a line with the lane of its sums.
template <typename Work>
void along(int64_t length, Work work) {
  int64_t at = 0;
  for (; at + lanes <= length; at += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) work(at + lane, lane);
  }
  for (int64_t lane = 0; at < length; ++at, ++lane) work(at, lane);
}

// A matrix that lies row after row, in blocks of whole rows that do not depend on the number of threads: so its sums repeat.
struct Blocks {
  int64_t rows, columns, height, count;

  Blocks(int64_t rows, int64_t columns) : rows(rows), columns(columns) {
    height = std::max<int64_t>(16, 65536 / std::max<int64_t>(columns, 1));
    count = (rows + height - 1) / height;
  }

  // Calls `work` with each block, its first row and the row behind it, on all cores.
  template <typename Work>
  void each(Work work) const {
    at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) work(block, block * height, std::min(rows, (block + 1) * height));
    });
  }
};

// The running means of the squared gradient and what each row and each column is divided by for them.
struct Second {
  float *row_means, *col_means;
  std::vector<float> by_row, by_col;
};

// Brings the means up to date. Returns the sum of the squares of the parameter.
double average(const Blocks &blocks, const float *gradient, const float *param, Second &second, double decay, double eps) {
  const int64_t rows = blocks.rows, columns = blocks.columns;
  std::vector<float> partial(blocks.count * columns);
  std::vector<double> squares(blocks.count);
  blocks.each([&](int64_t block, int64_t first, int64_t end) {
    float *__restrict col_sums = partial.data() + block * columns;
    for (int64_t row = first; row < end; ++row) {
      const float *__restrict line = gradient + row * columns, *__restrict old = param + row * columns;
      float of_row[lanes] = {}, of_param[lanes] = {};
      along(columns, [&](int64_t i, int64_t lane) {
        const float square = line[i] * line[i];
        col_sums[i] += square;
        of_row[lane] += square;
        of_param[lane] += old[i] * old[i];
      });
      squares[block] += sum_of(of_param);
      const double mean = sum_of(of_row) / columns + eps;
      second.row_means[row] = static_cast<float>(decay * second.row_means[row] + (1 - decay) * mean);
    }
  });
  for (int64_t i = 0; i < columns; ++i) {
    double sum = 0;
    for (int64_t block = 0; block < blocks.count; ++block) sum += partial[block * columns + i];
    second.col_means[i] = static_cast<float>(decay * second.col_means[i] + (1 - decay) * (sum / rows + eps));
    second.by_col[i] = 1 / std::sqrt(second.col_means[i]);
  }
  double mean = 0;
  for (int64_t row = 0; row < rows; ++row) mean += second.row_means[row];
  mean /= rows;
  for (int64_t row = 0; row < rows; ++row) {
    second.by_row[row] = static_cast<float>(1 / std::sqrt(second.row_means[row] / mean));
  }
  return sum_of(squares);
}

// The sum of the squares of the update before it is clipped.
double squares_of_update(const Blocks &blocks, const float *gradient, const Second &second) {
  std::vector<double> squares(blocks.count);
  blocks.each([&](int64_t block, int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      const float *__restrict line = gradient + row * blocks.columns, *__restrict by_col = second.by_col.data();
      const float factor = second.by_row[row];
      float of_row[lanes] = {};
      along(blocks.columns, [&](int64_t i, int64_t lane) {
        const float update = line[i] * factor * by_col[i];
        of_row[lane] += update * update;
      });
      squares[block] += sum_of(of_row);
    }
  });
  return sum_of(squares);
}

// param = left * param - scale * update
void apply(const Blocks &blocks, const float *gradient, float *param, const Second &second, float left, float scale) {
  blocks.each([&](int64_t, int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      const float *__restrict line = gradient + row * blocks.columns, *__restrict by_col = second.by_col.data();
      const float factor = second.by_row[row];
      float *__restrict now = param + row * blocks.columns;
      for (int64_t i = 0; i < blocks.columns; ++i) now[i] = now[i] * left - line[i] * factor * by_col[i] * scale;
    }
  });
}

}  // namespace

extern "C" {

// What one update needs besides its tensors.
struct AdafactorScalars {
  int64_t lead, rows, columns;
  double decay, eps1, rate, eps2, clip_threshold, weight_decay;
  int scale_parameter;
};

// In place. `rms` becomes the root mean square of the parameter before the update.
int shim_adafactor(at::Tensor *param, const at::Tensor *grad, at::Tensor *row, at::Tensor *col, const AdafactorScalars *with,
                   double *rms) {
  return guarded([&] {
    const Blocks blocks(with->rows, with->columns);
    const int64_t size = with->rows * with->columns;
    float *p = param->data_ptr<float>(), *r = row->data_ptr<float>(), *c = col->data_ptr<float>();
    const float *g = grad->const_data_ptr<float>();
    std::vector<Second> seconds;
    double param_squares = 0, update_squares = 0;
    for (int64_t at = 0; at < with->lead; ++at) {
      seconds.push_back({r + at * with->rows, c + at * with->columns, std::vector<float>(with->rows),
                         std::vector<float>(with->columns)});
      param_squares += average(blocks, g + at * size, p + at * size, seconds.back(), with->decay, with->eps1);
      update_squares += squares_of_update(blocks, g + at * size, seconds.back());
    }
    const double count = static_cast<double>(with->lead * size);
    *rms = std::sqrt(param_squares / count);
    const double rate = with->scale_parameter ? with->rate * std::max(with->eps2, *rms) : with->rate;
    const double shrink = std::max(1.0, std::sqrt(update_squares / count) / with->clip_threshold);
    const auto left = static_cast<float>(1 - rate * with->weight_decay), scale = static_cast<float>(rate / shrink);
    for (int64_t at = 0; at < with->lead; ++at) apply(blocks, g + at * size, p + at * size, seconds[at], left, scale);
  });
}

}  // extern "C"
