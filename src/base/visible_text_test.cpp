#include "base/visible_text.h"

#include <gtest/gtest.h>

namespace ropd {
namespace {

TEST(VisibleText, LeavesOrdinaryTextAlone) {
  const std::string text = "x² + 1\n\t\"größer\" <b> 数学 🙂";
  EXPECT_EQ(visible_text(text), text);
}

TEST(VisibleText, ShowsTerminalEscapesAsPictures) {
  EXPECT_EQ(visible_text("\x1b[2J\x07\r\x7f"), "␛[2J␇␍␡");
  EXPECT_EQ(visible_text(std::string_view("a\0b", 3)), "a␀b");
  EXPECT_EQ(visible_text("\xC2\x9B"
                         "2J"),
            "⟨U+009B⟩2J");  // CSI in one character
}

TEST(VisibleText, ShowsWhatReordersOrHides) {
  EXPECT_EQ(visible_text("a\u202Eb\u2066c\u200Fd"), "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200F⟩d");
  EXPECT_EQ(visible_text("\u200B\uFEFF\u2028"), "⟨U+200B⟩⟨U+FEFF⟩⟨U+2028⟩");
  EXPECT_EQ(visible_text("\U000E0041"), "⟨U+E0041⟩");
}

TEST(VisibleText, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(visible_text("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(visible_text("\xC0\x80"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(visible_text("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(visible_text("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(visible_text("\xE2\x82"), "\uFFFD\uFFFD");  // cut in the middle
}

TEST(VisibleText, OfALineHasNoOtherLine) {
  EXPECT_EQ(visible_line("a\nropd: all is well\t\r\n"), "a␊ropd: all is well␉␍␊");
  EXPECT_EQ(visible_line("größer \x1b[2J"), "größer ␛[2J");
}

TEST(VisibleText, KeepsTheFirstCharactersOfALongText) {
  EXPECT_EQ(visible_text("äöü", 3), "äöü");
  EXPECT_EQ(visible_text("äöüß", 3), "äöü…");
  EXPECT_EQ(visible_text(std::string(10'000'000, 'x'), 5), "xxxxx…");
}

}  // namespace
}  // namespace ropd
