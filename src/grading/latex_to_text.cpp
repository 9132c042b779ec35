#include "grading/latex_to_text.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "grading/text_scan.h"

namespace ropd::grading {
namespace {

constexpr int kMaxDepth = 64;

// Macros without arguments. Names that are missing here vanish.
const std::unordered_map<std::string_view, std::string_view>& symbols() {
  static const std::unordered_map<std::string_view, std::string_view> table = {{"alpha", "α"},
                                                                               {"beta", "β"},
                                                                               {"gamma", "γ"},
                                                                               {"delta", "δ"},
                                                                               {"epsilon", "ϵ"},
                                                                               {"varepsilon", "ε"},
                                                                               {"zeta", "ζ"},
                                                                               {"eta", "η"},
                                                                               {"theta", "θ"},
                                                                               {"vartheta", "ϑ"},
                                                                               {"iota", "ι"},
                                                                               {"kappa", "κ"},
                                                                               {"lambda", "λ"},
                                                                               {"mu", "μ"},
                                                                               {"nu", "ν"},
                                                                               {"xi", "ξ"},
                                                                               {"pi", "π"},
                                                                               {"varpi", "ϖ"},
                                                                               {"rho", "ρ"},
                                                                               {"varrho", "ϱ"},
                                                                               {"sigma", "σ"},
                                                                               {"varsigma", "ς"},
                                                                               {"tau", "τ"},
                                                                               {"upsilon", "υ"},
                                                                               {"phi", "ϕ"},
                                                                               {"varphi", "φ"},
                                                                               {"chi", "χ"},
                                                                               {"psi", "ψ"},
                                                                               {"omega", "ω"},
                                                                               {"Gamma", "Γ"},
                                                                               {"Delta", "Δ"},
                                                                               {"Theta", "Θ"},
                                                                               {"Lambda", "Λ"},
                                                                               {"Xi", "Ξ"},
                                                                               {"Pi", "Π"},
                                                                               {"Sigma", "Σ"},
                                                                               {"Upsilon", "Υ"},
                                                                               {"Phi", "Φ"},
                                                                               {"Psi", "Ψ"},
                                                                               {"Omega", "Ω"},
                                                                               {"infty", "∞"},
                                                                               {"cup", "∪"},
                                                                               {"cap", "∩"},
                                                                               {"cdot", "·"},
                                                                               {"times", "×"},
                                                                               {"div", "÷"},
                                                                               {"pm", "±"},
                                                                               {"mp", "∓"},
                                                                               {"le", "≤"},
                                                                               {"leq", "≤"},
                                                                               {"leqslant", "⩽"},
                                                                               {"ge", "≥"},
                                                                               {"geq", "≥"},
                                                                               {"geqslant", "⩾"},
                                                                               {"ne", "≠"},
                                                                               {"neq", "≠"},
                                                                               {"lt", "<"},
                                                                               {"gt", ">"},
                                                                               {"in", "∈"},
                                                                               {"notin", "∉"},
                                                                               {"ni", "∋"},
                                                                               {"subset", "⊂"},
                                                                               {"supset", "⊃"},
                                                                               {"subseteq", "⊆"},
                                                                               {"supseteq", "⊇"},
                                                                               {"setminus", "∖"},
                                                                               {"emptyset", "∅"},
                                                                               {"varnothing", "∅"},
                                                                               {"to", "→"},
                                                                               {"rightarrow", "→"},
                                                                               {"leftarrow", "←"},
                                                                               {"gets", "←"},
                                                                               {"Rightarrow", "⇒"},
                                                                               {"Leftarrow", "⇐"},
                                                                               {"leftrightarrow", "↔"},
                                                                               {"Leftrightarrow", "⇔"},
                                                                               {"mapsto", "↦"},
                                                                               {"implies", "⟹"},
                                                                               {"iff", "⟺"},
                                                                               {"longrightarrow", "⟶"},
                                                                               {"approx", "≈"},
                                                                               {"equiv", "≡"},
                                                                               {"sim", "∼"},
                                                                               {"simeq", "≃"},
                                                                               {"cong", "≅"},
                                                                               {"propto", "∝"},
                                                                               {"ll", "≪"},
                                                                               {"gg", "≫"},
                                                                               {"ldots", "…"},
                                                                               {"dots", "…"},
                                                                               {"cdots", "⋯"},
                                                                               {"dotsc", "…"},
                                                                               {"dotsb", "⋯"},
                                                                               {"vdots", "⋮"},
                                                                               {"ddots", "⋱"},
                                                                               {"forall", "∀"},
                                                                               {"exists", "∃"},
                                                                               {"partial", "∂"},
                                                                               {"nabla", "∇"},
                                                                               {"sum", "∑"},
                                                                               {"prod", "∏"},
                                                                               {"int", "∫"},
                                                                               {"oint", "∮"},
                                                                               {"angle", "∠"},
                                                                               {"triangle", "△"},
                                                                               {"square", "□"},
                                                                               {"perp", "⊥"},
                                                                               {"parallel", "∥"},
                                                                               {"mid", "∣"},
                                                                               {"prime", "′"},
                                                                               {"circ", "∘"},
                                                                               {"bullet", "∙"},
                                                                               {"star", "⋆"},
                                                                               {"ast", "∗"},
                                                                               {"oplus", "⊕"},
                                                                               {"otimes", "⊗"},
                                                                               {"odot", "⊙"},
                                                                               {"wedge", "∧"},
                                                                               {"land", "∧"},
                                                                               {"vee", "∨"},
                                                                               {"lor", "∨"},
                                                                               {"neg", "¬"},
                                                                               {"lnot", "¬"},
                                                                               {"lfloor", "⌊"},
                                                                               {"rfloor", "⌋"},
                                                                               {"lceil", "⌈"},
                                                                               {"rceil", "⌉"},
                                                                               {"langle", "⟨"},
                                                                               {"rangle", "⟩"},
                                                                               {"vert", "|"},
                                                                               {"lvert", "|"},
                                                                               {"rvert", "|"},
                                                                               {"Vert", "‖"},
                                                                               {"lbrace", "{"},
                                                                               {"rbrace", "}"},
                                                                               {"lbrack", "["},
                                                                               {"rbrack", "]"},
                                                                               {"hbar", "ℏ"},
                                                                               {"ell", "ℓ"},
                                                                               {"Re", "ℜ"},
                                                                               {"Im", "ℑ"},
                                                                               {"aleph", "ℵ"},
                                                                               {"mho", "℧"},
                                                                               {"wp", "℘"},
                                                                               {"degree", "°"},
                                                                               {"dag", "†"},
                                                                               {"dagger", "†"},
                                                                               {"cdotp", "·"},
                                                                               {"colon", ":"},
                                                                               {"quad", "  "},
                                                                               {"qquad", "    "},
                                                                               {"backslash", "\\"},
                                                                               {"therefore", "∴"},
                                                                               {"because", "∵"},
                                                                               {"top", "⊤"},
                                                                               {"bot", "⊥"},
                                                                               {"imath", "ı"},
                                                                               {"jmath", "ȷ"},
                                                                               {"S", "§"},
                                                                               {"pounds", "£"},
                                                                               {"i", "ı"},
                                                                               {"j", "ȷ"},
                                                                               {"o", "ø"},
                                                                               {"O", "Ø"},
                                                                               {"ss", "ß"},
                                                                               {"ae", "æ"},
                                                                               {"AE", "Æ"},
                                                                               {"oe", "œ"},
                                                                               {"OE", "Œ"},
                                                                               {"aa", "å"},
                                                                               {"AA", "Å"},
                                                                               {"l", "ł"},
                                                                               {"L", "Ł"},
                                                                               {"{", "{"},
                                                                               {"}", "}"},
                                                                               {"_", "_"},
                                                                               {"#", "#"},
                                                                               {"&", "&"},
                                                                               {"$", "$"},
                                                                               {"%", "%"},
                                                                               {"|", "‖"},
                                                                               {"\\", "\n"},
                                                                               {",", " "},
                                                                               {";", " "},
                                                                               {":", " "},
                                                                               {" ", " "},
                                                                               {"\n", " "},
                                                                               {"\t", " "},
                                                                               {">", " "}};
  return table;
}

bool is_named_function(std::string_view name) {
  static const std::unordered_map<std::string_view, bool> table = {
      {"sin", true},    {"cos", true},    {"tan", true},    {"cot", true},  {"sec", true},  {"csc", true},
      {"arcsin", true}, {"arccos", true}, {"arctan", true}, {"sinh", true}, {"cosh", true}, {"tanh", true},
      {"coth", true},   {"log", true},    {"ln", true},     {"lg", true},   {"exp", true},  {"lim", true},
      {"limsup", true}, {"liminf", true}, {"max", true},    {"min", true},  {"sup", true},  {"inf", true},
      {"det", true},    {"dim", true},    {"ker", true},    {"deg", true},  {"gcd", true},  {"arg", true},
      {"hom", true},    {"Pr", true}};
  return table.contains(name);
}

// Macros that put a mark over their argument.
std::string_view combining_mark(std::string_view name) {
  static const std::unordered_map<std::string_view, std::string_view> table = {
      {"bar", "\u0304"},   {"hat", "\u0302"},   {"vec", "\u20D7"},   {"dot", "\u0307"},
      {"ddot", "\u0308"},  {"tilde", "\u0303"}, {"check", "\u030C"}, {"breve", "\u0306"},
      {"acute", "\u0301"}, {"grave", "\u0300"}, {"'", "\u0301"},     {"`", "\u0300"},
      {"^", "\u0302"},     {"\"", "\u0308"},    {"=", "\u0304"},     {".", "\u0307"}};
  const auto found = table.find(name);
  return found == table.end() ? std::string_view{} : found->second;
}

std::string double_struck(std::string_view letter) {
  for (const auto& [from, to] :
       {std::pair{"C", "ℂ"}, {"N", "ℕ"}, {"P", "ℙ"}, {"Q", "ℚ"}, {"R", "ℝ"}, {"Z", "ℤ"}})
    if (letter == from) return to;
  return std::string(letter);
}

class Converter {
 public:
  explicit Converter(std::string_view latex) : latex_(latex) {}

