// Owning values over FLINT and Arb: Rational (exact, fmpq) and Ball (a complex number with a proven error
// radius, acb). Copying copies the number; both are plain values and safe to use from several threads on
// distinct objects.
#pragma once
#include <acb.h>
#include <flint/fmpq.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ropd::grading {

class Rational {
 public:
  Rational() { fmpq_init(value_); }
  explicit Rational(int64_t numerator, uint64_t denominator = 1) : Rational() {
    fmpq_set_si(value_, numerator, denominator);
  }
  Rational(const Rational& other) : Rational() { fmpq_set(value_, other.value_); }
  Rational(Rational&& other) noexcept : Rational() { fmpq_swap(value_, other.value_); }
  Rational& operator=(Rational other) noexcept {
    fmpq_swap(value_, other.value_);
    return *this;
  }
  ~Rational() { fmpq_clear(value_); }

  // "12", "1.50", ".5"; digits and at most one dot, no sign. At most 4,000 characters: longer gives nothing.
  static std::optional<Rational> from_decimal(std::string_view text);

  bool is_zero() const { return fmpq_is_zero(value_) != 0; }
  bool is_integer() const { return fmpz_is_one(fmpq_denref(value_)) != 0; }
  int sign() const { return fmpq_sgn(value_); }
  // Bits of the larger of numerator and denominator.
  int64_t bits() const { return static_cast<int64_t>(fmpq_height_bits(value_)); }
  // The value where it is an integer that fits.
  std::optional<int64_t> as_int64() const;
  std::string text() const;  // "-3/4"

  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b);
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator/(const Rational& a, const Rational& b);  // b is not zero
  friend bool operator==(const Rational& a, const Rational& b) { return fmpq_equal(a.value_, b.value_) != 0; }
  friend bool operator<(const Rational& a, const Rational& b) { return fmpq_cmp(a.value_, b.value_) < 0; }
  Rational operator-() const { return Rational() - *this; }

  // base^exponent, unless the result would need more than max_bits or is 0^negative.
  static std::optional<Rational> power(const Rational& base, int64_t exponent, int64_t max_bits);
  // The exact n-th root where it is rational (base >= 0, n >= 1).
  static std::optional<Rational> root(const Rational& base, uint64_t n);
  static Rational floor(const Rational& value);
  static Rational factorial(uint64_t n);
  static Rational binomial(uint64_t n, uint64_t k);
  static Rational gcd(const Rational& a, const Rational& b);  // of integers

  const fmpq* raw() const { return value_; }
  fmpq* raw() { return value_; }

 private:
  fmpq_t value_;
};

class Ball {
 public:
  Ball() { acb_init(value_); }
  Ball(const Rational& value, int64_t precision) : Ball() { acb_set_fmpq(value_, value.raw(), precision); }
  Ball(const Ball& other) : Ball() { acb_set(value_, other.value_); }
  Ball(Ball&& other) noexcept : Ball() { acb_swap(value_, other.value_); }
  Ball& operator=(Ball other) noexcept {
    acb_swap(value_, other.value_);
    return *this;
  }
  ~Ball() { acb_clear(value_); }
  bool is_finite() const { return acb_is_finite(value_) != 0; }
  bool contains_zero() const { return acb_contains_zero(value_) != 0; }
  // Proven |value| < 2^exponent.
  bool is_below_power_of_two(int64_t exponent) const;
  acb_struct* raw() { return value_; }
  const acb_struct* raw() const { return value_; }

 private:
  acb_t value_;
};

}  // namespace ropd::grading
