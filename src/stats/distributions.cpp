#include "stats/distributions.h"

#include <cassert>
#include <cmath>

namespace ropd::stats {
namespace {

// The continued fraction of the incomplete beta function (Lentz); converges fast for x < (a + 1) / (a + b +
// 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto away_from_zero = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), product = d;
  for (int m = 1; m <= 500; ++m) {
    const double even = m * (b - m) * x / ((a - 1 + 2 * m) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    product *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 1 + 2 * m));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    product *= d * c;
    if (std::fabs(d * c - 1) < 1e-15) break;
  }
  return product;
}

// I_x(a, b), the share of a beta distribution below x.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// The value at which a growing function reaches the target, for functions symmetric about 0 with value 1/2
// there.
template <class Function>
double inverse(const Function& function, double target) {
  if (target == 0.5) return 0;
  if (target < 0.5) return -inverse(function, 1 - target);
  double low = 0, high = 1;
  while (function(high) < target && high < 1e300) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = low + (high - low) / 2;
    (function(middle) < target ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

// Beyond this the t distribution is the normal one to all digits that matter.
constexpr double kManyDegrees = 1e7;

}  // namespace

double normal_quantile(double share) {
  assert(share > 0 && share < 1);
  return inverse([](double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }, share);
}

double two_sided_p(double t, double degrees) {
  assert(degrees > 0);
  if (degrees > kManyDegrees) return std::erfc(std::fabs(t) / std::sqrt(2.0));
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double t_quantile(double share, double degrees) {
  assert(share > 0 && share < 1 && degrees > 0);
  if (degrees > kManyDegrees) return normal_quantile(share);
  return inverse([&](double t) { return 1 - 0.5 * two_sided_p(t, degrees); }, share);
}

}  // namespace ropd::stats
