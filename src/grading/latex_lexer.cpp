#include "grading/latex_lexer.h"

#include <algorithm>
#include <array>

#include "grading/text_scan.h"

namespace ropd::grading {
namespace {

constexpr size_t kMaxTokens = 2000;

struct Literal {
  std::string_view spelling;
  TokenKind kind;
  std::string_view text;
};

using enum TokenKind;

// Longest first wherever one is the beginning of another; the table is sorted by length on first use.
const std::vector<Literal>& literals() {
  static const std::vector<Literal> table = [] {
    std::vector<Literal> list = {{"+", plus, ""},
                                 {"-", minus, ""},
                                 {"−", minus, ""},
                                 {"*", times, ""},
                                 {"×", times, ""},
                                 {"⋅", times, ""},
                                 {"∗", times, ""},
                                 {"∘", times, ""},
                                 {"∙", times, ""},
                                 {"\\times", times, ""},
                                 {"\\cdot", times, ""},
                                 {"/", divide, ""},
                                 {"÷", divide, ""},
                                 {"∕", divide, ""},
                                 {"\\over", divide, ""},
                                 {"\\div", divide, ""},
                                 {":", divide, ""},
                                 {"\\mod", modulo, ""},
                                 {"(", open_parenthesis, ""},
                                 {")", close_parenthesis, ""},
                                 {"\\(", open_parenthesis, ""},
                                 {"\\)", close_parenthesis, ""},
                                 {"\\lgroup", open_parenthesis, ""},
                                 {"\\rgroup", close_parenthesis, ""},
                                 {"[", open_bracket, ""},
                                 {"]", close_bracket, ""},
                                 {"\\lbrack", open_bracket, ""},
                                 {"\\rbrack", close_bracket, ""},
                                 {"{", open_brace, ""},
                                 {"}", close_brace, ""},
                                 {"\\{", open_set, ""},
                                 {"\\}", close_set, ""},
                                 {"\\lbrace", open_set, ""},
                                 {"\\rbrace", close_set, ""},
                                 {"|", bar, ""},
                                 {"\\lvert", bar, ""},
                                 {"\\rvert", bar, ""},
                                 {"\\vert", bar, ""},
                                 {"\\lfloor", open_floor, ""},
                                 {"\\rfloor", close_floor, ""},
                                 {"\\lceil", open_ceil, ""},
                                 {"\\rceil", close_ceil, ""},
                                 {"\\to", arrow, ""},
                                 {"\\rightarrow", arrow, ""},
                                 {"\\Rightarrow", arrow, ""},
                                 {"\\longrightarrow", arrow, ""},
                                 {"\\lim", limit, ""},
                                 {"\\int", integral, ""},
                                 {"\\sum", series, "sum"},
                                 {"\\prod", series, "prod"},
                                 {"\\sqrt", square_root, ""},
                                 {"\\frac", fraction, ""},
                                 {"\\dfrac", fraction, ""},
                                 {"\\tfrac", fraction, ""},
                                 {"\\cfrac", fraction, ""},
                                 {"\\binom", binomial, ""},
                                 {"\\tbinom", binomial, ""},
                                 {"\\dbinom", binomial, ""},
                                 {"\\choose", choose, ""},
                                 {"\\operatorname", operator_name, ""},
                                 {"\\gcd", multi_function, "gcd"},
                                 {"\\lcm", multi_function, "lcm"},
                                 {"\\max", multi_function, "max"},
                                 {"\\min", multi_function, "min"},
                                 {"&", ampersand, ""},
                                 {"\\\\", row_end, ""},
                                 {"_", underscore, ""},
                                 {"^", caret, ""},
                                 {",", comma, ""},
                                 {";", semicolon, ""},
                                 {"!", bang, ""},
                                 {"\\in", element_of, ""},
                                 {"\\notin", not_element_of, ""},
                                 {"∉", not_element_of, ""},
                                 {"\\cup", TokenKind::set_union, ""},
                                 {"∪", TokenKind::set_union, ""},
                                 {"\\cap", TokenKind::set_intersection, ""},
                                 {"∩", TokenKind::set_intersection, ""},
                                 {"\\setminus", set_minus, ""},
                                 {"∖", set_minus, ""},
                                 {"\\pm", plus_minus, ""},
                                 {"±", plus_minus, ""},
                                 {"\\mp", plus_minus, ""},
                                 {"∓", plus_minus, ""},
                                 {"\\emptyset", empty_set, ""},
                                 {"∅", empty_set, ""},
                                 {"\\{\\}", empty_set, ""},
                                 {"\\mathbb{N}", TokenKind::named_set, "N"},
                                 {"ℕ", TokenKind::named_set, "N"},
                                 {"\\mathbb{Z}", TokenKind::named_set, "Z"},
                                 {"ℤ", TokenKind::named_set, "Z"},
                                 {"\\mathbb{Q}", TokenKind::named_set, "Q"},
                                 {"ℚ", TokenKind::named_set, "Q"},
                                 {"\\mathbb{R}", TokenKind::named_set, "R"},
                                 {"ℝ", TokenKind::named_set, "R"},
                                 {"\\mathbb{C}", TokenKind::named_set, "C"},
                                 {"ℂ", TokenKind::named_set, "C"},
                                 {"=", TokenKind::relation, "="},
                                 {"==", TokenKind::relation, "="},
                                 {"≡", TokenKind::relation, "="},
                                 {"\\equiv", TokenKind::relation, "="},
                                 {"<", TokenKind::relation, "<"},
                                 {"\\lt", TokenKind::relation, "<"},
                                 {"\\leq", TokenKind::relation, "<="},
                                 {"\\le", TokenKind::relation, "<="},
                                 {"\\leqslant", TokenKind::relation, "<="},
                                 {"≤", TokenKind::relation, "<="},
                                 {"<=", TokenKind::relation, "<="},
                                 {"≦", TokenKind::relation, "<="},
                                 {">", TokenKind::relation, ">"},
                                 {"\\gt", TokenKind::relation, ">"},
                                 {"\\geq", TokenKind::relation, ">="},
                                 {"\\ge", TokenKind::relation, ">="},
                                 {"\\geqslant", TokenKind::relation, ">="},
                                 {"≥", TokenKind::relation, ">="},
                                 {">=", TokenKind::relation, ">="},
                                 {"≧", TokenKind::relation, ">="},
                                 {"!=", TokenKind::relation, "!="},
                                 {"\\ne", TokenKind::relation, "!="},
                                 {"\\neq", TokenKind::relation, "!="},
                                 {"≠", TokenKind::relation, "!="},
                                 {"\\approx", approximately, ""},
                                 {"≈", approximately, ""},
                                 {"~=", approximately, ""},
                                 {"≃", approximately, ""},
                                 {"≅", approximately, ""},
                                 {"\\infty", infinity, ""},
                                 {"\\partial", partial, ""},
                                 {"\\exponentialE", small_e, ""},
                                 {"^\\circ", degree, ""},
                                 {"^\\degree", degree, ""},
                                 {"^°", degree, ""},
                                 {"^{\\circ}", degree, ""},
                                 {"^{\\degree}", degree, ""},
                                 {"^{°}", degree, ""},
                                 {"^T", transpose, ""},
                                 {"^{T}", transpose, ""},
                                 {"^{\\top}", transpose, ""},
                                 // spacing and decoration: no token
                                 {"\\,", reserved, "skip"},
                                 {"\\thinspace", reserved, "skip"},
                                 {"\\:", reserved, "skip"},
                                 {"\\medspace", reserved, "skip"},
                                 {"\\;", reserved, "skip"},
                                 {"\\thickspace", reserved, "skip"},
                                 {"\\quad", reserved, "skip"},
                                 {"\\qquad", reserved, "skip"},
                                 {"\\!", reserved, "skip"},
                                 {"\\negthinspace", reserved, "skip"},
                                 {"\\$", reserved, "skip"},
                                 {"\\vspace", reserved, "skip"}};
    for (const std::string_view spelling : {"\\begin{matrix}", "\\begin{pmatrix}", "\\begin{bmatrix}"})
      list.push_back({spelling, begin_matrix, ""});
    for (const std::string_view spelling : {"\\end{matrix}", "\\end{pmatrix}", "\\end{bmatrix}"})
      list.push_back({spelling, end_matrix, ""});
    list.push_back({"\\end{array}", end_matrix, ""});
    list.push_back({"\\begin{vmatrix}", begin_determinant, ""});
    list.push_back({"\\end{vmatrix}", end_determinant, ""});
    for (const std::string_view name :
         {"\\log",     "\\ln",      "\\exp",     "\\sin",    "\\cos",    "\\tan",    "\\csc",
          "\\sec",     "\\cot",     "\\arcsin",  "\\arccos", "\\arctan", "\\arccsc", "\\arcsec",
          "\\arccot",  "\\sinh",    "\\cosh",    "\\tanh",   "\\arsinh", "\\arcosh", "\\artanh",
          "\\arcsinh", "\\arccosh", "\\arctanh", "\\floor",  "\\ceil",   "\\det"})
      list.push_back({name, TokenKind::function, name.substr(1)});
    for (const std::string_view name :
         {"\\alpha",      "\\beta",     "\\gamma",  "\\Gamma",   "\\delta",   "\\Delta",    "\\epsilon",
          "\\varepsilon", "\\zeta",     "\\eta",    "\\theta",   "\\Theta",   "\\vartheta", "\\iota",
          "\\kappa",      "\\lambda",   "\\Lambda", "\\mu",      "\\nu",      "\\xi",       "\\Xi",
          "\\omicron",    "\\pi",       "\\Pi",     "\\varpi",   "\\rho",     "\\varrho",   "\\sigma",
          "\\Sigma",      "\\varsigma", "\\tau",    "\\upsilon", "\\Upsilon", "\\phi",      "\\Phi",
          "\\varphi",     "\\chi",      "\\psi",    "\\Psi",     "\\omega",   "\\Omega"})
      list.push_back({name, greek, name.substr(1)});
    for (const auto& [spelling, name] :
         {std::pair{"α", "alpha"}, {"β", "beta"},    {"γ", "gamma"},      {"Γ", "Gamma"}, {"δ", "delta"},
          {"Δ", "Delta"},          {"ε", "epsilon"}, {"ϵ", "varepsilon"}, {"ζ", "zeta"},  {"η", "eta"},
          {"θ", "theta"},          {"Θ", "Theta"},   {"ι", "iota"},       {"κ", "kappa"}, {"λ", "lambda"},
          {"Λ", "Lambda"},         {"μ", "mu"},      {"ν", "nu"},         {"ξ", "xi"},    {"Ξ", "Xi"},
          {"ο", "omicron"},        {"π", "pi"},      {"Π", "Pi"},         {"ρ", "rho"},   {"σ", "sigma"},
          {"Σ", "Sigma"},          {"τ", "tau"},     {"υ", "upsilon"},    {"φ", "phi"},   {"Φ", "Phi"},
          {"ϕ", "varphi"},         {"χ", "chi"},     {"ψ", "psi"},        {"Ψ", "Psi"},   {"ω", "omega"},
          {"Ω", "Omega"}})
      list.push_back({spelling, greek, name});
    for (const std::string_view name : {"\\Bbbk",          "\\wp",          "\\nabla",
                                        "\\bigstar",       "\\angle",       "\\nexists",
                                        "\\measuredangle", "\\eth",         "\\sphericalangle",
                                        "\\clubsuit",      "\\varnothing",  "\\Diamond",
                                        "\\complement",    "\\diamondsuit", "\\imath",
                                        "\\triangledown",  "\\heartsuit",   "\\jmath",
                                        "\\triangle",      "\\spadesuit",   "\\ell",
                                        "\\hbar",          "\\vartriangle", "\\hslash",
                                        "\\lozenge",       "\\blacksquare", "\\mho",
                                        "\\sharp",         "\\prime",       "\\Im",
                                        "\\flat",          "\\square",      "\\Re",
                                        "\\natural",       "\\surd",        "\\circledS"})
      list.push_back({name, other_symbol, name.substr(1)});
    for (const std::string_view name :
         {"arsinh",        "arcsinh",    "arcosh",       "arccosh", "artanh",      "arctanh",
          "gcd",           "lcm",        "floor",        "ceil",    "matrix",      "pmatrix",
          "bmatrix",       "vmatrix",    "eye",          "zeros",   "ones",        "cols",
          "rows",          "diag",       "norm",         "rank",    "trace",       "tr",
          "rref",          "hstack",     "vstack",       "orth",    "ortho",       "orthogonal",
          "orthogonalize", "nullspace",  "eig",          "eigen",   "diagonalize", "eigenvals",
          "eigenvalues",   "eigenvects", "eigenvectors", "svd",     "SVD"})
      list.push_back({name, reserved, name});
    std::stable_sort(list.begin(), list.end(), [](const Literal& a, const Literal& b) {
      return a.spelling.size() > b.spelling.size();
    });
    return list;
  }();
  return table;
}

// By first byte, so that a position looks at a handful of candidates.
const std::array<std::vector<const Literal*>, 256>& literals_by_byte() {
  static const std::array<std::vector<const Literal*>, 256> index = [] {
    std::array<std::vector<const Literal*>, 256> result;
    for (const Literal& literal : literals())
      result[static_cast<unsigned char>(literal.spelling[0])].push_back(&literal);
    return result;
  }();
  return index;
}

bool is_accent_name(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "acute",    "bar",    "overline",   "breve",      "check",   "widecheck",      "dot",      "ddot",
      "grave",    "hat",    "tilde",      "widetilde",  "vec",     "overrightarrow", "bm",       "boldsymbol",
      "text",     "textit", "textbf",     "textnormal", "mathbb",  "mathbin",        "mathbf",   "mathcal",
      "mathfrak", "mathit", "mathnormal", "mathop",     "mathord", "mathrel",        "mathring", "mathrm",
      "mathscr",  "mathsf", "mathtt",     "mbox"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// The symbol that \text{..}, \bar{..} and the like stand for: text is itself without parentheses, a bar is
// bar{x}.
std::string accent_symbol(std::string_view command, std::string_view inside) {
  std::string text = replace_all(inside, " ", "");
  std::string mark(command);
  if (command == "overline") mark = "bar";
  if (command == "overrightarrow") mark = "vec";
  if (command == "widetilde") mark = "tilde";
  if (command.find("text") != std::string_view::npos || command == "mbox")
    return replace_all(replace_all(text, "(", ""), ")", "");
  if (command.starts_with("math")) mark = "math";
  return mark + "{" + text + "}";
}

class Lexer {
 public:
  explicit Lexer(std::string_view latex) : latex_(latex) {}

  std::optional<std::vector<Token>> run() {
    while (position_ < latex_.size()) {
      if (is_space(static_cast<unsigned char>(latex_[position_]))) {
        ++position_;
        continue;
      }
      if (tokens_.size() >= kMaxTokens || !next()) return std::nullopt;
    }
    return std::move(tokens_);
  }

 private:
  std::string_view latex_;
  size_t position_ = 0;
  std::vector<Token> tokens_;

  void push(TokenKind kind, std::string_view text, size_t length) {
    tokens_.push_back({kind, std::string(text), std::string(latex_.substr(position_, length))});
    position_ += length;
  }
  char at(size_t index) const { return index < latex_.size() ? latex_[index] : '\0'; }

  bool next() {
    const char c = latex_[position_];
    if (is_digit(c) || (c == '.' && is_digit(at(position_ + 1)))) return number();
    if (c == '\\' && (accent() || array_begin())) return true;
    const Literal* literal = nullptr;
    for (const Literal* candidate : literals_by_byte()[static_cast<unsigned char>(c)])
      if (latex_.substr(position_).starts_with(candidate->spelling)) {
        literal = candidate;
        break;
      }
    if (c == 'd' && differential(literal ? literal->spelling.size() : 0)) return true;
    if (literal) {
      if (literal->text == "skip") {
        position_ += literal->spelling.size();
      } else {
        push(literal->kind, literal->text, literal->spelling.size());
      }
      return true;
    }
    if (!is_letter(c)) return false;
    push(c == 'e' ? small_e : c == 'E' ? capital_e : letter, latex_.substr(position_, 1), 1);
    return true;
  }

  bool number() {
    size_t end = position_;
    while (is_digit(at(end))) ++end;
    if (at(end) == '.' && is_digit(at(end + 1))) {
      ++end;
      while (is_digit(at(end))) ++end;
    }
    const std::string_view digits = latex_.substr(position_, end - position_);
    if (at(end) == 'E') {
      size_t last = end + 1;
      if (at(last) == '+' || at(last) == '-') ++last;
      if (is_digit(at(last))) {
        while (is_digit(at(last))) ++last;
        push(scientific, latex_.substr(position_, last - position_), last - position_);
        return true;
      }
    }
    const size_t sign = at(end) == ' ' ? end + 1 : end;
    for (const std::string_view mark : {"\\%", "%"})
      if (latex_.substr(std::min(sign, latex_.size())).starts_with(mark)) {
        push(percent, digits, sign + mark.size() - position_);
        return true;
      }
    push(TokenKind::number, digits, end - position_);
    return true;
  }

  // d x, dx, d\theta; a longer reserved word (diag) goes first.
  bool differential(size_t literal_length) {
    size_t end = position_ + 1;
    while (is_space(static_cast<unsigned char>(at(end)))) ++end;
    const size_t begin = end;
    if (at(end) == '\\') {
      ++end;
      while (is_letter(at(end))) ++end;
      if (end == begin + 1) return false;
    } else if (is_letter(at(end))) {
      ++end;
    } else {
      return false;
    }
    if (end - position_ < literal_length) return false;
    std::string_view variable = latex_.substr(begin, end - begin);
    if (variable[0] == '\\') variable.remove_prefix(1);
    push(TokenKind::differential, variable, end - position_);
    return true;
  }

  bool accent() {
    size_t end = position_ + 1;
    while (is_letter(at(end))) ++end;
    const std::string_view command = latex_.substr(position_ + 1, end - position_ - 1);
    if (!is_accent_name(command)) return false;
    if (is_space(static_cast<unsigned char>(at(end)))) ++end;
    if (at(end) != '{') return false;
    const size_t close = latex_.find('}', end);
    if (close == std::string_view::npos) return false;
    const std::string_view whole = latex_.substr(position_, close + 1 - position_);
    if (whole.starts_with("\\mathbb{") && whole.size() == 10 &&
        std::string_view("NZQRC").find(whole[8]) != std::string_view::npos)
      return false;
    push(TokenKind::accent, accent_symbol(command, latex_.substr(end + 1, close - end - 1)), whole.size());
    return true;
  }

  // \begin{array}{ccc}
  bool array_begin() {
    constexpr std::string_view kBegin = "\\begin{array}{";
    if (!latex_.substr(position_).starts_with(kBegin)) return false;
    size_t end = position_ + kBegin.size();
    while (at(end) == 'c' || at(end) == 'l' || at(end) == 'r') ++end;
    if (at(end) != '}') return false;
    push(begin_matrix, "", end + 1 - position_);
    return true;
  }
};

}  // namespace

std::optional<std::vector<Token>> tokenize_latex(std::string_view latex) { return Lexer(latex).run(); }

}  // namespace ropd::grading
