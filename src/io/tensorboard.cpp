#include "io/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "io/metrics_file.h"

namespace ropd::io {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1) ^ (value & 1 ? 0x82f63b78u : 0u);  // Castagnoli, reflected
    table[byte] = value;
  }
  return table;
}
constexpr auto kTable = make_table();

template <class T>
void put_fixed(std::string& out, T value) {  // little endian whatever the machine
  for (size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

enum class Wire : uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
void put_tag(std::string& out, uint64_t field, Wire wire) {
  put_varint(out, field << 3 | static_cast<uint64_t>(wire));
}
void put_bytes(std::string& out, uint64_t field, std::string_view bytes) {
  put_tag(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_head(double unix_time, uint64_t step) {
  std::string out;
  put_tag(out, 1, Wire::fixed64);
  put_fixed(out, std::bit_cast<uint64_t>(unix_time));
  put_tag(out, 2, Wire::varint);
  put_varint(out, step);
  return out;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

TensorBoardWriter::TensorBoardWriter(const Path& directory, double unix_time, uint64_t first_step) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) fail(directory.string(), ": cannot create the folder: ", error.message());
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  path_ = directory / ("events.out.tfevents." + std::to_string(static_cast<uint64_t>(unix_time)) + "." +
                       host + "." + std::to_string(::getpid()) + "." + std::to_string(first_step));
  do {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) fail(path_.string(), ": cannot create: ", std::generic_category().message(errno));
  std::string version = event_head(unix_time, 0);
  put_bytes(version, 3, "brain.Event:2");
  write_frame(version);
  if (first_step > 0) {
    std::string start;
    put_tag(start, 1, Wire::varint);
    put_varint(start, 1);  // SessionLog.START
    std::string event = event_head(unix_time, first_step);
    put_bytes(event, 7, start);
    write_frame(event);
  }
  for (const auto& [tag, value] : scalars_of(StepRecord{})) step_tags_.push_back(tag);
}

TensorBoardWriter::~TensorBoardWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void TensorBoardWriter::write_frame(std::string_view message) {
  std::string frame;
  put_fixed(frame, static_cast<uint64_t>(message.size()));
  put_fixed(frame, masked_crc32c(frame));
  frame += message;
  put_fixed(frame, masked_crc32c(message));
  // One write per frame: a reader of the live file sees whole frames.
  for (std::string_view rest = frame; !rest.empty();) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_.string(), ": cannot write: ", std::generic_category().message(errno));
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

void TensorBoardWriter::write(std::span<const std::pair<std::string, double>> scalars, uint64_t step,
                              double unix_time) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, 1, tag);
    put_tag(value, 2, Wire::fixed32);
    put_fixed(value, std::bit_cast<uint32_t>(static_cast<float>(number)));
    put_bytes(summary, 1, value);
  }
  std::string event = event_head(unix_time, step);
  put_bytes(event, 5, summary);
  write_frame(event);
}

void TensorBoardWriter::write(const StepRecord& record) {
  write(scalars_of(record), record.step, record.unix_time);
}

void TensorBoardWriter::write(const IterationRecord& record) {
  Scalars scalars = scalars_of(record);
  for (auto& [tag, value] : scalars)
    if (std::find(step_tags_.begin(), step_tags_.end(), tag) != step_tags_.end()) tag = "iteration/" + tag;
  write(scalars, record.step, record.unix_time);
}

}  // namespace ropd::io
