// The look of the report: one sheet for the page, one for the charts. Colours are variables with a light and
// a dark value; the eight series styles differ in colour (darkened Okabe-Ito, safe for colour-blind readers),
// dash and marker, and reach a contrast of 4.5:1 as text.
#pragma once

namespace ropd::report {

inline constexpr const char* kLightColours = R"(
  --page: #ffffff; --ink: #1b1e23; --muted: #5a616b; --faint: #e4e6ea; --panel: #f6f7f9; --rule: #c9cdd3;
  --s0: #0067a3; --s1: #b84700; --s2: #00785a; --s3: #a03580; --s4: #7a5c00; --s5: #5546b8; --s6: #5f6670; --s7: #1b1e23;
  --p0: #2f6db5; --p1: #a5c8ee; --p2: #f3c67f; --p3: #b54a12;
  --on-p0: #ffffff; --on-p1: #1b1e23; --on-p2: #1b1e23; --on-p3: #ffffff;
  --less: #fbe3cb; --less-line: #b84700; --more: #d8e9f9; --more-line: #0067a3; --good: #00785a; --bad: #b3261e;
)";

inline constexpr const char* kDarkColours = R"(
  --page: #14161a; --ink: #e6e8eb; --muted: #a0a7b1; --faint: #2a2e35; --panel: #1c1f25; --rule: #454b55;
  --s0: #5cb3ee; --s1: #ff9159; --s2: #3fcf9f; --s3: #ec8fc9; --s4: #dcb63f; --s5: #a99df5; --s6: #a0a7b1; --s7: #e6e8eb;
  --p0: #4f8fd9; --p1: #24476f; --p2: #6b4d18; --p3: #e07a3c;
  --on-p0: #0d1117; --on-p1: #e6e8eb; --on-p2: #f5e6cb; --on-p3: #14161a;
  --less: #4a2d12; --less-line: #ff9159; --more: #16344f; --more-line: #5cb3ee; --good: #3fcf9f; --bad: #ff8a80;
)";

inline constexpr const char* kChartStyle = R"(
.chart { font: 12px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif; font-variant-numeric: tabular-nums; }
.chart text { fill: var(--ink); }
.chart .tick, .chart .axis-label, .chart .note { fill: var(--muted); }
.chart .note, .chart .label { paint-order: stroke; stroke: var(--page); stroke-width: 3px; stroke-linejoin: round; }
.chart .note { font-size: 11px; }
.chart .label { font-weight: 600; } .chart .label.neutral { font-weight: 400; fill: var(--muted); }
.chart .grid { stroke: var(--faint); stroke-width: 1; }
.chart .axis { stroke: var(--rule); stroke-width: 1; }
.chart .line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.chart .interval { stroke-width: 1.2; opacity: .7; }
.chart .leader { stroke-width: .8; opacity: .6; }
.chart .reference { stroke-width: 1.2; stroke-dasharray: 2 3; }
.chart .mark { stroke: var(--page); stroke-width: 1; }
.chart line.neutral { stroke: var(--muted); }
.chart line.s0, .chart .line.s0 { stroke: var(--s0); } .chart .mark.s0, .chart .bar.s0, .chart text.s0 { fill: var(--s0); }
.chart line.s1, .chart .line.s1 { stroke: var(--s1); } .chart .mark.s1, .chart .bar.s1, .chart text.s1 { fill: var(--s1); }
.chart line.s2, .chart .line.s2 { stroke: var(--s2); } .chart .mark.s2, .chart .bar.s2, .chart text.s2 { fill: var(--s2); }
.chart line.s3, .chart .line.s3 { stroke: var(--s3); } .chart .mark.s3, .chart .bar.s3, .chart text.s3 { fill: var(--s3); }
.chart line.s4, .chart .line.s4 { stroke: var(--s4); } .chart .mark.s4, .chart .bar.s4, .chart text.s4 { fill: var(--s4); }
.chart line.s5, .chart .line.s5 { stroke: var(--s5); } .chart .mark.s5, .chart .bar.s5, .chart text.s5 { fill: var(--s5); }
.chart line.s6, .chart .line.s6 { stroke: var(--s6); } .chart .mark.s6, .chart .bar.s6, .chart text.s6 { fill: var(--s6); }
.chart line.s7, .chart .line.s7 { stroke: var(--s7); } .chart .mark.s7, .chart .bar.s7, .chart text.s7 { fill: var(--s7); }
.chart .line.s1 { stroke-dasharray: 7 4; } .chart .line.s2 { stroke-dasharray: 1 4; stroke-width: 2.6; }
.chart .line.s3 { stroke-dasharray: 9 3 2 3; } .chart .line.s4 { stroke-dasharray: 12 4; }
.chart .line.s5 { stroke-dasharray: 4 3; } .chart .line.s6 { stroke-dasharray: 2 3; } .chart .line.s7 { stroke-dasharray: 14 3 2 3 2 3; }
.chart .bar.p0 { fill: var(--p0); } .chart .bar.p1 { fill: var(--p1); } .chart .bar.p2 { fill: var(--p2); } .chart .bar.p3 { fill: var(--p3); }
.chart .value.p0 { fill: var(--on-p0); } .chart .value.p1 { fill: var(--on-p1); }
.chart .value.p2 { fill: var(--on-p2); } .chart .value.p3 { fill: var(--on-p3); }
.chart text.label.row { stroke: none; }
)";

