// The distributions that intervals need.
//   normal_quantile(p)        z with Phi(z) = p
//   t_quantile(p, v)          the same for Student's t with v degrees of freedom (v need not be whole)
//   two_sided_p(t, v)         probability that |T| is at least |t|
#pragma once

namespace ropd::stats {

double normal_quantile(double share);                        // 0 < share < 1
double t_quantile(double share, double degrees_of_freedom);  // 0 < share < 1, degrees > 0
double two_sided_p(double t, double degrees_of_freedom);

}  // namespace ropd::stats
