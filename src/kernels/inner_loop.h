// What the inner loop of a register tile is made of: one value of A in all lanes, and a multiply-add.
// The sixteen registers of AVX2 are just enough for a tile. When GCC may reorder an unrolled loop it spills
// sums, and not unrolled every step pays for the loop; so there the instructions are written out and stay
// where they are. That matters most on a core that somebody else's hyperthread shares: the multiply-add units
// stay ours, but instructions are issued in turn (docs/benchmarks.md). Included once per instruction set,
// after foreach_target.h.
#if defined(ROPD_KERNELS_INNER_LOOP_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPD_KERNELS_INNER_LOOP_H
#undef ROPD_KERNELS_INNER_LOOP_H
#else
#define ROPD_KERNELS_INNER_LOOP_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using InnerVector = hn::Vec<hn::ScalableTag<float>>;

#if HWY_TARGET == HWY_AVX2
HWY_INLINE InnerVector in_all_lanes(const float& from) {
  decltype(InnerVector::raw) value;
  asm volatile("vbroadcastss %[from], %[value]" : [value] "=x"(value) : [from] "m"(from));
  return InnerVector{value};
}
// sum += a * b, rounded once.
HWY_INLINE void multiply_add(InnerVector& sum, InnerVector a, InnerVector b) {
  auto raw = sum.raw;  // an operand of its own: arrays of sums become registers
  asm volatile("vfmadd231ps %[a], %[b], %[sum]" : [sum] "+x"(raw) : [a] "x"(a.raw), [b] "x"(b.raw));
  sum.raw = raw;
}
// Makes the compiler address row[index + constant] so, instead of keeping a pointer for every row.
HWY_INLINE void keep_index(int64_t& index) { asm volatile("" : "+r"(index)); }
#else
HWY_INLINE InnerVector in_all_lanes(const float& from) { return hn::Set(hn::ScalableTag<float>(), from); }
HWY_INLINE void multiply_add(InnerVector& sum, InnerVector a, InnerVector b) { sum = hn::MulAdd(a, b, sum); }
HWY_INLINE void keep_index(int64_t&) {}
#endif

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
