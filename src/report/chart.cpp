#include "report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/html.h"

namespace ropd::report {
namespace {

// All lengths in SVG user units; at the usual width of a figure one unit is about one CSS pixel.
constexpr double kWidth = 460, kHeight = 300;
constexpr double kTextHeight = 13, kCharacterWidth = 7.3;
constexpr double kTop = 38, kBottom = 46;
constexpr int kNumStyles = 8;
constexpr size_t kMaxLabelCharacters = 18;

struct Box {
  double left, top, right, bottom;
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

double text_width(std::string_view text) {
  const auto is_first = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return kCharacterWidth * static_cast<double>(std::count_if(text.begin(), text.end(), is_first));
}

std::string number(double value) {  // a coordinate
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string style_class(int style) {
  return style < 0 ? "neutral" : "s" + std::to_string(style % kNumStyles);
}

std::string text_element(double x, double y, const std::string& anchor, const std::string& css,
                         std::string_view text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\" class=\"" +
         css + "\">" + escape_html(text) + "</text>\n";
}

std::string line_element(double x1, double y1, double x2, double y2, const std::string& css) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" +
         number(y2) + "\" class=\"" + css + "\"/>\n";
}

std::string open_svg(const std::string& id, double height, std::string_view title,
                     std::string_view description) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" viewBox=\"0 0 " +
         number(kWidth) + " " + number(height) + "\" width=\"" + number(kWidth) + "\" height=\"" +
         number(height) + "\" aria-labelledby=\"" + id + "-title " + id + "-desc\">\n<title id=\"" + id +
         "-title\">" + escape_html(title) + "</title>\n<desc id=\"" + id + "-desc\">" +
         escape_html(description) + "</desc>\n";
}

// A marker's shape around the origin; shapes differ as colours do.
std::string marker_path(int style) {
  switch (style % kNumStyles) {
    case 0:
      return "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z";
    case 1:
      return "M-3.2 -3.2h6.4v6.4h-6.4Z";
    case 2:
      return "M0 -4.4L4.2 3.2H-4.2Z";
    case 3:
      return "M0 -4.6L4.6 0L0 4.6L-4.6 0Z";
    case 4:
      return "M0 4.4L4.2 -3.2H-4.2Z";
    case 5:
      return "M-1.4 -4h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6v-2.8h2.6Z";
    case 6:
      return "M-4.4 -2.2h8.8v4.4h-8.8Z";
    default:
      return "M-2.2 -4.4h4.4v8.8h-4.4Z";
  }
}

// Maps data to a stretch of the drawing.
class Scale {
 public:
  Scale(const Axis& axis, std::vector<double> values, double begin, double end, int num_ticks)
      : is_logarithmic_(axis.is_logarithmic), begin_(begin), end_(end) {
    std::erase_if(values, [&](double v) { return !std::isfinite(v) || (is_logarithmic_ && v <= 0); });
    for (const auto& [at, label] : axis.ticks) values.push_back(at);
    if (values.empty()) values = {is_logarithmic_ ? 1.0 : 0.0, is_logarithmic_ ? 10.0 : 1.0};
    low_ = axis.low.value_or(*std::min_element(values.begin(), values.end()));
    high_ = axis.high.value_or(*std::max_element(values.begin(), values.end()));
    if (!(high_ > low_)) {  // one value only
      const double room = low_ == 0 ? 1 : std::fabs(low_) * 0.5;
      if (!axis.low) low_ -= is_logarithmic_ ? 0.5 * low_ : room;
      high_ = low_ + 2 * room;
    }
    if (axis.is_share) {  // round steps below a hundred divide it, so ticks stay inside as well
      low_ = std::max(low_, 0.0);
      high_ = std::min(high_, 100.0);
    }
    ticks_ = axis.ticks;
    if (ticks_.empty()) add_round_ticks(axis, num_ticks);
  }

  double operator()(double value) const {
    const double share = is_logarithmic_ ? (std::log(std::max(value, low_ * 1e-9)) - std::log(low_)) /
                                               (std::log(high_) - std::log(low_))
                                         : (value - low_) / (high_ - low_);
    return begin_ + std::clamp(share, -0.02, 1.02) * (end_ - begin_);
  }
  bool can_show(double value) const { return std::isfinite(value) && (!is_logarithmic_ || value > 0); }
  const std::vector<std::pair<double, std::string>>& ticks() const { return ticks_; }

