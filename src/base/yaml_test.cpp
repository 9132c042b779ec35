#include "base/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Kind = ConfigNode::Kind;

// The document on one line; quoted texts in quotes, so that "1" and 1 differ.
std::string read(std::string_view text) {
  ConfigNode root = parse_yaml_document(text, "f");
  return write_value(root);
}

std::string error_of(std::string_view text) {
  try {
    (void)parse_yaml_document(text, "f");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Yaml, ReadsMapsAndListsByIndentation) {
  EXPECT_EQ(read("a: 1\nb:\n  c: x y\n  d:\n    e: 2\nf: 3\n"), "{a: 1, b: {c: x y, d: {e: 2}}, f: 3}");
  EXPECT_EQ(read("- a\n-\n  b\n- - c\n  - d\n- e: 1\n  f: 2\n-\n  g: 3\n"),
            "[a, b, [c, d], {e: 1, f: 2}, {g: 3}]");
  EXPECT_EQ(read("a:\n  - 1\n  - 2\nb: 3\n"), "{a: [1, 2], b: 3}");
}

TEST(Yaml, AListMayStandInTheColumnOfItsKey) {
  EXPECT_EQ(read("a:\n- 1\n- b: 2\n  c:\n  - 3\nd: 4\n"), "{a: [1, {b: 2, c: [3]}], d: 4}");
}

TEST(Yaml, ReadsFlowListsAndMapsOverLines) {
  EXPECT_EQ(read("a: [1, [b, \"c\"], {d: e}, ]\n"), "{a: [1, [b, \"c\"], {d: e}]}");
  EXPECT_EQ(read("a: {b: 1, \"c\":2, d: , e: [ ], f: {}}\n"), "{a: {b: 1, c: 2, d: null, e: [], f: {}}}");
  EXPECT_EQ(read("a: [1, # one\n  2,\n  # none\n\n  3]  # all\nb: {c:\n  d}\n"), "{a: [1, 2, 3], b: {c: d}}");
  EXPECT_EQ(read("a: [x:y, -1, b/c]\n"), "{a: [x:y, -1, b/c]}");
}

TEST(Yaml, AbsentValuesAreNull) {
  EXPECT_EQ(read(""), "null");
  EXPECT_EQ(read("# nothing\n\n"), "null");
  EXPECT_EQ(read("a:\nb: ~\nc: null\nd: # here\ne:\n-\n- 1\n"),
            "{a: null, b: null, c: null, d: null, e: [null, 1]}");
  EXPECT_EQ(read("a: \"null\"\nb: '~'\nc: ''\n"), "{a: \"null\", b: \"~\", c: \"\"}");
}

TEST(Yaml, PlainTextsEndAtCommentsAndColons) {
  EXPECT_EQ(read("a: b#c # d\n"), "{a: b#c}");
  EXPECT_EQ(read("a: http://x:1/y?z\n"), "{a: http://x:1/y?z}");
  EXPECT_EQ(read("a b : c \t \n"), "{a b: c}");
  EXPECT_THAT(error_of("a: [b]c\n"),
              HasSubstr("f:1: did not find expected key while parsing a block mapping, found 'a: [b]c'"));
}

TEST(Yaml, ReadsQuotedTextsAndEscapes) {
  EXPECT_EQ(parse_yaml_document("'it''s \\n # x'", "f").scalar, "it's \\n # x");
  EXPECT_EQ(parse_yaml_document(R"("a\tb\\ \"c\" \x41\u00e9\U0001F600\/\e\0")", "f").scalar,
            std::string("a\tb\\ \"c\" A\xC3\xA9\xF0\x9F\x98\x80/\x1b\0", 19));
  EXPECT_EQ(read("\"a: b\": 1\n'c': 2\n"), "{a: b: 1, c: 2}");
}

TEST(Yaml, ReadsTextsInLines) {
  EXPECT_EQ(parse_yaml_document("|\n  a\n   b\n\n  c # no comment\n\n", "f").scalar,
            "a\n b\n\nc # no comment\n");
  EXPECT_EQ(parse_yaml_document("|-\n  a\n\n", "f").scalar, "a");
  EXPECT_EQ(parse_yaml_document("|+\n  a\n\n", "f").scalar, "a\n\n");
  EXPECT_EQ(parse_yaml_document("|2\n    a\n", "f").scalar, "  a\n");
  EXPECT_EQ(parse_yaml_document("|\n  a", "f").scalar, "a");  // as no newline is there
  EXPECT_EQ(read("a: |  # why\n  b: c\nd: >-\n  e\n  f\n"), "{a: \"b: c\\n\", d: \"e f\"}");
  EXPECT_EQ(read("a: |\nb: |-\n\n"), "{a: \"\", b: \"\"}");
}

TEST(Yaml, FoldsLinesButNotIndentedOnes) {
  EXPECT_EQ(parse_yaml_document(">\n  a\n  b\n\n  c\n    d\n    e\n\n  f\n", "f").scalar,
            "a b\nc\n  d\n  e\n\nf\n");
  EXPECT_EQ(parse_yaml_document(">\n\n  a\n", "f").scalar, "\na\n");
}

TEST(Yaml, KnowsTheLineOfEveryValue) {
  const ConfigNode root =
      parse_yaml_document("---\n# c\na:\n  b: |\n    x\n    y\n  c: [1,\n    2]\nd:\n", "f");
  EXPECT_EQ(root.items[0].where, "f:3");
  EXPECT_EQ(root.items[0].items[0].where, "f:4");
  EXPECT_EQ(root.items[0].items[1].where, "f:7");
  EXPECT_EQ(root.items[0].items[1].items[1].where, "f:8");
  EXPECT_EQ(root.items[1].where, "f:9");
}

TEST(Yaml, AcceptsWindowsLinesAndAByteOrderMark) {
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "a: 1\r\nb: |\r\n  x\r\n  y\r\n"),
            "{a: 1, b: \"x\\ny\\n\"}");
}

