// The syntax tree of a chat template. Built by the parser, read by the interpreter, constant in between.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/template_value.h"

namespace ropd::text {

struct TemplateExpression;
using ExpressionPtr = std::unique_ptr<TemplateExpression>;

struct TemplateArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};

// One node for all expressions: `kind` says which fields count.
struct TemplateExpression {
  enum class Kind {
    literal,      // value
    name,         // text
    list,         // children
    dict,         // children: key, value, key, value, ...
    attribute,    // children[0] . text
    subscript,    // children[0] [ children[1] ]
    slice,        // children[0] [ children[1] : children[2] : children[3] ], parts may be null
    call,         // children[0] ( arguments )
    filter,       // children[0] | text ( arguments )
    test,         // children[0] is text ( arguments )
    negate,       // - children[0]
    plus,         // + children[0]
    logical_not,  // not children[0]
    logical_and,  // children[0] and children[1]
    logical_or,
    binary,       // children[0] text children[1]; text is + - * / // % ** ~
    compare,      // children[0] text children[1]; text is == != < <= > >= in "not in"
    conditional,  // children[0] if children[1] else children[2]; the last may be null
  };
  Kind kind = Kind::literal;
  int line = 1;
  int depth = 1;  // of the tree below; bounded by the parser, so walking and freeing it may recurse
  std::string text;
  TemplateValue value;
  std::vector<ExpressionPtr> children;
  TemplateArguments arguments;
};

struct TemplateStatement;
using StatementList = std::vector<std::unique_ptr<TemplateStatement>>;

// A place an assignment writes to: a name, or an attribute of a namespace.
struct TemplateTarget {
  std::string name;
  std::string attribute;  // empty for a plain name
};

struct MacroStatement {
  std::string name;
  std::vector<std::pair<std::string, ExpressionPtr>> parameters;  // with defaults, which may be null
  StatementList body;
};

struct TemplateStatement {
  enum class Kind {
    text,       // text
    print,      // expression
    condition,  // branches in order; a null condition is `else`
    loop,       // for targets in expression if filter: body, else: otherwise
    assign,     // targets = expression
    capture,    // targets[0] = what body prints
    macro,      // macro
    leave,      // break
    next,       // continue
    group,      // body ({% generation %})
  };
  Kind kind = Kind::text;
  int line = 1;
  std::string text;
  ExpressionPtr expression, filter;
  std::vector<TemplateTarget> targets;
  std::vector<std::pair<ExpressionPtr, StatementList>> branches;
  StatementList body, otherwise;
  std::unique_ptr<MacroStatement> macro;
};

}  // namespace ropd::text