 private:
  void add_round_ticks(const Axis& axis, int num_ticks) {
    if (is_logarithmic_) {
      const double decades = std::log10(high_) - std::log10(low_);
      const double stride = std::max(1.0, std::ceil(decades / 8));
      for (double power = std::floor(std::log10(low_)); power <= std::log10(high_) + 0.001; power += stride)
        for (const double step : {1.0, 2.0, 5.0}) {
          if (step != 1.0 && decades > 2.2) continue;
          const double at = std::pow(10.0, power) * step;
          if (at >= low_ * 0.999 && at <= high_ * 1.001) ticks_.emplace_back(at, format_brief(at));
        }
      return;
    }
    std::vector<double> at = round_ticks(low_, high_, num_ticks);
    if (axis.is_integer) {
      at = round_ticks(low_, high_, std::clamp(static_cast<int>(high_ - low_), 1, num_ticks));
      std::erase_if(at, [](double value) { return std::fabs(value - std::round(value)) > 1e-6; });
    }
    if (!axis.low) low_ = std::min(low_, at.front());
    if (!axis.high) high_ = std::max(high_, at.back());
    if (axis.is_integer && axis.low && std::find(at.begin(), at.end(), low_) == at.end())
      ticks_.emplace_back(low_, format_brief(low_));
    for (const double value : at)
      if (value >= low_ - 1e-9 * (high_ - low_) && value <= high_ + 1e-9 * (high_ - low_))
        ticks_.emplace_back(value, format_brief(value));
  }

  // constant after construction
  bool is_logarithmic_;
  double begin_, end_;
  double low_ = 0, high_ = 1;
  std::vector<std::pair<double, std::string>> ticks_;
};

std::vector<double> all_values(const LineChart& chart, bool is_x) {
  std::vector<double> values;
  for (const Series& series : chart.series) {
    const auto& data = is_x ? series.x : series.y;
    values.insert(values.end(), data.begin(), data.end());
    if (is_x) continue;
    values.insert(values.end(), series.low.begin(), series.low.end());
    values.insert(values.end(), series.high.begin(), series.high.end());
  }
  for (const ReferenceLine& line : chart.lines)
    if (line.is_vertical == is_x) values.push_back(line.at);
  return values;
}

struct Label {
  double x = 0, y = 0;  // the mark it belongs to
  std::string text;
  int style = 0;
};

// The drawing of one line chart.
class LinePainter {
 public:
  explicit LinePainter(const LineChart& chart)
      : chart_(chart),
        left_(left_margin(chart)),
        right_(kWidth - right_margin(chart)),
        x_(chart.x, all_values(chart, true), left_ + 6, right_ - 6, 6),
        y_(chart.y, all_values(chart, false), kHeight - kBottom, kTop, 5) {}

  std::string paint() {
    draw_axes();
    draw_reference_lines();
    for (const Series& series : chart_.series) draw_series(series);
    place_margin_labels();
    place_free_labels();
    return svg_;
  }

 private:
  static bool has_lines(const LineChart& chart) {
    return std::any_of(chart.series.begin(), chart.series.end(),
                       [](const Series& s) { return s.has_line && s.x.size() > 1; });
  }
  static double right_margin(const LineChart& chart) {
    if (!has_lines(chart)) return 12;
    double width = 0;
    for (const Series& series : chart.series)
      if (!series.label_index) width = std::max(width, text_width(shorten(series.name, kMaxLabelCharacters)));
    for (const ReferenceLine& line : chart.lines)
      if (!line.is_vertical) width = std::max(width, text_width(line.label));
    return width + 24;
  }
  static double left_margin(const LineChart& chart) {
    const Scale scale(chart.y, all_values(chart, false), 0, 1, 5);
    double width = 0;
    for (const auto& [at, label] : scale.ticks()) width = std::max(width, text_width(label));
    return width + 12;
  }