TEST(Yaml, RefusesByNameWhatItDoesNotSupport) {
  EXPECT_EQ(error_of("a: 1\nb: &x [1]\n"), "f:2: anchors (&name) are not supported, found '&x'");
  EXPECT_EQ(error_of("a: 1\nb: &x {c: 1}\n"), "f:2: anchors (&name) are not supported, found '&x'");
  EXPECT_EQ(error_of("a: &x 1\nb: *x\n"), "f:1: anchors (&name) are not supported, found '&x'");
  EXPECT_EQ(error_of("&x a: 1\n"), "f:1: anchors (&name) are not supported, found '&x'");
  EXPECT_EQ(error_of("a: *x\n"), "f:1: aliases (*name) are not supported, found '*x'");
  EXPECT_EQ(error_of("*x : 1\n"), "f:1: aliases (*name) are not supported, found '*x'");
  EXPECT_EQ(error_of("a: !!str 1\n"), "f:1: tags (!name) are not supported, found 'tag:yaml.org,2002:str'");
  EXPECT_EQ(error_of("a: !x [1]\n"), "f:1: tags (!name) are not supported, found '!x'");
  EXPECT_EQ(error_of("a: 1\n<<: {b: 1}\n"), "f:2: merge keys (<<) are not supported");
  EXPECT_EQ(error_of("? [a]\n: b\n"), "f:1: a list or a map as a key is not supported");
  EXPECT_EQ(error_of("{a: 1}: b\n"), "f:1: a list or a map as a key is not supported");
  EXPECT_EQ(error_of("~: b\n"), "f:1: a key is null, expected a name");
  EXPECT_EQ(error_of("%YAML 1.1\n---\na: 1\n"), "f:1: directives (%name) are not supported");
  EXPECT_EQ(error_of("%TAG ! x\n---\na: 1\n"), "f:1: directives (%name) are not supported");
  EXPECT_EQ(error_of("a: 1\n---\nb: 1\n"), "f:2: a second YAML document begins, expected one");
  EXPECT_THAT(error_of("a: \"b\n  c\"\n"), StartsWith("f:1: the text in 'a: \"b' goes on in the next line"));
  EXPECT_THAT(error_of("a: 1\nb: c\n  d\n"), StartsWith("f:2: the text in 'b: c' goes on in the next line"));
  EXPECT_THAT(error_of("a: 1\n  b: 2\n"), StartsWith("f:1: the text in 'a: 1' goes on in the next line"));
}

TEST(Yaml, RefusesBrokenTexts) {
  EXPECT_EQ(error_of("a: 1\na: 2\n"), "f:2: the key 'a' occurs twice");
  EXPECT_EQ(error_of("a: {b: 1, b: 2}\n"), "f:1: the key 'b' occurs twice");
  EXPECT_EQ(error_of("a: [1,\n\n"), "f:1: the bracket '[' is never closed");
  EXPECT_EQ(error_of("a: 1\nb: {c: [1], d:\n"), "f:2: the bracket '{' is never closed");
  EXPECT_THAT(error_of("a: 1\nb: [1\nc: 2\n"),
              StartsWith("f:2: the text in 'b: [1' goes on in the next line"));
  EXPECT_EQ(error_of("a: [1}\n"),
            "f:1: did not find expected ',' or ']' while parsing a flow sequence, found 'a: [1}' (wrong "
            "indentation, or quotes missing around a text?)");
  EXPECT_THAT(error_of("a: [, 1]\n"), StartsWith("f:1: did not find expected node content"));
  EXPECT_THAT(error_of("a: b: c\n"), StartsWith("f:1: mapping values are not allowed in this context"));
  EXPECT_THAT(error_of("a: \"b\" c\n"), HasSubstr("f:1: did not find expected key"));
  EXPECT_THAT(
      error_of("a:\n    b: 1\n  c: 2\n"),
      StartsWith(
          "f:3: did not find expected key while parsing a block mapping from line 1 on, found 'c: 2'"));
  EXPECT_THAT(error_of("a: 1\nb\n"),
              StartsWith("f:2: could not find expected ':' while scanning a simple key, found 'b'"));
  EXPECT_THAT(
      error_of("a: 1\n- b\n"),
      StartsWith("f:2: did not find expected key while parsing a block mapping from line 1 on, found '- b'"));
  EXPECT_EQ(error_of("a:\n\tb: 1\n"), "f:2: a tab in the indentation, expected spaces");
  EXPECT_THAT(error_of("a: \"\\q\"\n"), StartsWith("f:1: found unknown escape character"));
  EXPECT_THAT(error_of("a: \"\\x4g\"\n"), StartsWith("f:1: did not find expected hexdecimal number"));
  EXPECT_THAT(error_of("a: \"\\ud800\"\n"), StartsWith("f:1: found invalid Unicode character escape code"));
  EXPECT_THAT(error_of("a: 'b"),
              StartsWith("f:1: found unexpected end of stream while scanning a quoted scalar"));
  EXPECT_THAT(error_of("a: 1\nb: " + std::string(100, 'x') + ": 2\n"),
              HasSubstr(std::string(57, 'x') + "...'"));
}