  std::optional<std::string> run() {
    std::string result;
    while (position_ < latex_.size()) {
      result += until('}', 0);
      if (position_ < latex_.size()) ++position_;  // an unmatched brace vanishes
    }
    if (too_deep_) return std::nullopt;
    return result;
  }

 private:
  std::string_view latex_;
  size_t position_ = 0;
  bool too_deep_ = false;

  // Everything up to `stop` (not consumed) or the end; environments stop at \end.
  std::string until(char stop, int depth) {
    std::string result;
    while (position_ < latex_.size() && latex_[position_] != stop) {
      if (at_end_macro()) break;
      result += one(depth);
    }
    return result;
  }

  bool at_end_macro() const {
    return depth_of_environments_ > 0 && latex_.substr(position_).starts_with("\\end{");
  }
  int depth_of_environments_ = 0;

  // One node: a macro, a group or a character.
  std::string one(int depth) {
    if (depth > kMaxDepth) {
      too_deep_ = true;
      position_ = latex_.size();
      return "";
    }
    const char c = latex_[position_];
    if (c == '\\') return macro(depth);
    if (c == '{') {
      ++position_;
      std::string inside = until('}', depth + 1);
      if (position_ < latex_.size() && latex_[position_] == '}') ++position_;
      return inside;
    }
    const std::string_view rest = latex_.substr(position_);
    for (const auto& [from, to] : {std::pair{"---", "—"},
                                   {"--", "–"},
                                   {"``", "“"},
                                   {"''", "”"},
                                   {"<<", "«"},
                                   {">>", "»"},
                                   {"~", "\u00A0"},
                                   {"&", "   "}})
      if (rest.starts_with(from)) {
        position_ += std::string_view(from).size();
        return to;
      }
    const size_t bytes = character_bytes(latex_, position_);
    position_ += bytes;
    return std::string(rest.substr(0, bytes));
  }