  void draw_axes() {
    const double bottom = kHeight - kBottom;
    for (const auto& [at, label] : y_.ticks()) {
      svg_ += line_element(left_, y_(at), right_, y_(at), "grid");
      svg_ += text_element(left_ - 6, y_(at) + 4, "end", "tick", label);
    }
    double last_right = -1e9;  // labels that would touch are left out
    for (const auto& [at, label] : x_.ticks()) {
      svg_ += line_element(x_(at), bottom, x_(at), bottom + 4, "axis");
      const double half = text_width(label) / 2;
      if (x_(at) - half < last_right + 4) continue;
      last_right = x_(at) + half;
      svg_ += text_element(x_(at), bottom + 17, "middle", "tick", label);
    }
    svg_ += line_element(left_, bottom, right_, bottom, "axis");
    svg_ += text_element((left_ + right_) / 2, kHeight - 8, "middle", "axis-label", chart_.x.label);
    svg_ += text_element(0.5, 14, "start", "axis-label", chart_.y.label);
  }

  void draw_reference_lines() {
    double last_right =
        -1e9;  // of the labels above the plot; one that would touch its neighbour goes a row higher
    bool is_raised = false;
    for (const ReferenceLine& line : chart_.lines) {
      const std::string css = "reference " + style_class(line.style);
      if (line.is_vertical) {
        const double x = x_(line.at), half = text_width(line.label) / 2;
        const double middle = std::clamp(x, left_ + half, kWidth - half);
        is_raised = middle - half < last_right + 6 && !is_raised;
        last_right = middle + half;
        svg_ += line_element(x, kTop - 3, x, kHeight - kBottom, css);
        svg_ += text_element(middle, kTop - (is_raised ? 18 : 6), "middle", "note", line.label);
      } else {
        const double y = y_(line.at);
        svg_ += line_element(left_, y, right_, y, css);
        margin_labels_.push_back({right_ - 6, y, line.label, line.style});
      }
    }
  }

  void draw_series(const Series& series) {
    const std::string css = style_class(series.style);
    std::string path, marks;
    bool is_pen_down = false;
    double last_x = 0, last_y = 0;
    std::optional<Label> named;
    const size_t count = std::min(series.x.size(), series.y.size());
    for (size_t i = 0; i < count; ++i) {
      if (!x_.can_show(series.x[i]) || !y_.can_show(series.y[i])) {
        is_pen_down = false;
        continue;
      }
      const double x = x_(series.x[i]), y = y_(series.y[i]);
      if (is_pen_down && series.has_line) keep_clear(last_x, last_y, x, y);
      last_x = x;
      last_y = y;
      path += (is_pen_down ? "L" : "M") + number(x) + " " + number(y);
      is_pen_down = true;
      if (i < series.low.size() && i < series.high.size() && y_.can_show(series.low[i]) &&
          y_.can_show(series.high[i]))
        marks += line_element(x, y_(series.low[i]), x, y_(series.high[i]), "interval " + css);
      if (series.has_markers) {
        marks += "<path class=\"mark " + css + "\" transform=\"translate(" + number(x) + " " + number(y) +
                 ")\" d=\"" + marker_path(series.style) + "\"><title>" + escape_html(series.name) + ": " +
                 escape_html(tick_name(series.x[i])) + ", " + format_brief(series.y[i]) + "</title></path>\n";
        taken_.push_back({x - 4, y - 4, x + 4, y + 4});
      }
      if (!series.label_index || i <= *series.label_index)
        named = Label{x, y, shorten(series.name, kMaxLabelCharacters), series.style};
    }
    if (series.has_line && !path.empty()) svg_ += "<path class=\"line " + css + "\" d=\"" + path + "\"/>\n";
    svg_ += marks;
    if (named)
      (has_lines(chart_) && named->x > right_ - 12 ? margin_labels_ : free_labels_).push_back(*named);
  }

  // Labels inside the plot stay off this stretch of a line.
  void keep_clear(double x1, double y1, double x2, double y2) {
    const int count = std::clamp(static_cast<int>(std::hypot(x2 - x1, y2 - y1) / 5), 1, 200);
    for (int i = 0; i <= count; ++i) {
      const double x = x1 + (x2 - x1) * i / count, y = y1 + (y2 - y1) * i / count;
      taken_.push_back({x - 1, y - 1, x + 1, y + 1});
    }
  }

  std::string tick_name(double x) const {
    for (const auto& [at, label] : chart_.x.ticks)
      if (at == x) return label;
    return format_brief(x);
  }

