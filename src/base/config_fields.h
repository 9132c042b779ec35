// Typed configuration from one field list per struct. A struct declares
//   void fields(auto&& field) { field("learning_rate", learning_rate, "AdamW step size", Range{0.0, 1.0}); ... }
// and that list drives parsing, defaults, help, saving and docs/config.md. A field may be bool, an integer, double, std::string,
// std::optional<T>, std::vector<T>, an enum with `enum_names(T)`, or a nested struct with fields().
// Source: a YAML file plus key=value overrides (a.b.c=value, value parsed as YAML). Errors name file, line, key, the value, what was
// expected, and for an unknown key the nearest valid one.
#pragma once