// Marks of tokens (token_marks.h): colour, kind of line and its width say the same.
inline constexpr const char* kTokenStyle = R"(
.token { border-radius: 2px; unicode-bidi: isolate; -webkit-box-decoration-break: clone; box-decoration-break: clone; }
.less1, .less2, .less3 { background: var(--less); border-bottom: 1px solid var(--less-line); } .less2 { border-bottom-width: 2px; } .less3 { border-bottom-width: 4px; }
.more1, .more2, .more3 { background: var(--more); border-bottom: 1px dotted var(--more-line); } .more2 { border-bottom-width: 2px; } .more3 { border-bottom-width: 4px; }
.legend .token { padding: 0 .35em; color: var(--ink); font-variant-numeric: tabular-nums; }
)";

inline constexpr const char* kPageStyle = R"(
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 40px 24px 72px; }
h1 { font-size: 1.75rem; line-height: 1.2; font-weight: 650; letter-spacing: -.012em; margin: 0 0 .3em; }
h2 { font-size: 1.15rem; font-weight: 650; margin: 2.6em 0 .7em; padding-top: .55em; border-top: 1px solid var(--rule); }
h3 .muted { font-weight: 400; margin-left: .6em; }
h3 { font-size: 1rem; font-weight: 600; margin: 1.6em 0 .4em; }
p { max-width: 46em; margin: .5em 0; }
.lead { font-size: 1.06rem; } .muted, figcaption, .caption, .meta { color: var(--muted); }
a { color: var(--s0); text-underline-offset: 2px; }
code, pre, .response { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: .8125rem; }
.table { margin: 1em 0 1.6em; max-width: 100%; min-width: 0; } .scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 2px solid var(--s0); outline-offset: 2px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums lining-nums; font-size: .9375rem; }
.caption { font-size: .875rem; line-height: 1.45; margin: 0 0 .5em; }
th, td { padding: 5px 13px; text-align: right; white-space: nowrap; font-weight: 400; }
thead th { color: var(--muted); font-size: .8125rem; border-bottom: 1px solid var(--rule); vertical-align: bottom; }
thead tr.span th { border-bottom: 0; padding-bottom: 0; }
tbody tr:last-child > * { border-bottom: 1px solid var(--rule); }
tbody tr + tr > * { border-top: 1px solid var(--faint); }
th[scope=row], th.text, td.text { text-align: left; } th:first-child, td:first-child { padding-left: 0; }
td.text { white-space: normal; }
td .sd { color: var(--muted); font-size: .8125rem; }
tr.reference > * { color: var(--muted); }
thead th.over { text-align: center; }
.tables { display: flex; flex-wrap: wrap; gap: 0 56px; align-items: flex-end; } .tables > .table { flex: 0 1 auto; }
.tables .caption { max-width: 40em; } .entry { display: inline-block; }
.setting { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: .9em 24px; margin: 1em 0 1.6em; }
.setting dt { color: var(--muted); font-size: .8125rem; } .setting dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.best { font-weight: 700; } .note { color: var(--muted); font-size: .875rem; line-height: 1.45; margin: .4em 0 0; max-width: 60em; }
.warning { border-left: 4px solid var(--s1); background: var(--panel); padding: .6em .9em; overflow-wrap: anywhere; }
.findings { padding-left: 1.2em; margin: .8em 0 1.2em; } .findings li { max-width: 50em; margin: .35em 0; font-size: 1.03rem; }
nav ol { columns: 3 14em; column-gap: 32px; padding-left: 1.4em; margin: 1.4em 0; font-size: .9375rem; } nav li { break-inside: avoid; }
.data summary { font-weight: 400; font-size: .8125rem; color: var(--muted); margin: .3em 0 0; } .data pre { max-height: 16em; }
.k0 { background: var(--s0); } .k1 { background: var(--s1); } .k2 { background: var(--s2); } .k3 { background: var(--s3); }
.k4 { background: var(--s4); } .k5 { background: var(--s5); } .k6 { background: var(--s6); } .k7 { background: var(--s7); }
.key { display: inline-block; width: .7em; height: .7em; border-radius: 2px; margin-right: .5em; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 420px), 1fr)); gap: 30px 44px; margin-top: 1.2em; }
figure { margin: 0; min-width: 0; break-inside: avoid; }
figure .chart { display: block; width: 100%; height: auto; }
figure h3 { margin: 0 0 .5em; }
figcaption { font-size: .875rem; line-height: 1.45; margin-top: .4em; }
.side-by-side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); gap: 16px; margin-top: .5em; }
.side-by-side > div { min-width: 0; break-inside: avoid; }
.response { background: var(--panel); border-left: 3px solid var(--rule); padding: .6em .8em; margin: .3em 0 0; white-space: pre-wrap;
  overflow-wrap: anywhere; max-height: 22em; overflow-y: auto; }
