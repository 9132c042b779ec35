#include "io/tensorboard.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>

#include "support/test_data.h"

namespace ropd::io {
namespace {

// --- an independent decoder: bitwise crc, generic protobuf walk ---

uint32_t bitwise_crc32c(const std::string& bytes) {
  uint32_t crc = 0xffffffffu;
  for (unsigned char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool is_set = ((crc ^ static_cast<uint32_t>(byte >> bit)) & 1u) != 0;
      crc >>= 1;
      if (is_set) crc ^= 0x82f63b78u;
    }
  return crc ^ 0xffffffffu;
}

template <class T>
T take(const std::string& bytes, size_t& at) {
  T value{};
  if (at + sizeof(T) > bytes.size()) throw std::runtime_error("short file");
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  at += sizeof(T);
  return value;
}

uint64_t take_varint(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<uint8_t>(bytes, at);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

struct Field {
  uint64_t number = 0, integer = 0;
  double real = 0;
  std::string bytes;
};

std::vector<Field> decode(const std::string& message) {
  std::vector<Field> fields;
  for (size_t at = 0; at < message.size();) {
    const uint64_t key = take_varint(message, at);
    Field field{.number = key / 8};
    switch (key % 8) {
      case 0:
        field.integer = take_varint(message, at);
        break;
      case 1:
        field.real = take<double>(message, at);
        break;
      case 5:
        field.real = take<float>(message, at);
        break;
      case 2: {
        const size_t size = take_varint(message, at);
        field.bytes = message.substr(at, size);
        at += size;
        break;
      }
      default:
        throw std::runtime_error("unknown wire type");
    }
    fields.push_back(field);
  }
  return fields;
}

struct Event {
  double time = 0;
  uint64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
  std::optional<uint64_t> session;
};

std::vector<Event> read_events(const Path& path) {
  const std::string bytes = read_file(path);
  const auto check = [](const std::string& part, uint32_t masked) {
    const uint32_t rotated = masked - 0xa282ead8u;
    EXPECT_EQ((rotated >> 17) | (rotated << 15), bitwise_crc32c(part));
  };
  std::vector<Event> events;
  for (size_t at = 0; at < bytes.size();) {
    const std::string length_bytes = bytes.substr(at, 8);
    const auto length = take<uint64_t>(bytes, at);
    check(length_bytes, take<uint32_t>(bytes, at));
    const std::string message = bytes.substr(at, length);
    at += length;
    check(message, take<uint32_t>(bytes, at));
    Event& event = events.emplace_back();
    for (const Field& field : decode(message)) {
      if (field.number == 1) event.time = field.real;
      if (field.number == 2) event.step = field.integer;
      if (field.number == 3) event.version = field.bytes;
      if (field.number == 7) event.session = decode(field.bytes).at(0).integer;
      if (field.number != 5) continue;
      for (const Field& value : decode(field.bytes)) {
        const auto parts = decode(value.bytes);
        event.scalars[parts.at(0).bytes] = static_cast<float>(parts.at(1).real);
      }
    }
  }
  return events;
}

TEST(Crc32c, KnownAnswers) {  // RFC 3720, B.4
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending += c;
  EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TensorBoardWriter, AnIndependentDecoderReadsTheScalarsBack) {
  test::TemporaryDirectory directory;
  TensorBoardWriter writer(directory / "tensorboard", 1700000000.25);
  const std::vector<std::pair<std::string, double>> scalars = {{"loss", 0.5}, {"actor/grad_norm", 1e-9}};
  writer.write(scalars, 300, 1700000001.5);
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[0].time, 1700000000.25);
  EXPECT_EQ(events[1].step, 300u);
  EXPECT_EQ(events[1].time, 1700000001.5);
  EXPECT_EQ(events[1].scalars.at("loss"), 0.5f);
  EXPECT_EQ(events[1].scalars.at("actor/grad_norm"), 1e-9f);
  EXPECT_EQ(writer.path().filename().string().rfind("events.out.tfevents.1700000000.", 0), 0u);
}

TEST(TensorBoardWriter, IterationsAndStepsDoNotShareTags) {
  test::TemporaryDirectory directory;
  TensorBoardWriter writer(directory.path(), 1);
  StepRecord step;
  step.step = 3;
  step.loss = 1;
  IterationRecord iteration;
  iteration.step = 4;
  iteration.loss = 2;
  iteration.response_length_mean = 200;
  writer.write(step);
  writer.write(iteration);
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].scalars.at("loss"), 1.0f);
  EXPECT_EQ(events[2].scalars.at("iteration/loss"), 2.0f);
  EXPECT_EQ(events[2].scalars.count("loss"), 0u);
  EXPECT_EQ(events[2].scalars.at("response_length/mean"), 200.0f);
  EXPECT_EQ(events[2].step, 4u);
}

TEST(TensorBoardWriter, AResumedRunBeginsWithASessionStart) {
  test::TemporaryDirectory directory;
  TensorBoardWriter writer(directory.path(), 1, 9);
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].session, 1u);
  EXPECT_EQ(events[1].step, 9u);
}

}  // namespace
}  // namespace ropd::io
