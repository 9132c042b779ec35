#include "report/html.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ropd::report {
namespace {

TEST(EscapeHtml, LeavesNoMarkup) {
  EXPECT_EQ(escape_html("<script>alert('x' & \"y\")</script>"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;");
}

TEST(EscapeHtml, KeepsLinesAndReplacesControls) {
  EXPECT_EQ(escape_html("a\n\tb"), "a\n\tb");
  EXPECT_EQ(escape_html(std::string("a\0b\x1b[0m", 6)), "a␀b␛[0");
  EXPECT_EQ(escape_html("a\u202Eb"), "a⟨U+202E⟩b");  // would turn the rest of the line around
}

TEST(Shorten, CountsCharactersAndNotBytes) {
  EXPECT_EQ(shorten("τττ", 3), "τττ");
  EXPECT_EQ(shorten("ττττ", 3), "ττ…");
  EXPECT_EQ(shorten("abc", 10), "abc");
  EXPECT_EQ(shorten("", 3), "");
}

TEST(FormatNumber, UsesAMinusSignAndADash) {
  EXPECT_EQ(format_number(-1.25, 1), "−1.2");
  EXPECT_EQ(format_number(-0.001, 1), "0.0");
  EXPECT_EQ(format_number(NAN, 1), "–");
  EXPECT_EQ(format_number(66.06, 1), "66.1");
  EXPECT_LT(format_number(1e300, 1).size(), 20u);
}

TEST(FormatBrief, IsShortAndExactForCounts) {
  EXPECT_EQ(format_brief(32768), "32768");
  EXPECT_EQ(format_brief(0.07541234), "0.07541");
  EXPECT_EQ(format_brief(2.5), "2.5");
  EXPECT_EQ(format_brief(INFINITY), "–");
}

TEST(Slug, IsSafeAsFileNameAndId) {
  EXPECT_EQ(slug("The trigger"), "the-trigger");
  EXPECT_EQ(slug("../../etc/passwd\"<x>"), "etc-passwd-x");
  EXPECT_EQ(slug("τ"), "");
}

}  // namespace
}  // namespace ropd::report