.response { line-height: 1.75; } .response.right { border-left-color: var(--good); } .response.wrong { border-left: 4px double var(--bad); }
.sample { margin: 1.8em 0 2.6em; } .sample h3 { margin: 0 0 .3em; }
.question { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: .8125rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.expected, .legend { font-size: .875rem; color: var(--muted); max-width: 60em; line-height: 1.7; } .expected code { color: var(--ink); }
.whose { font-weight: 600; margin: 0; overflow-wrap: anywhere; } table.small { font-size: .8125rem; } table.small th, table.small td { padding: 2px 9px; }
.response .token { cursor: help; } .response .token:hover, .response .token:focus { outline: 2px solid var(--ink); }
.response .token:hover::after, .response .token:focus::after { content: attr(data-about); position: fixed; left: 0; right: 0; bottom: 0; z-index: 1;
  background: var(--panel); color: var(--ink); border-top: 1px solid var(--rule); box-shadow: 0 -4px 18px rgb(0 0 0 / .12);
  padding: .7em max(24px, calc(50vw - 506px)) .9em; white-space: pre; overflow: hidden; line-height: 1.45; min-height: 10.4em; }
.response .token:hover::after { z-index: 2; }
.meta { font-size: .8125rem; margin: 0; }
pre { background: var(--panel); padding: .8em 1em; overflow-x: auto; margin: .6em 0; line-height: 1.5; max-height: 34em; }
details > summary:focus-visible, a:focus-visible, .response:focus-visible { outline: 2px solid var(--s0); outline-offset: 2px; }
details > summary { cursor: pointer; font-weight: 600; margin: .8em 0 .3em; }
footer { margin-top: 3.5em; font-size: .8125rem; color: var(--muted); }
@media (max-width: 640px) {
  .chart { font-size: 14px; } .chart .note { font-size: 13px; }
  main { padding: 24px 16px 48px; } h1 { font-size: 1.45rem; }
  th, td { padding: 5px 8px; } table { font-size: .875rem; }
}
@media print {
  .data, nav { display: none; } .response .token::after { display: none; }
  main { max-width: none; padding: 0; } body { font-size: 10.5pt; } h2 { break-after: avoid; } .response { max-height: none; overflow: visible; }
  .scroll, pre { overflow: visible; } pre { white-space: pre-wrap; max-height: none; } .figures { grid-template-columns: 1fr 1fr; gap: 18px 24px; }
  a { color: inherit; text-decoration: none; }
}
)";

}  // namespace ropd::report
