// Texts that try to run a script, ask elsewhere, break out of their place in a page or deceive a reader.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace ropd::test {

// 200 of them. What runs calls hit(); what asks asks 127.0.0.1:9.
inline std::vector<std::string> payloads() {
  const std::vector<std::string> cores = {"<script>hit()</script>",
                                          "<img src=x onerror=hit()>",
                                          "<svg onload=hit()>",
                                          "<iframe srcdoc='<script>parent.hit()</script>'>",
                                          "<a href=javascript:hit()>x</a>",
                                          "<body onload=hit()>",
                                          "<style>@import 'http://127.0.0.1:9/x'</style>",
                                          "<link rel=stylesheet href=http://127.0.0.1:9/x>",
                                          "<img src=http://127.0.0.1:9/x>",
                                          "<object data=http://127.0.0.1:9/x>",
                                          "<embed src=http://127.0.0.1:9/x>",
                                          "<base href=http://127.0.0.1:9/>",
                                          "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
                                          "<form action=http://127.0.0.1:9/><button>x",
                                          "<math><mtext></mtext><script>hit()</script>",
                                          "<details open ontoggle=hit()>",
                                          "<input autofocus onfocus=hit()>",
                                          "<video src=x onerror=hit()>",
                                          "{{constructor.constructor('hit()')()}}",
                                          "${hit()}"};
  const std::vector<std::pair<std::string, std::string>> frames = {{"", ""},
                                                                   {"\">", ""},
                                                                   {"'>", ""},
                                                                   {"</title></desc></svg>", ""},
                                                                   {"--></script></style></textarea>", ""},
                                                                   {"]]>", ""},
                                                                   {"\x1b[2J\x1b]0;", "\x07"},
                                                                   {"\u202E", "\u2066"},
                                                                   {"\\u003c\\\"", "\\"},
                                                                   {"\r\n\r\ndata: {}\n\n", "\xFF"}};
  std::vector<std::string> all;
  for (const auto& [before, after] : frames)
    for (const std::string& core : cores) all.push_back(before + core + after);
  return all;
}

}  // namespace ropd::test