  // Labels in the right margin, at their line's end or pushed apart from their neighbours and tied to it by a
  // thin line.
  void place_margin_labels() {
    auto& labels = margin_labels_;
    std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
    std::vector<double> y(labels.size());
    const double gap = kTextHeight + 2;
    for (size_t i = 0; i < y.size(); ++i) y[i] = i == 0 ? labels[i].y : std::max(labels[i].y, y[i - 1] + gap);
    // What was pushed down is moved back up half way, so that a cluster stays centred on its lines.
    for (size_t begin = 0; begin < y.size();) {
      size_t end = begin + 1;
      while (end < y.size() && y[end] - y[end - 1] < gap + 1e-9) ++end;
      double shift = 0;
      for (size_t i = begin; i < end; ++i) shift += (labels[i].y - y[i]) / static_cast<double>(end - begin);
      const double floor = begin == 0 ? kTop - 6 : y[begin - 1] + gap;
      shift = std::max(shift, floor - y[begin]);
      for (size_t i = begin; i < end; ++i) y[i] += std::min(shift, 0.0);
      begin = end;
    }
    for (size_t i = 0; i < labels.size(); ++i) {
      if (std::fabs(y[i] - labels[i].y) > 3)
        svg_ += line_element(labels[i].x + 5, labels[i].y, right_ + 9, y[i],
                             "leader " + style_class(labels[i].style));
      svg_ += text_element(right_ + 11, y[i] + 4, "start", "label " + style_class(labels[i].style),
                           labels[i].text);
    }
  }

  static Box text_box(double x, double baseline, std::string_view text) {
    return {x - 1, baseline - kTextHeight + 2, x + text_width(text) + 1, baseline + 3};
  }

  // Labels beside points inside the plot: the first of a few places where nothing is yet.
  void place_free_labels() {
    struct Place {
      const char* anchor;
      double x, y;  // from the mark
    };
    constexpr Place kPlaces[] = {{"start", 9, 4},   {"end", -9, 4},   {"middle", 0, -9}, {"middle", 0, 18},
                                 {"start", 7, -8},  {"start", 7, 16}, {"end", -7, -8},   {"end", -7, 16},
                                 {"start", 9, -20}, {"start", 9, 28}};
    for (const Label& label : free_labels_) {
      const double width = text_width(label.text);
      const auto box_at = [&](const Place& place) {
        const double share = place.anchor[0] == 's' ? 0 : place.anchor[0] == 'm' ? 0.5 : 1;
        return text_box(label.x + place.x - share * width, label.y + place.y, label.text);
      };
      // Outside the plot is worse than on top of anything.
      const auto cost = [&](const Place& place) {
        const Box box = box_at(place);
        const bool is_inside =
            box.left > left_ && box.right < kWidth - 2 && box.top > 16 && box.bottom < kHeight - kBottom + 2;
        return (is_inside ? 0 : 1000) + std::count_if(taken_.begin(), taken_.end(),
                                                      [&](const Box& other) { return box.overlaps(other); });
      };
      const Place* chosen =
          std::min_element(std::begin(kPlaces), std::end(kPlaces),
                           [&](const Place& a, const Place& b) { return cost(a) < cost(b); });
      taken_.push_back(box_at(*chosen));
      svg_ += text_element(label.x + chosen->x, label.y + chosen->y, chosen->anchor,
                           "label " + style_class(label.style), label.text);
    }
  }

