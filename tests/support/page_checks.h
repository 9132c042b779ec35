// What every page of ours must keep, measured inside a browser: it does not scroll sideways, all text can be read
// against what is behind it, drawings have a text alternative and keep their texts inside.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "support/browser.h"

namespace ropd::test {

// [least contrast of any visible text, that text]. Numbers on bars are the chart's business: a drawing's shapes are no
// backgrounds that a page could be asked for.
inline constexpr const char* kLeastContrast = R"((() => {
  const parse = text => (text.match(/[\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let least = [99, ''];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !element.getClientRects().length || element.closest('noscript,title,desc,.value')) continue;
    const style = getComputedStyle(element);
    const a = luminance(parse(element.closest('svg') ? style.fill : style.color)), b = luminance(behind(element));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < least[0]) least = [contrast, walk.currentNode.textContent.slice(0, 60)];
  }
  return least;
})())";

// What is wrong with drawings: no role, title or description, no size, or a text that leaves it.
inline constexpr const char* kUnsoundDrawings = R"([...document.querySelectorAll('svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect(), name = (svg.querySelector('title') || {}).textContent || '';
  const wrong = [];
  if (svg.getAttribute('role') !== 'img') wrong.push('no role');
  if (name.trim().length < 3) wrong.push('no title');
  if (((svg.querySelector('desc') || {}).textContent || '').trim().length < 20) wrong.push('no description');
  if (box.width < 150 || box.height < 40) wrong.push('size ' + box.width + ' x ' + box.height);
  for (const text of svg.querySelectorAll('text')) {
    const inner = text.getBoundingClientRect();
    if (inner.left < box.left - 2 || inner.right > box.right + 2 || inner.bottom > box.bottom + 2) wrong.push('outside: ' + text.textContent);
  }
  return wrong.map(problem => name + ': ' + problem);
}))";

inline void expect_sound_page(Browser& browser, const std::string& where) {
  EXPECT_LE(browser.evaluate("document.documentElement.scrollWidth - innerWidth"), 0) << where;
  const Json contrast = browser.evaluate(kLeastContrast);
  EXPECT_GE(contrast[0], 4.5) << where << ": " << contrast[1];
  EXPECT_EQ(browser.evaluate(kUnsoundDrawings), Json::array()) << where;
  // Whatever can be chosen has a name.
  EXPECT_EQ(
      browser.evaluate(
          "[...document.querySelectorAll('a, button, input, select, [role=region], [role=group], progress')]"
          ".filter(element => !(element.textContent.trim() || element.getAttribute('aria-label') || "
          "(element.labels && element.labels.length))).map(element => element.outerHTML.slice(0, 200))"),
      Json::array())
      << where;
}

}  // namespace ropd::test