TEST(Yaml, RefusesBytesThatAreNoText) {
  EXPECT_EQ(error_of(std::string_view("a: 1\nb: \0", 9)),
            "f:2: not text: control characters are not allowed");
  EXPECT_EQ(error_of("a: \x7F"), "f:1: not text: control characters are not allowed");
  for (const char* bytes :
       {"\xFF", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80",
        "\xFF\xFE"
        "a",
        "\xFE\xFF"
        "a"})
    EXPECT_THAT(error_of("a: " + std::string(bytes)), StartsWith("f:1: not text: ")) << bytes;
  EXPECT_THAT(error_of("\xFF\xFE"
                       "a"),
              StartsWith("f:1: not text: "))
      << "no other encoding is guessed";
  EXPECT_EQ(read("a: \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\n"), "{a: \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80}");
}

// What a YAML reader takes for a line break or refuses must come back from our own quotes.
TEST(Yaml, QuotedTextsComeBack) {
  for (const std::string text :
       {"\"\\\n\r\t\x01\x7F", "\xC2\x80\xC2\x85\xC2\x9F\xC2\xA0", "\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA",
        "\xEF\xBB\xBF\xEF\xBF\xBD\xEF\xBF\xBE\xEF\xBF\xBF", "~", "null", "", " a ", "# a",
        "\xF0\x9F\x98\x80"}) {
    const ConfigNode node{.kind = Kind::scalar, .scalar = text, .is_quoted = true};
    const ConfigNode back = parse_yaml_document(write_value(node), "f");
    EXPECT_EQ(back.scalar, text) << write_value(node);
    EXPECT_TRUE(back.is_quoted);
  }
}

// The text on which yaml-cpp 0.7 never came to an end: a comma where a key begins.
TEST(Yaml, ACommaCannotBeginAKey) {
  EXPECT_THAT(error_of(",: |\n  t\nb"), StartsWith("f:1: did not find expected node content"));
}

TEST(Yaml, BoundsDepthSizeAndValues) {
  EXPECT_THAT(error_of(std::string(500000, '[')), HasSubstr("deeper than 32"));
  std::string steps, indent;
  for (int i = 0; i < 40; ++i, indent += " ") steps += indent + "a:\n";
  EXPECT_THAT(error_of(steps), HasSubstr("f:34: nested deeper than 32"));
  std::string items;
  for (int i = 0; i < 200; ++i) items += "- ";
  EXPECT_THAT(error_of(items), HasSubstr("deeper than 32"));
  EXPECT_THAT(error_of(std::string((1 << 20) + 1, ' ')), HasSubstr("at most 1048576"));
  std::string many = "[";
  for (int i = 0; i < 100001; ++i) many += "a,";
  EXPECT_THAT(error_of(many), HasSubstr("more than 100000 values"));
}

// A megabyte of anything is read once: what took the square of it would not come back within the test's
// patience.
TEST(Yaml, TimeGrowsWithTheLength) {
  std::string keys, spaces = "a: [";
  for (int i = 0; i < 90000; ++i) keys += "k" + std::to_string(i) + ":\n";
  EXPECT_EQ(parse_yaml_document(keys, "f").items.size(), 90000u);
  spaces += "\n" + std::string(500000, ' ');
  for (int i = 0; i < 90000; ++i) spaces += "1, ";
  EXPECT_EQ(parse_yaml_document(spaces + "]", "f").items[0].items.size(), 90000u);
  EXPECT_EQ(read("a: 1 " + std::string(900000, '#') + "\n" + std::string(90000, '\n')), "{a: 1}");
}

}  // namespace
}  // namespace ropd