  const LineChart& chart_;
  double left_, right_;
  Scale x_, y_;
  // the drawing so far
  std::string svg_;
  std::vector<Box> taken_;
  std::vector<Label> margin_labels_, free_labels_;
};

std::string describe(const LineChart& chart) {
  constexpr size_t kMaxPoints = 24;  // a longer series is told by its ends
  std::string text = chart.description;
  for (const Series& series : chart.series) {
    const size_t count = std::min(series.x.size(), series.y.size());
    text += " " + series.name + ":";
    for (size_t i = 0; i < count; ++i) {
      if (count > kMaxPoints && i != 0 && i + 1 != count) continue;
      std::string at = format_brief(series.x[i]);
      for (const auto& [value, label] : chart.x.ticks)
        if (value == series.x[i]) at = label;
      text += " " + at + " → " + format_brief(series.y[i]) + (i + 1 == count ? "." : ",");
    }
  }
  return text;
}

std::string describe(const BarChart& chart) {
  std::string text = chart.description;
  for (const BarRow& row : chart.rows) {
    text += " " + row.name + ":";
    for (size_t part = 0; part < std::min(row.values.size(), chart.parts.size()); ++part)
      text += (part ? ", " : " ") + (chart.parts.size() > 1 ? chart.parts[part] + " " : "") +
              format_number(row.values[part] * chart.scale, chart.decimals);
    text += ".";
  }
  return text;
}

// Legend of a stacked chart, above the bars, wrapped to the width. Returns its height.
double draw_legend(std::string& svg, const std::vector<std::string>& parts) {
  double x = 0.5, y = 10;
  for (size_t part = 0; part < parts.size(); ++part) {
    const double width = 16 + text_width(parts[part]) + 14;
    if (x + width > kWidth && x > 1) {
      x = 0.5;
      y += 18;
    }
    svg += "<rect x=\"" + number(x) + "\" y=\"" + number(y - 9) +
           "\" width=\"11\" height=\"11\" class=\"bar p" + std::to_string(part % 4) + "\"/>\n";
    svg += text_element(x + 16, y + 1, "start", "tick", parts[part]);
    x += width;
  }
  return y + 12;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  if (!std::isfinite(low) || !std::isfinite(high) || !(high > low) || count < 1) return {low, low + 1};
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double k = first; k <= last && ticks.size() < 64; ++k) ticks.push_back(k * step);
  return ticks;
}

std::string to_svg(const LineChart& chart) {
  return open_svg(chart.id, kHeight, chart.title, describe(chart)) + LinePainter(chart).paint() + "</svg>";
}

std::string to_svg(const BarChart& chart) {
  const bool is_stacked = chart.parts.size() > 1;
  std::string body;
  double top = is_stacked ? draw_legend(body, chart.parts) + 6 : 6;
  double name_width = 0, most = chart.full.value_or(0);
  for (const BarRow& row : chart.rows) {
    name_width = std::max(name_width, text_width(shorten(row.name, kMaxLabelCharacters)));
    double sum = 0;
    for (const double value : row.values) sum += std::isfinite(value) ? std::max(value, 0.0) : 0;
    if (!chart.full) most = std::max(most, sum);
  }
  if (!(most > 0)) most = 1;
  constexpr double kRow = 27, kBar = 17;
  // On a phone letters are a sixth larger (style.h), and names of methods are bold.
  const double left = 1.25 * name_width + 12, right = kWidth - (is_stacked ? 14 : 52);
  const double bottom = top + kRow * static_cast<double>(chart.rows.size());
  for (const double tick : round_ticks(0, most * chart.scale, 4)) {
    const double x = left + tick / (most * chart.scale) * (right - left);
    if (x > right + 1) continue;
    body += line_element(x, top - 2, x, bottom, "grid");
    body += text_element(x, bottom + 15, "middle", "tick", format_brief(tick));
  }
  for (const BarRow& row : chart.rows) {
    double x = left;
    body += text_element(left - 8, top + kBar / 2 + 8, "end",
                         is_stacked ? "row" : "row label " + style_class(row.style),
                         shorten(row.name, kMaxLabelCharacters));
    for (size_t part = 0; part < std::min(row.values.size(), chart.parts.size()); ++part) {
      const double value = std::isfinite(row.values[part]) ? std::max(row.values[part], 0.0) : 0;
      const double width = value / most * (right - left);
      const std::string shown = format_number(row.values[part] * chart.scale, chart.decimals);
      body += "<rect x=\"" + number(x) + "\" y=\"" + number(top + 4) + "\" width=\"" + number(width) +
              "\" height=\"" + number(kBar) + "\" class=\"bar " +
              (is_stacked ? "p" + std::to_string(part % 4) : style_class(row.style)) + "\"><title>" +
              escape_html(row.name) + (is_stacked ? ", " + escape_html(chart.parts[part]) : "") + ": " +
              shown + "</title></rect>\n";
      if (!is_stacked)
        body += text_element(x + width + 6, top + kBar / 2 + 8, "start", "value", shown);
      else if (width > text_width(shown) + 8)
        body += text_element(x + width / 2, top + kBar / 2 + 8, "middle",
                             "value p" + std::to_string(part % 4), shown);
      x += width;
    }
    top += kRow;
  }
  body += line_element(left, bottom, right, bottom, "axis");
  body += text_element((left + right) / 2, bottom + 34, "middle", "axis-label", chart.axis_label);
  return open_svg(chart.id, bottom + 42, chart.title, describe(chart)) + body + "</svg>";
}

}  // namespace ropd::report
