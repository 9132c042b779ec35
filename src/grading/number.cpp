#include "grading/number.h"

#include <flint/fmpz.h>

namespace ropd::grading {

std::optional<Rational> Rational::from_decimal(std::string_view text) {
  if (text.empty() || text.size() > 4000) return std::nullopt;
  std::string digits;
  uint64_t decimals = 0;
  bool behind_dot = false;
  for (const char c : text) {
    if (c == '.') {
      if (behind_dot) return std::nullopt;
      behind_dot = true;
    } else if (c >= '0' && c <= '9') {
      digits.push_back(c);
      if (behind_dot) ++decimals;
    } else {
      return std::nullopt;
    }
  }
  if (digits.empty()) return std::nullopt;
  Rational result;
  fmpz_set_str(fmpq_numref(result.value_), digits.c_str(), 10);
  fmpz_set_ui(fmpq_denref(result.value_), 10);
  fmpz_pow_ui(fmpq_denref(result.value_), fmpq_denref(result.value_), decimals);
  fmpq_canonicalise(result.value_);
  return result;
}

std::optional<int64_t> Rational::as_int64() const {
  if (!is_integer() || !fmpz_fits_si(fmpq_numref(value_))) return std::nullopt;
  return fmpz_get_si(fmpq_numref(value_));
}

std::string Rational::text() const {
  char* raw_text = fmpq_get_str(nullptr, 10, value_);
  std::string result = raw_text;
  flint_free(raw_text);
  return result;
}

Rational operator+(const Rational& a, const Rational& b) {
  Rational result;
  fmpq_add(result.value_, a.value_, b.value_);
  return result;
}
Rational operator-(const Rational& a, const Rational& b) {
  Rational result;
  fmpq_sub(result.value_, a.value_, b.value_);
  return result;
}
Rational operator*(const Rational& a, const Rational& b) {
  Rational result;
  fmpq_mul(result.value_, a.value_, b.value_);
  return result;
}
Rational operator/(const Rational& a, const Rational& b) {
  Rational result;
  fmpq_div(result.value_, a.value_, b.value_);
  return result;
}

std::optional<Rational> Rational::power(const Rational& base, int64_t exponent, int64_t max_bits) {
  if (base.is_zero() && exponent < 0) return std::nullopt;
  const uint64_t size = exponent < 0 ? 0 - static_cast<uint64_t>(exponent) : static_cast<uint64_t>(exponent);
  // 0, 1 and -1 never grow.
  const bool grows = base.bits() > 1;
  if (grows && size > static_cast<uint64_t>(max_bits) / static_cast<uint64_t>(base.bits()))
    return std::nullopt;
  Rational result;
  if (!grows) {
    if (base.is_zero()) return exponent == 0 ? Rational(1) : Rational(0);
    return Rational(base.sign() < 0 && size % 2 == 1 ? -1 : 1);
  }
  fmpq_pow_si(result.value_, base.value_, exponent);
  return result;
}

std::optional<Rational> Rational::root(const Rational& base, uint64_t n) {
  if (n == 0 || base.sign() < 0 || n > 64) return std::nullopt;
  Rational result;
  const bool exact_top =
      fmpz_root(fmpq_numref(result.value_), fmpq_numref(base.value_), static_cast<slong>(n)) != 0;
  const bool exact_bottom =
      fmpz_root(fmpq_denref(result.value_), fmpq_denref(base.value_), static_cast<slong>(n)) != 0;
  if (!exact_top || !exact_bottom) return std::nullopt;
  return result;
}

Rational Rational::floor(const Rational& value) {
  Rational result;
  fmpz_fdiv_q(fmpq_numref(result.value_), fmpq_numref(value.value_), fmpq_denref(value.value_));
  return result;
}

Rational Rational::factorial(uint64_t n) {
  Rational result;
  fmpz_fac_ui(fmpq_numref(result.value_), n);
  return result;
}

Rational Rational::binomial(uint64_t n, uint64_t k) {
  Rational result;
  fmpz_bin_uiui(fmpq_numref(result.value_), n, k);
  return result;
}

Rational Rational::gcd(const Rational& a, const Rational& b) {
  Rational result;
  fmpz_gcd(fmpq_numref(result.value_), fmpq_numref(a.value_), fmpq_numref(b.value_));
  return result;
}

bool Ball::is_below_power_of_two(int64_t exponent) const {
  mag_t bound;
  mag_init(bound);
  acb_get_mag(bound, value_);
  const bool below = mag_cmp_2exp_si(bound, exponent) < 0;
  mag_clear(bound);
  return below;
}

}  // namespace ropd::grading