  void skip_spaces() {
    while (position_ < latex_.size() && is_space(static_cast<unsigned char>(latex_[position_]))) ++position_;
  }

  std::string argument(int depth) {
    skip_spaces();
    return position_ < latex_.size() && latex_[position_] != '}' ? one(depth + 1) : "";
  }

  // [..] behind a macro, dropped.
  void optional_argument() {
    skip_spaces();
    if (position_ >= latex_.size() || latex_[position_] != '[') return;
    const size_t close = latex_.find(']', position_);
    if (close != std::string_view::npos) position_ = close + 1;
  }

  std::string_view macro_name() {
    const size_t begin = ++position_;
    while (position_ < latex_.size() && is_letter(latex_[position_])) ++position_;
    if (position_ == begin && position_ < latex_.size()) position_ += character_bytes(latex_, position_);
    return latex_.substr(begin, position_ - begin);
  }

  std::string macro(int depth) {
    const std::string_view name = macro_name();
    if (name == "frac" || name == "nicefrac") {
      std::string top = argument(depth);
      return top + "/" + argument(depth);
    }
    if (name == "sqrt") {
      optional_argument();
      return "√(" + argument(depth) + ")";
    }
    if (name == "mathbb") return double_struck(argument(depth));
    if (name == "begin") return environment(depth);
    if (name == "end") {
      argument(depth);
      return "";
    }
    if (const auto mark = combining_mark(name); !mark.empty()) return argument(depth).append(mark);
    if (is_named_function(name)) return std::string(name);
    const auto found = symbols().find(name);
    return found == symbols().end() ? "" : std::string(found->second);
  }

  // Matrices are written [ a b; c d ]; other environments are their content.
  std::string environment(int depth) {
    const std::string name = argument(depth);
    if (name == "array" || name == "tabular") argument(depth);
    const bool is_matrix = name == "array" || name.find("matrix") != std::string::npos;
    ++depth_of_environments_;
    std::string result;
    while (position_ < latex_.size() && !at_end_macro()) {
      const std::string_view rest = latex_.substr(position_);
      if (is_matrix && rest[0] == '&') {
        result += ' ';
        ++position_;
      } else if (is_matrix && rest.starts_with("\\\\")) {
        result += "; ";
        position_ += 2;
      } else if (rest[0] == '}') {
        ++position_;
      } else {
        result += one(depth + 1);
      }
    }
    --depth_of_environments_;
    if (position_ < latex_.size()) {
      position_ += 4;  // \end
      argument(depth);
    }
    return is_matrix ? "[ " + result + " ]" : result;
  }
};

}  // namespace

std::optional<std::string> latex_to_text(std::string_view latex) { return Converter(latex).run(); }

}  // namespace ropd::grading
